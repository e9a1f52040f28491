package main

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// describe finds the commit and its version.
func (r *release) describe(snapshot bool) error {
	top, err := git(".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r.root = top
	if r.commit, err = git(top, "rev-parse", "HEAD"); err != nil {
		return err
	}
	stamp, err := git(top, "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	if r.time, err = time.Parse(time.RFC3339, stamp); err != nil {
		return err
	}
	r.time = r.time.UTC()
	changes, err := git(top, "status", "--porcelain")
	if err != nil {
		return err
	}
	tag, err := git(top, "tag", "--points-at", "HEAD", "--list", "v[0-9]*")
	if err != nil {
		return err
	}
	if snapshot {
		r.version = "0.0.0-" + r.time.Format("20060102150405") + "-" + r.commit[:12]
		if changes != "" {
			r.version += "-changed"
		}
		return nil
	}
	switch {
	case changes != "":
		return fmt.Errorf("the tree has changes that are not committed, so nobody could build this release again:\n%s\ncommit them, or try with --snapshot", changes)
	case tag == "":
		return fmt.Errorf("commit %s has no tag such as v0.1.0; set one with git tag, or try with --snapshot", r.commit[:12])
	case strings.Contains(tag, "\n"):
		return fmt.Errorf("commit %s has several versions: %s; keep one tag", r.commit[:12], strings.ReplaceAll(tag, "\n", ", "))
	}
	r.version = strings.TrimPrefix(tag, "v")
	return nil
}

// git runs git in a folder and returns its output without the last line break.
func git(dir string, args ...string) (string, error) {
	return output(dir, nil, "git", args...)
}

// output runs a command and returns its output without the last line break.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// notInlined has the server of NATS, which calls do not pass where nodes reach each other directly, compiled without inlining: the program is 1.2 MB smaller, and a download 0.5 MB.
const notInlined = "-gcflags=github.com/nats-io/nats-server/v2/server=-l"

// build builds the program for each system. Go takes the version from the tag of the commit.
func (r *release) build() error {
	for _, s := range systems {
		path := filepath.Join(r.work, s.String(), "patchbay")
		if s.os == "windows" {
			path += ".exe"
		}
		env := []string{"GOOS=" + s.os, "GOARCH=" + s.arch, "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"}
		if _, err := output(r.root, env, "go", "build", "-buildvcs=true", "-ldflags", "-s -w", notInlined, "-o", path, "./cmd/patchbay"); err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return err
		}
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: r.commit}) {
			return fmt.Errorf("the program for %s does not have its commit, so that it could not tell its version; build in a clone, and not in a worktree of git", s)
		}
		r.programs[s] = path
	}
	own, ok := r.programs[system{runtime.GOOS, runtime.GOARCH}]
	if !ok || strings.HasPrefix(r.version, "0.0.0-") {
		return nil
	}
	said, err := output(r.work, nil, own, "version")
	if err != nil {
		return err
	}
	if !strings.Contains(said, r.version) {
		return fmt.Errorf("the program says that it is %q, and the tag is v%s", said, r.version)
	}
	return nil
}

// own returns the program for this system, which writes its own completions.
func (r *release) own() (string, error) {
	path, ok := r.programs[system{runtime.GOOS, runtime.GOARCH}]
	if !ok {
		return "", errors.New("a release is not made for this system; use one of " + fmt.Sprint(systems))
	}
	return path, nil
}
