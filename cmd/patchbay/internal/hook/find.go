package hook

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
)

// Source is the mcp.json that was found or named.
type Source struct {
	File   *config.File // nil: there is none
	Faults config.Problems

	// Agreed reports whether the person has agreed to the file as it is now, or it is their own.
	Agreed func(*config.File) (bool, error)

	Note func(format string, args ...any) // for the person
}

// Find returns the hooks of the person's own file, which always run, and after them those of the
// file that was found or named, which run only if the person has agreed to it. A fault of either
// file as a whole is an error, unless the person has not agreed to it.
func Find(s Source) ([]config.Hook, error) {
	own, faults, err := ownFile()
	if err != nil {
		return nil, err
	}
	if own != nil && s.File != nil && same(own.Path, s.File.Path) {
		s.File = nil
	}
	if whole := ofWhole(faults); len(whole) > 0 {
		return nil, whole
	}
	var list []config.Hook
	if own != nil {
		list = own.Hooks
	}
	if s.File == nil {
		return list, nil
	}
	agreed, err := s.Agreed(s.File)
	whole := ofWhole(s.Faults)
	switch {
	case err != nil:
		return nil, err
	case !agreed && len(s.File.Hooks)+len(whole) > 0:
		s.Note("the hooks of %s do not run, as it is not trusted", entry.Here(s.File.Path))
	case !agreed:
	case len(whole) > 0:
		return nil, whole
	default:
		list = append(list[:len(list):len(list)], s.File.Hooks...)
	}
	return list, nil
}

// ownFile reads the person's own file; nil: there is none.
func ownFile() (*config.File, config.Problems, error) {
	path, ok := config.UserFile()
	if !ok {
		return nil, nil, nil
	}
	file, faults, err := config.Inspect(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("hooks: %w", err)
	}
	return file, faults, nil
}

// ofWhole returns the faults of a file as a whole, to which those of hooks belong.
func ofWhole(faults config.Problems) (whole config.Problems) {
	for _, p := range faults {
		if p.Server == "" && p.Model == "" {
			whole = append(whole, p)
		}
	}
	return whole
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
