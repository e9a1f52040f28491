//go:build !windows

package origin

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_LICENSES and licences.gz")

const root = "../../../.."

// module is work of others in the program.
type module struct {
	path, version string
	licence       string // its SPDX identifier
	texts         []string
}

func (m module) String() string {
	return strings.TrimSpace(m.path + " " + m.version)
}

// The licences in the program and in THIRD_PARTY_LICENSES are those of the packages that are linked, on any system of a release.
func TestLicences(t *testing.T) {
	want := thirdParty(linked(t))
	path := filepath.Join(root, "THIRD_PARTY_LICENSES")
	if *update {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(os.WriteFile(path, want, 0o644), os.WriteFile("licences.gz", b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		licences = b.Bytes()
	}
	const again = "go test ./cmd/patchbay/internal/origin -update"
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("THIRD_PARTY_LICENSES is not that of the modules that are linked (%v); look at what this changes: %s", err, again)
	}
	var got bytes.Buffer
	if err := WriteLicences(&got); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("licences.gz is not that of the modules that are linked (%v); look at what this changes: %s", err, again)
	}
}

// linked returns the modules of the packages of the program, with the standard library and what the page is made of.
func linked(t *testing.T) []module {
	t.Helper()
	known := map[string]*module{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/patchbay")
			cmd.Dir, cmd.Env = root, append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0", "GOWORK=off")
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(out)) {
				f := strings.Split(strings.TrimSpace(line), "\t")
				if len(f) != 4 {
					continue
				}
				m := known[f[0]]
				if m == nil {
					m = &module{path: f[0], version: f[1]}
					known[f[0]] = m
					m.add(t, f[2])
				}
				for dir := f[3]; len(dir) > len(f[2]); dir = filepath.Dir(dir) { // a package may be taken from somebody else
					m.add(t, dir)
				}
			}
		}
	}
	preact := &module{path: "preact"}
	preact.add(t, filepath.Join(root, "inspector", "ui", "vendor", "preact"))
	known["preact"] = preact
	known["std"] = &module{path: "std", texts: known["golang.org/x/sys"].texts} // they have the same
	var all []module
	for _, path := range slices.Sorted(maps.Keys(known)) {
		m := known[path]
		if m.licence = identify(m.texts); m.licence == "" {
			t.Errorf("the licence of %s is not known: look into its folder, and add it to licenceOf, or do without the module", m)
		}
		all = append(all, *m)
	}
	return all
}

// licenceFile matches the names of files with a licence or what it says to keep.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice)([-.].*)?$`)

// add takes the licences and notices in a folder.
func (m *module) add(t *testing.T, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) || strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(m.texts, string(text)) {
			m.texts = append(m.texts, string(text))
		}
	}
}

// licenceOf knows a licence by a sentence of its text; the first that matches counts.
var licenceOf = []struct{ id, sentence string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"BSD-3-Clause", "Neither the name"},
	{"BSD-3-Clause", "Neither name of"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms, with or without modification, are permitted"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
	{"CC0-1.0", "CC0 1.0 Universal"},
}

// identify returns the SPDX identifier of the first licence that it knows; empty: none.
func identify(texts []string) string {
	for _, text := range texts {
		text = strings.Join(strings.Fields(text), " ")
		for _, l := range licenceOf {
			if strings.Contains(strings.ToLower(text), strings.ToLower(l.sentence)) {
				return l.id
			}
		}
	}
	return ""
}

func TestIdentify(t *testing.T) {
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy":                                   "MIT",
		"Redistribution and use in source and binary forms, with or without\nmodification, are permitted … * Neither the name of Google": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without\nmodification, are permitted":                                "BSD-2-Clause",
		"                                 Apache License\n                           Version 2.0, January 2004":                          "Apache-2.0",
		"All rights reserved. You may look at it.": "",
	} {
		if got := identify([]string{text}); got != want {
			t.Errorf("identify(%.40q) = %q, want %q", text, got, want)
		}
	}
	if got := identify(nil); got != "" {
		t.Errorf("no text is %q", got)
	}
}

// thirdParty writes the licences of all modules. A text that several have is written once.
func thirdParty(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("The program patchbay contains the work of others:\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "%s (%s)\n", m, m.licence)
	}
	said := map[string]bool{}
	for _, m := range modules {
		for _, text := range m.texts {
			if said[text] {
				continue
			}
			said[text] = true
			fmt.Fprintf(&b, "\n%s\n", strings.Repeat("=", 80))
			for _, other := range modules {
				if slices.Contains(other.texts, text) {
					fmt.Fprintf(&b, "%s\n", other)
				}
			}
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(text))
		}
	}
	return b.Bytes()
}

func TestThirdParty(t *testing.T) {
	text := string(thirdParty([]module{{path: "example.com/a", version: "v1", licence: "MIT", texts: []string{"same"}}, {path: "example.com/b", version: "v2", licence: "MIT", texts: []string{"same", "own"}}}))
	if strings.Count(text, "\nsame\n") != 1 || !strings.Contains(text, "example.com/a v1\nexample.com/b v2\n\nsame") || !strings.Contains(text, "example.com/b v2\n\nown") {
		t.Error(text)
	}
}
