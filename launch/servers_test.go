package launch

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

func builtins(name string, _ []string, _ *slog.Logger) (mcp.Handler, error) {
	if name == "none" {
		return nil, errors.New("there is no none")
	}
	return &mcp.Server{Name: name, Version: "1"}, nil
}

// A followed file: servers are added and removed as in the file; a faulty or refused file changes
// nothing.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {"a": {"builtin": "a"}, "b": {"builtin": "b"}}}`)
	s := &Servers{Env: &Env{Builtin: builtins}, Gateway: &gateway.Gateway{Name: "g", Version: "1"}}
	defer s.Close()
	said := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Follow(ctx, path, &Following{
			Accept: func(_ context.Context, f *config.File, _ config.Problems) Decision {
				if strings.Contains(string(f.Text), "evil") {
					return Decision{Fault: "not taken"}
				}
				return Decision{Take: true}
			},
			Changed: func(change string) { said <- change },
			Fault:   func(text string) { said <- text },
		})
	}()
	defer func() { cancel(); <-over }()
	want := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if got := <-said; !strings.Contains(got, text) {
				t.Errorf("%q, want %q", got, text)
			}
		}
	}
	want("+ a", "+ b")
	write(`{"mcpServers": {"b": {"builtin": "b", "args": ["x"]}, "c": {"builtin": "c"}}}`)
	want("~ b", "+ c", "- a")
	write(`{"mcpServers": {"evil": {"builtin": "evil"}}}`)
	want("not taken")
	write(`{`)
	want("has faults")
	if names := strings.Join(s.Names(), " "); names != "b c" {
		t.Errorf("the servers are %s, want b c", names)
	}
}

// The secrets of a server are learned before they are used, and no error for others contains one.
func TestErrorsHoldNoSecrets(t *testing.T) {
	t.Setenv("PATCHBAY_INPUT_KEY", "planted-secret")
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	text := `{"inputs": [{"id": "key", "type": "promptString", "password": true}], "mcpServers": {"a": {"command": "no-such-${input:key}"}}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Redact: trace.NewRedactor(nil)}
	_, err = e.Upstream(t.Context(), file.Servers[0], &mcp.Client{Name: "c"}, e.NewLog("a", nil))
	if err == nil || strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), trace.Redacted) {
		t.Errorf("the error is %v", err)
	}
	_, err = e.Open(t.Context(), config.Server{Name: "b", Builtin: "b"}, &mcp.Client{Name: "c"}, nil)
	if err == nil || !strings.Contains(err.Error(), "no built-in servers") {
		t.Errorf("without Builtin: %v", err)
	}
	e.Builtin = builtins
	if _, err = e.Open(t.Context(), config.Server{Name: "b", Builtin: "none"}, &mcp.Client{Name: "c"}, nil); err == nil || err.Error() != "there is no none" {
		t.Errorf("the error of Builtin: %v", err)
	}
}

// The error for a server that is not in the file names those that are, and a fault of the server its
// place.
func TestOpenNamedFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"clock": {"builtin": "clock"}, "other": {"command": 1}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"clok": `no server "clok"; it has clock`, "other": "mcp.json:1"} {
		if s, err := new(Env).OpenNamed(t.Context(), path, name, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", name, s, err, want)
		}
	}
}

// A nil client is one without functions, and a command that does not exist is exec.ErrNotFound.
func TestOpenNamedWithoutClient(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"a": {"builtin": "a"}, "b": {"command": "no-such-command-7"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &Env{Builtin: builtins}
	s, err := e.OpenNamed(t.Context(), path, "a", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Server().Name != "a" {
		t.Errorf("the server is %q, want a", s.Server().Name)
	}
	s.Close()
	if _, err := e.OpenNamed(t.Context(), path, "b", nil, nil); !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "no-such-command-7") {
		t.Errorf("a missing command = %v, want exec.ErrNotFound and its name", err)
	}
}
