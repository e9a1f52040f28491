// Command release makes what people install, from a commit of this repository:
//
//	go -C internal/release run . --out DIR              from a commit with a tag such as v0.1.0
//	go -C internal/release run . --snapshot --out DIR   from any commit, to try
//
// It builds the program for each system, and makes archives, packages for Linux (deb, rpm, apk), a container
// image, packages for npm, files for Homebrew and Scoop, a chart of Helm, a list of what is inside (CycloneDX), and checksums, which
// it signs with --key. It needs Go and git, and no network beyond that of Go modules. The same commit and the same
// version of Go give the same bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	out := flag.String("out", "", "put the files into this empty or new folder")
	snapshot := flag.Bool("snapshot", false, "build a commit without a tag, too, or a tree with changes")
	key := flag.String("key", "", "sign the checksums with this private key (PEM, Ed25519)")
	flag.Parse()
	if err := run(*out, *key, *snapshot); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

// system is what a program is built for.
type system struct{ os, arch string }

func (s system) String() string { return s.os + "-" + s.arch }

var systems = []system{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

// release is a release that is being made.
type release struct {
	root string // of the repository
	out  string
	work string // a temporary folder

	version string // without v
	commit  string
	time    time.Time // of the commit

	programs map[system]string // path of each program
	modules  []module
	files    []string // of out that are made, by name
}

func run(out, key string, snapshot bool) (err error) {
	began := time.Now()
	if out == "" {
		return errors.New("no folder for the files; add --out DIR")
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if there, err := os.ReadDir(out); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty, and old files would look like those of this release; name another folder", out)
	}
	var signer signer
	if key != "" { // a bad key is told of before the builds
		if signer, err = readKey(key); err != nil {
			return err
		}
	}
	r := &release{out: out, programs: map[system]string{}}
	if err := r.describe(snapshot); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "patchbay-release"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"programs", r.build}, {"modules", r.collectModules}, {"archives", r.archives}, {"packages", r.packages},
		{"image", r.image}, {"npm", r.npm}, {"Homebrew and Scoop", r.feeds}, {"chart", r.chart}, {"contents", r.contents},
	} {
		t := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-20s %v\n", step.name, time.Since(t).Round(10*time.Millisecond))
	}
	if err := r.sums(signer); err != nil {
		return err
	}
	slices.Sort(r.files)
	for _, name := range r.files {
		info, err := os.Stat(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Printf("%10d  %s\n", info.Size(), name)
	}
	fmt.Printf("patchbay %s is in %s, after %v\n", r.version, out, time.Since(began).Round(time.Second))
	return nil
}

// add writes a file of the release.
func (r *release) add(name string, content []byte) error {
	r.files = append(r.files, name)
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}
