// Command vet does for another system what go vet does, without compiling anything for it:
//
//	GOOS=windows go -C internal/tools run ./vet [-C FOLDER] [PACKAGES]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

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
	list, err := packages.Load(&packages.Config{Dir: dir, Tests: true, Mode: packages.LoadAllSyntax | packages.NeedModule}, patterns...)
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return fmt.Errorf("%s has no packages %s", dir, patterns)
	case packages.PrintErrors(list) > 0:
		return errors.New("the types are wrong")
	}
	graph, err := checker.Analyze(vet.Suite, list, nil)
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
