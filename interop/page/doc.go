// Package page tests the page of Patchbay in a browser, as people use it. It has tests alone.
package page
