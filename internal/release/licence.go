package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// licencesName is the file with the licences of the work of others, at the root of the repository and in every artefact.
const licencesName = "THIRD_PARTY_LICENSES"

// module is what is compiled into a program.
type module struct {
	path, version, sum string
	licence            string // its SPDX identifier
}

// licenceLine matches a line at the beginning of THIRD_PARTY_LICENSES.
var licenceLine = regexp.MustCompile(`(?m)^(\S+(?: \S+)?) \(([^()\s]+)\)$`)

// collectModules finds the modules in the programs, and their licences in THIRD_PARTY_LICENSES. A module that is not there ends the
// release.
func (r *release) collectModules() error {
	text, err := os.ReadFile(filepath.Join(r.root, licencesName))
	if err != nil {
		return err
	}
	licences := map[string]string{}
	for _, found := range licenceLine.FindAllStringSubmatch(string(text), -1) {
		licences[found[1]] = found[2]
	}
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
	r.modules = []module{{path: "std", version: strings.TrimPrefix(runtime.Version(), "go"), licence: licences["std"]}}
	var bad []error
	for _, path := range slices.Sorted(maps.Keys(linked)) {
		m := linked[path]
		licence, ok := licences[path+" "+m.Version]
		if !ok {
			bad = append(bad, fmt.Errorf("%s does not have the licence of %s %s; run go test ./cmd/patchbay/internal/origin -update, and look at what it writes", licencesName, path, m.Version))
		}
		r.modules = append(r.modules, module{path, m.Version, m.Sum, licence})
	}
	r.modules = append(r.modules, module{path: "preact", version: "in the page", licence: licences["preact"]})
	return errors.Join(bad...)
}
