// Command vet does for another system what go vet on this one leaves to be done, without compiling anything for it: it checks the types of all
// packages, and looks into those that have files for some systems alone.
//
//	GOOS=windows go -C internal/tools run ./vet [-C FOLDER] [PACKAGES]
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	dir := flag.String("C", "../..", "the `folder` of the module")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(*dir, patterns...); err != nil {
		fmt.Fprintln(os.Stderr, "vet:", err)
		os.Exit(1)
	}
}

// run vets packages of the module in a folder, tests included.
func run(dir string, patterns ...string) error {
	list, err := load(dir, patterns...)
	if err != nil {
		return err
	}
	graph, err := checker.Analyze(vet.Suite, ofSystem(list), nil)
	if err != nil {
		return err
	}
	if err := graph.PrintText(os.Stderr, 0); err != nil {
		return err
	}
	for _, a := range graph.Roots {
		if a.Err != nil || len(a.Diagnostics) > 0 {
			return fmt.Errorf("%s found something", a.Analyzer.Name)
		}
	}
	return nil
}

// ofSystem returns those packages of a list whose files are not the same on each system.
func ofSystem(list []*packages.Package) []*packages.Package {
	differ := map[string]bool{}
	for _, p := range list {
		if len(p.IgnoredFiles) > 0 {
			differ[p.PkgPath] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(p *packages.Package) bool { return !differ[strings.TrimSuffix(p.PkgPath, "_test")] })
}
