//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program says what it was built from, in each way to build it: in a clone at a tag, after it and with changes, without git, and by go install from
// a module proxy. Artefacts of a release are built in the first way. It takes minutes, so it runs with the other tests of a release.
func TestVersionOfEachBuild(t *testing.T) {
	if os.Getenv("PATCHBAY_RELEASE") == "" {
		t.Skip("PATCHBAY_RELEASE names no folder with a release")
	}
	clone, bin := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	command(t, "git", "clone", "-q", filepath.Join("..", ".."), clone)
	t.Chdir(clone)
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, os.DevNull)
	}
	for name, value := range map[string]string{"GOFLAGS": "-trimpath", "CGO_ENABLED": "0", "GOBIN": bin} {
		t.Setenv(name, value)
	}
	commit := strings.TrimSpace(command(t, "git", "rev-parse", "HEAD"))[:12]
	says := func(how, want string, build ...string) {
		t.Helper()
		program := filepath.Join(bin, "patchbay")
		if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", how, err, out)
			return
		}
		out := command(t, program, "version")
		if !strings.HasPrefix(out, "patchbay "+want+", go") {
			t.Errorf("%s: want %q in\n%s", how, want, out)
		}
	}
	own := []string{"install", "./cmd/patchbay"}
	says("before the first tag", "0.1.0-dev ("+commit+")", own...)
	says("without git", "0.1.0-dev", "install", "-buildvcs=false", "./cmd/patchbay")
	command(t, "git", "tag", "v0.99.7")
	says("at a tag", "0.99.7 ("+commit+")", own...)
	proxy(t)
	t.Chdir(t.TempDir())
	says("go install of a tag", "0.99.7", "install", modulePath+"/cmd/patchbay@v0.99.7")
	t.Chdir(clone)
	if err := os.WriteFile("README.md", []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	says("at a tag, with changes", "0.99.7+dirty ("+commit+", modified)", own...)
	command(t, "git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qam", "after")
	commit = strings.TrimSpace(command(t, "git", "rev-parse", "HEAD"))[:12]
	says("after a tag", "0.99.8-dev ("+commit+")", own...)
}

const modulePath = "github.com/patchbay-dev/patchbay"

// proxy serves the module of the working folder, which is at v0.99.7, as a module proxy does, and the others from the cache.
func proxy(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"archive", "--format=zip", "--prefix=" + modulePath + "@v0.99.7/", "-o", filepath.Join(at, "v0.99.7.zip"), "HEAD", "."}
	for _, name := range strings.Fields(command(t, "git", "ls-files", "*/go.mod")) {
		args = append(args, ":(exclude)"+filepath.Dir(name)) // other modules
	}
	command(t, "git", args...)
	copyFile(t, "go.mod", filepath.Join(at, "v0.99.7.mod"))
	for name, text := range map[string]string{"list": "v0.99.7\n", "v0.99.7.info": `{"Version":"v0.99.7","Time":"2026-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache := strings.TrimSpace(command(t, "go", "env", "GOMODCACHE"))
	t.Setenv("GOPROXY", "file://"+dir+",file://"+filepath.Join(cache, "cache", "download"))
	t.Setenv("GOMODCACHE", t.TempDir()) // so that the real one never has this version
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOFLAGS", "-trimpath -modcacherw")
}
