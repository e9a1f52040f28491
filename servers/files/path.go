package files

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// dialect is the path syntax of a system. Paths are text here, with slashes: this file
// does not use a file system, and [os.Root] also keeps the resulting paths from leading
// out of a root.
type dialect struct{ windows bool }

// host is the dialect of this system.
var host = dialect{windows: runtime.GOOS == "windows"}

// maxPath bounds a path, in bytes.
const maxPath = 4096

var errOutside = errors.New("is outside of the roots; the tool roots names them")

// located is the meaning of a path: a path in the folder with that index, or all
// folders.
type located struct {
	index int // -1: all
	rel   string
}

// locate resolves a path among folders. The result is clean and local: it is not
// absolute and does not begin with "..".
func (d dialect) locate(folders []folder, given string) (located, error) {
	none := located{}
	switch {
	case len(given) > maxPath:
		return none, fmt.Errorf("the path has %d bytes; the maximum is %d", len(given), maxPath)
	case !utf8.ValidString(given) || strings.ContainsRune(given, 0):
		return none, fmt.Errorf("%q is not a path", text.Short(given))
	case len(folders) == 0:
		return none, errors.New("there are no roots")
	}
	p := d.slashed(given)
	if isFileURI(p) {
		var err error
		if p, err = d.fromURI(given); err != nil {
			return none, err
		}
	}
	if d.absolute(p) {
		return d.locateAbsolute(folders, d.clean(p), given)
	}
	p = path.Clean(p)
	switch {
	case p == ".." || strings.HasPrefix(p, "../"):
		return none, fmt.Errorf("%q %w", text.Short(given), errOutside)
	case p == "." && len(folders) > 1:
		return located{index: -1, rel: "."}, nil
	case len(folders) == 1:
		return located{0, p}, d.check(p)
	}
	name, rest, _ := strings.Cut(p, "/")
	for i, f := range folders {
		if d.same(f.name, name) {
			rel := path.Clean(rest) // of nothing: "."
			return located{i, rel}, d.check(rel)
		}
	}
	return none, fmt.Errorf("%q does not begin with the name of a root, as in %q; the tool roots names them", text.Short(given), folders[0].name+"/"+text.Short(p))
}

// locateAbsolute finds the innermost folder that contains a path.
func (d dialect) locateAbsolute(folders []folder, p, given string) (located, error) {
	found, depth := located{}, -1
	for i, f := range folders {
		for _, dir := range f.spellings {
			if rel, ok := d.below(dir, p); ok && len(dir) > depth {
				found, depth = located{i, rel}, len(dir)
			}
		}
	}
	if depth < 0 {
		return located{}, fmt.Errorf("%q %w", text.Short(given), errOutside)
	}
	return found, d.check(found.rel)
}

// folder is a root as paths name it.
type folder struct {
	name      string
	spellings []string // its absolute paths, clean and slashed: as given, and with links resolved
}

// nameFolders gives each folder a unique name.
func (d dialect) nameFolders(folders []folder) {
	taken := map[string]bool{}
	fold := func(name string) string {
		if d.windows {
			return strings.ToLower(name)
		}
		return name
	}
	base := func(f folder) string {
		name := path.Base(f.spellings[0])
		if name == "/" || strings.HasSuffix(name, ":") {
			return "root"
		}
		return name
	}
	// A folder called "docs-2" keeps its name, in any position.
	for _, f := range folders {
		taken[fold(base(f))] = true
	}
	used := map[string]bool{}
	for i, f := range folders {
		name := base(f)
		if used[fold(name)] {
			for n := 2; ; n++ {
				if name = fmt.Sprintf("%s-%d", base(f), n); !taken[fold(name)] {
					break
				}
			}
		}
		used[fold(name)], taken[fold(name)] = true, true
		folders[i].name = name
	}
}

// slashed writes a path with slashes.
func (d dialect) slashed(p string) string {
	if d.windows {
		return strings.ReplaceAll(p, `\`, "/")
	}
	return p
}

// absolute reports whether a slashed path does not depend on a folder that it is
// relative to.
func (d dialect) absolute(p string) bool {
	return strings.HasPrefix(p, "/") || d.windows && len(p) >= 3 && isLetter(p[0]) && p[1] == ':' && p[2] == '/'
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// same compares two names.
func (d dialect) same(a, b string) bool {
	return a == b || d.windows && strings.EqualFold(a, b)
}

// below returns p relative to dir, if it is dir or below it. Both are clean.
func (d dialect) below(dir, p string) (rel string, ok bool) {
	dirs, parts := strings.Split(strings.TrimSuffix(dir, "/"), "/"), strings.Split(strings.TrimSuffix(p, "/"), "/")
	if len(parts) < len(dirs) {
		return "", false
	}
	for i, name := range dirs {
		if !d.same(name, parts[i]) {
			return "", false
		}
	}
	if len(parts) == len(dirs) {
		return ".", true
	}
	return strings.Join(parts[len(dirs):], "/"), true
}

// clean is path.Clean that leaves the two slashes of a Windows share, and the one of a
// drive: D: alone is the folder that a process happens to be in there.
func (d dialect) clean(p string) string {
	c := path.Clean(p)
	switch {
	case !d.windows:
	case strings.HasPrefix(p, "//"):
		return "/" + c
	case len(c) == 2 && d.absolute(c+"/"):
		return c + "/"
	}
	return c
}

// join appends a local path to an absolute one.
func (d dialect) join(dir, rel string) string { return d.clean(dir + "/" + rel) }

// check refuses names that a system does not treat as the name of a file.
func (d dialect) check(rel string) error {
	if !d.windows || rel == "." {
		return nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		switch {
		case strings.ContainsAny(name, `<>:"|?*`) || strings.IndexFunc(name, func(r rune) bool { return r < 0x20 }) >= 0:
			return fmt.Errorf("%q is not a valid name on Windows; leave out < > : \" | ? * and control characters", name)
		case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
			return fmt.Errorf("%q: Windows drops dots and spaces at the end of a name; leave them out", name)
		case isDevice(name):
			return fmt.Errorf("%q is a device on Windows", name)
		}
	}
	return nil
}

// isDevice reports whether a name is a device on Windows.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	name = strings.ToUpper(strings.TrimRight(name, " "))
	switch name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	number, ok := strings.CutPrefix(name, "COM")
	if !ok {
		number, ok = strings.CutPrefix(name, "LPT")
	}
	return ok && utf8.RuneCountInString(number) == 1 && strings.ContainsAny(number, "0123456789¹²³")
}
