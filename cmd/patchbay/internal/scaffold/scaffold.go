// Package scaffold writes new projects: a server or a client of MCP in Go, with tests.
//
// The templates are the folders server and client: programs of this module, which its own tests build
// and run. Write copies one and puts the name of the project in place of the word projectname.
//
// # Guarantees
//
//   - Write never replaces a file.
//   - After an error nothing of the project is left behind.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/text"
)

//go:embed server client
var templates embed.FS

// placeholder stands for the name of the project in the templates.
const placeholder = "projectname"

// patchbay is the module that a project needs.
const patchbay = "github.com/patchbay-dev/patchbay"

// A Project is what Write writes.
type Project struct {
	Kind    string // "server" or "client"
	Module  string // path of the Go module, such as "github.com/you/weather"
	Dir     string // the folder, which must be absent or hold at most .git; empty: Name, in the current folder
	Version string // of Patchbay, such as "v0.1.0"; empty for a build that is not a release, which needs Source
	Source  string // folder with the source of Patchbay, for a replace directive; empty: none
}

// New returns a project for the Patchbay that this program was built from: its release, else the
// folder source, else the folder of the build. The warning is empty for the first two.
func New(kind, module, dir, source string) (p *Project, warning string) {
	info, _ := debug.ReadBuildInfo()
	p = &Project{Kind: kind, Module: module, Dir: dir, Version: release(info), Source: source}
	if p.Version != "" || p.Source != "" {
		return p, ""
	}
	if p.Source = checkout(); p.Source != "" {
		return p, "this program is not a release, so go.mod takes Patchbay from " + p.Source
	}
	return p, "this program is not a release, so go.mod requires v0.0.0, which cannot be downloaded: replace it with the folder of its source"
}

// Setup returns the command that downloads what the project needs, and runs its tests, in its folder.
func (p *Project) Setup() string {
	setup := "go mod tidy && go test ./..."
	if p.inWorkspace() {
		setup = "go work use . && " + setup
	}
	if p.Version == "" && p.Source == "" {
		setup = "go mod edit -replace " + patchbay + "=FOLDER && " + setup
	}
	return setup
}

// inWorkspace reports whether the go command uses a go.work in the folder of the project, or above it.
func (p *Project) inWorkspace() bool {
	if file := os.Getenv("GOWORK"); file != "" {
		return file != "off"
	}
	for dir, err := filepath.Abs(p.Folder()); err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return true
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return false
}

// release returns the version of Patchbay that a program was built from, if others can download it;
// empty for a build of a folder. The info is nil if it is unknown.
func release(info *debug.BuildInfo) string {
	if info == nil || info.Main.Path != patchbay || !strings.HasPrefix(info.Main.Version, "v") || strings.Contains(info.Main.Version, "+dirty") {
		return ""
	}
	return info.Main.Version
}

// checkout returns the folder that this program was built from, if it still holds the source of
// Patchbay; empty after go build -trimpath, and on another machine.
func checkout() string {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(filepath.FromSlash(file)), "..", "..", "..", "..")
	if !filepath.IsAbs(dir) || checkSource(dir) != nil {
		return ""
	}
	return dir
}

// Name returns the name of the project: the last element of the module path that is not a major
// version.
func (p *Project) Name() string {
	name := path.Base(p.Module)
	if major().MatchString(name) && path.Dir(p.Module) != "." {
		name = path.Base(path.Dir(p.Module))
	}
	return name
}

// Scheme returns the name of the project as a URI scheme (RFC 3986 section 3.1), which has neither _
// nor ~.
func (p *Project) Scheme() string {
	return scheme().ReplaceAllString(strings.ToLower(p.Name()), "-")
}

// Folder returns the folder of the project. It does not begin with a hyphen, which cd takes as a flag.
func (p *Project) Folder() string {
	dir := p.Name()
	if p.Dir != "" {
		dir = filepath.Clean(p.Dir)
	}
	if strings.HasPrefix(dir, "-") {
		dir = "." + string(filepath.Separator) + dir
	}
	return dir
}

var (
	major   = pattern.Lazy(`^v[0-9]+$`)
	element = pattern.Lazy(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$`)
	device  = pattern.Lazy(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
	first   = pattern.Lazy(`^[A-Za-z]`)
	taken   = pattern.Lazy(`(?i)^(go\.(mod|sum|work)|(main|main_test)\.go|readme\.md)$`)
	short   = pattern.Lazy(`~[0-9]+$`)
	scheme  = pattern.Lazy(`[^a-z0-9.-]`)
)

// standard lists the first elements of the paths of the standard library. A module with such a path
// does not build.
var standard = strings.Fields(`archive arena bufio builtin bytes cmd cmp compress container context crypto database debug embed
encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime
simd slices sort std strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak`)

// CheckModule returns what is wrong with a path of a Go module: https://go.dev/ref/mod#go-mod-file-ident.
func CheckModule(module string) error {
	bad := func(why string) error {
		return fmt.Errorf("%q is not a path for a Go module: %s; write a name such as weather, or a path such as github.com/you/weather", text.Short(module), why)
	}
	if len(module) > 200 {
		return bad("it is longer than 200 bytes")
	}
	elements := strings.Split(module, "/")
	for i, e := range elements {
		stem, _, _ := strings.Cut(e, ".")
		switch {
		case e == "":
			return bad("an element between slashes is empty")
		case !element().MatchString(e):
			return bad("an element has other characters than letters, digits, and . _ ~ -, or begins with a dot")
		case strings.HasSuffix(e, "."):
			return bad("an element ends with a dot")
		case device().MatchString(stem):
			return bad(fmt.Sprintf("%q is a reserved name on Windows", stem))
		case short().MatchString(stem):
			return bad(fmt.Sprintf("%q looks like a short name of Windows", e))
		case i == 0 && e[0] == '-':
			return bad("it begins with a hyphen")
		}
	}
	if slices.Contains(standard, elements[0]) {
		return bad(fmt.Sprintf("%q belongs to the standard library", elements[0]))
	}
	if slices.Contains([]string{"all", "tool", "toolchain", "work"}, module) {
		return bad("the go command has another meaning for it")
	}
	if strings.HasPrefix(module+"/", patchbay+"/") {
		return bad("it belongs to Patchbay")
	}
	switch name := (&Project{Module: module}).Name(); {
	case !first().MatchString(name):
		return bad(fmt.Sprintf("the name %q does not begin with a letter", name))
	case taken().MatchString(name):
		return bad(fmt.Sprintf("the program %q would replace a file of the project", name))
	}
	return nil
}

// Write writes the project and returns its files, relative to Folder, in order.
func (p *Project) Write() (names []string, err error) {
	if err := CheckModule(p.Module); err != nil {
		return nil, err
	}
	files, err := p.files()
	if err != nil {
		return nil, err
	}
	return write(p.Folder(), files)
}

// file is one file of a project.
type file struct {
	name string
	data []byte
}

// files returns the files of the project.
func (p *Project) files() ([]file, error) {
	mod, err := p.goMod()
	if err != nil {
		return nil, err
	}
	name := p.Name()
	files := []file{{".gitignore", fmt.Appendf(nil, "/%s\n/%[1]s.exe\n", name)}, {"go.mod", mod}}
	entries, err := templates.ReadDir(p.Kind)
	if err != nil {
		return nil, fmt.Errorf("%q is not a kind of project; the kinds are server and client", p.Kind)
	}
	for _, e := range entries {
		data, err := templates.ReadFile(path.Join(p.Kind, e.Name()))
		if err != nil {
			return nil, err
		}
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
		data = bytes.ReplaceAll(data, []byte(placeholder+"://"), []byte(p.Scheme()+"://"))
		files = append(files, file{e.Name(), bytes.ReplaceAll(data, []byte(placeholder), []byte(name))})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// goMod returns the go.mod of the project.
func (p *Project) goMod() ([]byte, error) {
	version := p.Version
	if version == "" {
		version = "v0.0.0"
	}
	out := fmt.Appendf(nil, "module %s\n\ngo 1.26.0\n\nrequire %s %s\n", p.Module, patchbay, version)
	if p.Source == "" {
		return out, nil
	}
	source, err := filepath.Abs(p.Source)
	if err != nil {
		return nil, err
	}
	if err := checkSource(source); err != nil {
		return nil, err
	}
	return fmt.Appendf(out, "\nreplace %s => %s\n", patchbay, modString(filepath.ToSlash(source))), nil
}

// checkSource returns an error if a go.mod cannot replace the module of Patchbay with a folder.
func checkSource(dir string) error {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !regexp.MustCompile(`(?m)^module `+regexp.QuoteMeta(patchbay)+`\s*$`).Match(mod) {
		return fmt.Errorf("%s does not hold the source of Patchbay: its go.mod must begin with module %s", dir, patchbay)
	}
	if strings.Contains(filepath.ToSlash(dir), `\`) {
		return fmt.Errorf("the go command cannot replace a module with %q, a path with a backslash; use a symbolic link to it", dir)
	}
	return nil
}

// modString quotes a word of a go.mod if it needs that: https://go.dev/ref/mod#go-mod-file-lexical.
// The string of Go is the only quoted form that replace reads.
func modString(s string) string {
	special := func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" \"'`,()[]{}", r) }
	if strings.ContainsFunc(s, special) || strings.Contains(s, "//") || strings.Contains(s, "/*") {
		return strconv.Quote(s)
	}
	return s
}

// write writes files into a folder that is absent, or empty but for .git. After an error it removes what it has
// written.
func write(dir string, files []file) (names []string, err error) {
	made, err := prepare(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			return
		}
		for _, name := range names {
			os.Remove(filepath.Join(dir, name))
		}
		if made {
			os.Remove(dir)
		}
		names = nil
	}()
	for _, f := range files {
		out, err := os.OpenFile(filepath.Join(dir, f.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return names, unwritable(dir, err)
		}
		names = append(names, f.name)
		_, err = out.Write(f.data)
		if err = errors.Join(err, out.Close()); err != nil {
			return names, unwritable(dir, err)
		}
	}
	return names, nil
}

// prepare makes the folder, if it is absent.
func prepare(dir string) (made bool, err error) {
	if stem, _, _ := strings.Cut(filepath.Base(dir), "."); device().MatchString(stem) {
		return false, fmt.Errorf("%q is a reserved name on Windows; choose another folder", stem)
	}
	entries, err := os.ReadDir(dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".git" })
	switch {
	case err == nil && len(entries) > 0:
		return false, fmt.Errorf("the folder %s is not empty: it has %s; choose another name or folder", dir, text.Short(entries[0].Name()))
	case err == nil:
		return false, nil
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return false, fmt.Errorf("%s is a file; choose another name or folder", dir)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, unwritable(dir, err)
	}
	parent := filepath.Dir(dir)
	if info, err := os.Stat(parent); err != nil || !info.IsDir() {
		return false, fmt.Errorf("the folder %s, in which to make %s, does not exist; make it first", parent, filepath.Base(dir))
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return false, unwritable(dir, err)
	}
	return true, nil
}

// unwritable is the error for a folder that cannot be written to.
func unwritable(dir string, err error) error {
	return fmt.Errorf("cannot write to the folder %s: %w; choose another folder", dir, err)
}
