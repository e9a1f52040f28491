package record

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files returns the paths of the trace files in a folder, in the order of their days, of the starts of
// their runs, and of their numbers. Files with other names are left out.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ours().MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	const run = len("trace-2006-01-02-150405-abcdef-") // a number can have more than four digits
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(a[:run], b[:run]), len(a)-len(b), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, nil
}
