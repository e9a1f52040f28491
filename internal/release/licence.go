package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// module is what is compiled into a program.
type module struct {
	path, version, sum string
	licence            string // its SPDX identifier
	texts              []string
}

// licenceFile matches the names of files with a licence or what it says to keep.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-.].*)?$`)

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

// collectLicences finds the licence of each module in any of the programs. A module without a known one ends the release.
func (r *release) collectLicences() error {
	linked := map[string]*debug.Module{}
	for _, path := range r.programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				return fmt.Errorf("%s is replaced by %s; a release takes modules as they are", m.Path, m.Replace.Path)
			}
			linked[m.Path] = m
		}
	}
	list, err := output(r.root, []string{"GOWORK=off"}, "go", "list", "-m", "-json", "all")
	if err != nil {
		return err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(list)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		dirs[m.Path] = m.Dir
	}
	goroot, err := output(r.root, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	r.modules = []module{{path: "std", version: strings.TrimPrefix(runtime.Version(), "go")}}
	dirs["std"] = goroot
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		r.modules = append(r.modules, module{path: path, version: linked[path].Version, sum: linked[path].Sum})
	}
	r.modules = append(r.modules, module{path: "preact", version: "in the page"})
	dirs["preact"] = filepath.Join(r.root, "inspector", "ui", "vendor", "preact")
	var bad []error
	for i := range r.modules {
		m := &r.modules[i]
		if m.texts, err = licenceTexts(dirs[m.path]); err != nil {
			return err
		}
		if m.licence = identify(m.texts); m.licence == "" {
			bad = append(bad, fmt.Errorf("the licence of %s %s is not known: look into %s, and add it to licenceOf in licence.go, or do without the module", m.path, m.version, dirs[m.path]))
		}
	}
	if len(bad) > 0 {
		return errors.Join(bad...)
	}
	r.licences = thirdParty(r.modules)
	return r.add("THIRD_PARTY_LICENSES", r.licences)
}

// licenceTexts returns the licences and notices in a folder.
func licenceTexts(dir string) (texts []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}

// thirdParty writes the licences of all modules. A text that several have is written once.
func thirdParty(modules []module) []byte {
	var b bytes.Buffer
	b.WriteString("The program patchbay contains the work of others:\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "%s %s (%s)\n", m.path, m.version, m.licence)
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
					fmt.Fprintf(&b, "%s %s\n", other.path, other.version)
				}
			}
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(text))
		}
	}
	return b.Bytes()
}
