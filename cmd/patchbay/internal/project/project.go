// Package project reports which folders are projects, which a program may show to servers without a
// question, on Linux, macOS and Windows.
package project

import (
	"os"
	"os/user"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// folders knows which folders of a system are projects. Outside tests, its fields describe this
// system.
type folders struct {
	goos   string
	home   string // of the person; empty: unknown
	exists func(path string) bool
}

// Why returns the reason why a folder of this machine is not clearly a project, or "" if it is one.
// The argument dir is an absolute path without links.
func Why(dir string) string { return hereFolders().project(dir) }

func hereFolders() folders {
	return folders{runtime.GOOS, home(), func(path string) bool {
		_, err := os.Lstat(filepath.FromSlash(path))
		return err == nil
	}}
}

// home returns the home folder of the person: that of the environment, else that of the account; empty: unknown.
func home() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		account, err := user.Current()
		if err != nil || account.HomeDir == "" {
			return ""
		}
		dir = account.HomeDir
	}
	return ownfile.RealPath(dir)
}

// markers are files and folders that only projects contain.
var markers = []string{
	".git", ".hg", ".jj", ".svn",
	"go.mod", "go.work", "package.json", "deno.json", "pyproject.toml", "setup.py", "requirements.txt", "Cargo.toml", "pom.xml",
	"build.gradle", "build.gradle.kts", "Gemfile", "composer.json", "mix.exs", "Package.swift", "CMakeLists.txt", "Makefile",
}

// homes are files and folders that programs create in a home folder, wherever it is.
var homes = []string{".bash_history", ".bash_logout", ".zsh_history", ".ssh", ".gnupg", "NTUSER.DAT"}

// Folders that belong to the system with all their contents, and folders that contain those of
// others: people, mounted disks, programs, temporary files.
var (
	systemTrees = map[string][]string{
		"unix": {"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr", "/snap",
			"/var/backups", "/var/cache", "/var/db", "/var/lib", "/var/log", "/var/run", "/var/spool"},
		"darwin": {"/system", "/library", "/applications", "/cores", "/private/etc", "/private/var/db", "/private/var/log", "/private/var/root"},
		"windows": {"windows", "program files", "program files (x86)", "programdata", "$recycle.bin", "system volume information", "recovery",
			"perflogs"}, // below a drive
	}
	holders = map[string][]string{
		"unix": {"/home", "/home/*", "/root", "/mnt", "/mnt/*", "/media", "/media/*", "/media/*/*", "/opt", "/srv", "/tmp", "/var", "/var/tmp"},
		"darwin": {"/users", "/users/*", "/volumes", "/volumes/*", "/private", "/private/tmp", "/private/var", "/private/var/folders",
			"/private/var/folders/*", "/private/var/folders/*/*", "/private/var/folders/*/*/t"},
		"windows": {"users", "users/*", "temp"},
	}
)

// project returns the reason why a folder is not clearly a project, which may be shown to servers
// without a question, or "" if it is one. A project has a marker in it or above it. These are never
// projects: the root of a file system, a drive or a mounted disk; the home folder, folders above it
// and home folders of others; system folders; and hidden folders, such as those of settings.
//
// The argument dir is an absolute path without links.
func (f folders) project(dir string) (why string) {
	for at := f.slashed(dir); ; at = above(at) {
		if why := f.never(at); why != "" {
			if at == f.slashed(dir) {
				return why
			}
			return "no sign of a project, such as .git or go.mod"
		}
		if f.has(at, markers) {
			return ""
		}
	}
}

func (f folders) has(dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f.exists(strings.TrimSuffix(dir, "/") + "/" + name) })
}

// never returns the reason why a folder is not a project whatever it contains.
func (f folders) never(dir string) string {
	home := f.slashed(f.home)
	switch {
	case dir == "" || dir == "." || f.root(dir):
		return "the root of a file system"
	case home != "" && (f.same(dir, home) || f.within(home, dir)):
		return "the home folder, or above it"
	case f.hidden(dir):
		return "hidden, like settings"
	case f.has(dir, homes):
		return "looks like a home folder"
	}
	if disk := wslDisk().FindStringSubmatch(dir); f.goos == "linux" && disk != nil {
		return folders{goos: "windows", exists: f.exists}.never(disk[1] + ":/" + disk[2])
	}
	kind, below := f.goos, f.folded(dir)
	if f.goos == "windows" {
		_, below, _ = strings.Cut(below, "/")
		if strings.HasPrefix(dir, "//") { // //server/share/…
			below = strings.Join(strings.Split(dir, "/")[4:], "/")
		}
	} else {
		kind = "unix"
	}
	kinds := []string{kind}
	if f.goos == "darwin" {
		kinds = append(kinds, "darwin")
	}
	for _, kind := range kinds {
		for _, tree := range systemTrees[kind] {
			if below == tree || strings.HasPrefix(below, tree+"/") {
				return "belongs to the system"
			}
		}
		for _, pattern := range holders[kind] {
			if ok, _ := path.Match(pattern, below); ok {
				return "holds folders of other users"
			}
		}
	}
	return ""
}

// above returns the parent of a folder; the parent of a root is the root itself.
func above(dir string) string {
	i := strings.LastIndexByte(dir, '/')
	if i <= 0 || dir[i-1] == ':' {
		return dir[:i+1]
	}
	return dir[:i]
}

// wslDisk matches a Windows disk in WSL.
var wslDisk = pattern.Lazy(`^/mnt/([a-zA-Z])(?:/(.*))?$`)

// root reports whether a folder is the root of its disk.
func (f folders) root(dir string) bool {
	if f.goos == "windows" {
		rest, unc := strings.CutPrefix(dir, "//")
		if unc { // //server/share
			return strings.Count(strings.Trim(rest, "/"), "/") < 2
		}
		return len(strings.TrimRight(dir, "/")) <= 2
	}
	return dir == path.Dir(dir)
}

// hidden reports whether a part of a path has a hidden name.
func (f folders) hidden(dir string) bool {
	below := f.folded(dir)
	if home := f.folded(f.slashed(f.home)); home != "" && f.within(dir, home) {
		below = strings.TrimPrefix(below, home)
		first, _, _ := strings.Cut(strings.TrimPrefix(below, "/"), "/")
		if f.goos == "darwin" && first == "library" || f.goos == "windows" && first == "appdata" {
			return true
		}
	}
	return strings.Contains(below, "/.")
}

// within reports whether dir is below above.
func (f folders) within(dir, above string) bool {
	return strings.HasPrefix(f.folded(dir), strings.TrimRight(f.folded(above), "/")+"/")
}

func (f folders) same(a, b string) bool { return f.folded(a) == f.folded(b) }

// folded returns a path in the form in which the system compares it.
func (f folders) folded(dir string) string {
	if f.goos == "windows" || f.goos == "darwin" {
		return strings.ToLower(dir)
	}
	return dir
}

// slashed returns a path with slashes only, and without one at its end unless it is a root.
func (f folders) slashed(dir string) string {
	if dir == "" {
		return ""
	}
	if f.goos != "windows" {
		return path.Clean(dir)
	}
	dir = strings.ReplaceAll(dir, `\`, "/")
	dir = strings.TrimPrefix(dir, "//?/")
	unc := strings.HasPrefix(dir, "//")
	if dir = path.Clean(dir); unc {
		dir = "/" + dir
	}
	if len(dir) == 2 && dir[1] == ':' {
		dir += "/"
	}
	return dir
}
