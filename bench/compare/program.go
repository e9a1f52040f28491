//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// folders holds the module and folder of the programs of each peer.
var folders = map[string]struct{ module, folder string }{
	"patchbay": {".", "bench/target"},
	"bare":     {"bench/peers", "bare"},
	"go-sdk":   {"bench/peers", "gosdk"},
	"mcp-go":   {"bench/peers", "mcpgo"},
}

// programs are the programs under test, in a folder of their own.
type programs struct{ dir string }

func (p programs) server(peer string) string { return filepath.Join(p.dir, peer+"-server") }
func (p programs) client(peer string) string { return filepath.Join(p.dir, peer+"-client") }
func (p programs) inproc(peer string) string { return filepath.Join(p.dir, peer+"-inproc") }
func (p programs) gateway() string           { return filepath.Join(p.dir, "patchbay") }
func (p programs) remove()                   { os.RemoveAll(p.dir) }

// build builds the programs of peers. The working folder must be within the module.
func build(ctx context.Context, peers []string) (programs, error) {
	mod, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/patchbay-dev/patchbay").Output()
	root := string(bytes.TrimSpace(mod))
	if err != nil || root == "" {
		return programs{}, errors.New("run it in the folder of the repository: go run ./bench/compare")
	}
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return programs{}, err
	}
	p := programs{dir}
	goTool := func(module string, args ...string) {
		if err != nil {
			return
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = filepath.Join(root, module)
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("go %v in %s: %w\n%s", args, module, err, out)
		}
	}
	goTool(".", "build", "-o", p.gateway(), "./cmd/patchbay")
	for _, peer := range peers {
		f := folders[peer]
		goTool(f.module, "build", "-o", p.server(peer), "./"+f.folder+"/server")
		goTool(f.module, "build", "-o", p.client(peer), "./"+f.folder+"/client")
		goTool(f.module, "test", "-c", "-o", p.inproc(peer), "./"+f.folder+"/inproc")
	}
	if err != nil {
		p.remove()
		return programs{}, err
	}
	return p, nil
}
