// Package rerun returns commands by which a person, or another program, runs this program again, and
// lines to paste into hosts that connect to it.
package rerun

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Command returns the words by which a person runs this program again, as they typed them if that
// can be found out.
func Command() string {
	exe, err := os.Executable()
	if err != nil {
		return "patchbay"
	}
	if byGoRun(exe) {
		if _, err := os.Stat(filepath.Join("cmd", "patchbay", "main.go")); err == nil {
			return "go run ./cmd/patchbay"
		}
		if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
			return "go run " + info.Path + "@" + info.Main.Version
		}
		return "patchbay"
	}
	if onPath(exe) != "" {
		return "patchbay"
	}
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return screen.Shell([]string{os.Args[0]})
	}
	return screen.Shell([]string{exe})
}

// Path returns the absolute path by which another program starts this one, or "" if it has no
// lasting path.
func Path() string {
	exe, err := os.Executable()
	if err != nil || byGoRun(exe) {
		return ""
	}
	if path := onPath(exe); path != "" {
		return path // a link may survive an update of its target
	}
	return exe
}

// byGoRun reports whether "go run" built an executable, which "go run" removes when the program
// ends.
func byGoRun(exe string) bool {
	dir, name := filepath.Split(exe)
	return filepath.Base(dir) == "exe" && strings.Contains(dir, "go-build") && strings.HasPrefix(name, "patchbay")
}

// onPath returns the path at which the shell finds this executable as "patchbay", or "" if it finds
// another or none.
func onPath(exe string) string {
	path, err := exec.LookPath("patchbay")
	if err != nil {
		return ""
	}
	a, errA := os.Stat(exe)
	b, errB := os.Stat(path)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}
