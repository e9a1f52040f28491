//go:build ignore

// Testlog reads the output of "go test -json" and prints what a person wants of
// it: the closing line of every package, lines that a test begins with
// "report: ", and all that a failed test or package said. It adds what it
// counted to a file, one "PASSED FAILED SKIPPED" line per run, and exits 1 if
// anything failed. It exits 3 if all that failed are packages whose programs
// Wine broke, and writes their names to the second file.
//
//	go test -json ./... | go run .ci/testlog.go COUNTS [BROKEN]
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
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | go run .ci/testlog.go COUNTS [BROKEN]")
		os.Exit(2)
	}
	type counts struct{ passed, failed, skipped int }
	all := map[string]*counts{} // by package
	bad := false
	wine := map[string]bool{} // the packages that Wine had a part in
	var broken []string
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
		n := all[e.Package]
		if n == nil {
			n = new(counts)
			all[e.Package] = n
		}
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
			if strings.Contains(e.Output, wineError) {
				wine[e.Package] = true
			}
			if e.Test == "" && closing(e.Output) && e.Output != "FAIL\n" {
				fmt.Print(e.Output)
			}
		case "pass", "skip":
			if e.Test != "" && e.Action == "pass" {
				n.passed++
			} else if e.Test != "" {
				n.skipped++
				why[reason(said[key])]++
			}
			delete(said, key)
		case "fail":
			switch {
			case e.Test != "":
				n.failed++
			case len(os.Args) == 3 && wine[e.Package]:
				broken = append(broken, e.Package)
				*n = counts{} // they run again
			default:
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
	var sum counts
	for _, n := range all {
		sum.passed += n.passed
		sum.failed += n.failed
		sum.skipped += n.skipped
	}
	f, err := os.OpenFile(os.Args[1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, sum.passed, sum.failed, sum.skipped)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
		os.Exit(1)
	}
	if bad || sum.failed > 0 {
		os.Exit(1)
	}
	if broken != nil {
		if err := os.WriteFile(os.Args[2], []byte(strings.Join(broken, "\n")+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "testlog:", err)
			os.Exit(1)
		}
		os.Exit(3)
	}
}

// wineError begins what Wine prints when a thread has lost its way to Wine's server. The process then hangs or ends,
// whatever program it runs: Wine does this now and then to a process that is being killed.
const wineError = "wine client error:"

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
