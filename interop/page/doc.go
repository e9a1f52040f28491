// Package page tests the page of Patchbay in a browser, as people use it, and on Linux measures it. It has tests and
// benchmarks alone:
//
//	go -C interop test -run '^$' -bench 'Link|Ready' -benchtime 20x ./page  # 1 minute
//	go -C interop test -run '^$' -bench Wire -benchtime 1x ./page           # 1 minute
//	go -C interop test -run '^$' -bench Gateway -benchtime 15x ./page       # 2 minutes
//
// They need Chromium, and an idle machine: the browser is a part of what they measure.
package page
