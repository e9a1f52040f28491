package guard

import (
	"os/exec"
	"path/filepath"
	"strings"
)

// Leash is a program's hold on a guard.
type Leash struct{}

// Command returns a command with an environment; it is found in the PATH there. There is no guard:
// the job object that package mcp puts the command into ends it, and every process it started, with
// this process.
func Command(command string, args, env []string) (*exec.Cmd, *Leash, error) {
	cmd := exec.Command(command, args...)
	cmd.Env = env
	if filepath.Base(command) == command {
		for _, dir := range filepath.SplitList(pathOf(env)) {
			if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil && filepath.IsAbs(found) {
				cmd.Path, cmd.Err = found, nil
				break
			}
		}
	}
	return cmd, &Leash{}, nil
}

// pathOf returns the PATH of an environment. Names are not case-sensitive, and the last one counts.
func pathOf(env []string) (path string) {
	for _, e := range env {
		if name, value, _ := strings.Cut(e, "="); strings.EqualFold(name, "PATH") {
			path = value
		}
	}
	return path
}

// Release does nothing.
func (*Leash) Release() {}

// HandOver does nothing: the system ends the command with this process.
func (*Leash) HandOver() {}
