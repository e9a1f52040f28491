//go:build ignore

// Testlog reads the output of "go test -json" and prints what a person wants of
// it: the closing line of every package, lines that a test begins with
// "report: ", and all that a failed test or package said. It adds what it
// counted to a file, one "PASSED FAILED SKIPPED" line per run, and exits 1 if
// anything failed.
//
//	go test -json ./... | go run .ci/testlog.go COUNTS
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | go run .ci/testlog.go COUNTS")
		os.Exit(2)
	}
	var passed, failed, skipped int
	bad := false
	said := map[string][]string{} // by package and test, what it printed so far
	why := map[string]int{}       // how many tests were skipped, by reason
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text()) // go itself: a download, a warning
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "build-output":
			fmt.Print(e.Output)
		case "build-fail":
			bad = true
		case "output":
			if text, ok := strings.CutPrefix(e.Output, "report: "); ok {
				fmt.Print("    ", text)
				continue
			}
			said[key] = append(said[key], e.Output)
			if e.Test == "" && closing(e.Output) && e.Output != "FAIL\n" {
				fmt.Print(e.Output)
			}
		case "pass", "skip":
			if e.Test != "" && e.Action == "pass" {
				passed++
			} else if e.Test != "" {
				skipped++
				why[reason(said[key])]++
			}
			delete(said, key)
		case "fail":
			if e.Test != "" {
				failed++
			} else {
				bad = true
			}
			for _, line := range said[key] {
				if !closing(line) { // that was printed as it came
					fmt.Print(line)
				}
			}
			delete(said, key)
			if e.Test == "" { // it ended in the middle of these, by a signal or its time limit
				for other, lines := range said {
					if strings.HasPrefix(other, e.Package+" ") {
						fmt.Print(strings.Join(lines, ""))
						delete(said, other)
					}
				}
			}
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	for _, text := range slices.Sorted(maps.Keys(why)) {
		fmt.Printf("    %d skipped: %s\n", why[text], text)
	}
	f, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, passed, failed, skipped)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	if bad || failed > 0 {
		os.Exit(1)
	}
}

// closing reports whether a line is the closing line of a package.
func closing(line string) bool {
	return strings.HasPrefix(line, "ok  \t") || line == "FAIL\n" || strings.HasPrefix(line, "FAIL\t") || strings.HasPrefix(line, "?   \t")
}

// reason is why a test was skipped, as it said itself.
func reason(said []string) string {
	text := "no reason given"
	for _, line := range said {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			text = line
		}
	}
	return text
}
