// Command site makes the documentation as a site of static files: the Markdown of the repository, the programs of the examples, the public
// packages, and a search over all of them. The site needs no server, and its pages no scripts. A page of more than 60 kB is divided.
//
//	go -C internal/tools run ./site --out DIR
//
// docs/README.md is the table of contents, and orders the pages. Each fault of a page ends the build with its file and line: a link
// without a target, a page missing from the contents, a code block without a language.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

func main() {
	out := flag.String("out", "", "folder to write, new or an earlier site")
	root := flag.String("root", "../..", "the repository")
	flag.Parse()
	if *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: site --out DIR [--root REPOSITORY]")
		os.Exit(2)
	}
	debug.SetGCPercent(-1) // collecting 170 MB of garbage takes as long as all the rest
	files, err := generate(os.DirFS(*root))
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mark is the file by which write knows an earlier site.
const mark = "search-index.js"

// write replaces the site in dir, and refuses a folder with anything else in it.
func write(dir string, files map[string][]byte) error {
	old, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, mark)); len(old) > 0 && err != nil {
		return fmt.Errorf("%s has files and is not a site: name a new folder", dir)
	}
	for _, entry := range old {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
