package docs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
)

// The code of docs/audit.md.

func audited(srv *mcp.Server, gw *gateway.Gateway, serve func() error) error {
	key, err := audit.LoadKey("audit.key") // makes the key if the file is missing
	if err != nil {
		return err
	}
	log, err := audit.Open("audit.jsonl", &audit.Options{Key: key})
	if err != nil {
		return err
	}
	defer log.Close()
	trail := &audit.Trail{Log: log}
	srv.Use(trail.Outer())       // in front: a line when a call has ended or was denied
	gw.Middleware = trail.Around // around each server: a line before a call leaves
	return serve()
}

func auditedServer(srv *mcp.Server, trail *audit.Trail, rules policy.Policy) {
	srv.Use(trail.Outer(), policy.Middleware("notes", rules, nil), trail.Around("notes"))
}

// A server without a gateway has both lines of a call with the name of the server, and one line of a
// refused call, as the page says.
func TestAuditedServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "notes"}
	for _, name := range []string{"read", "erase"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "done", nil })
	}
	auditedServer(srv, &audit.Trail{Log: log}, policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name != "erase"}
	}))
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "desk"}, mcp.V2026_07_28)
	defer s.Close()
	for _, name := range []string{"read", "erase"} {
		if _, err := s.CallTool(t.Context(), name, nil); (err == nil) != (name == "read") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Tool != "" {
			got = append(got, string(e.Kind)+" "+e.Server.Name+"/"+e.Tool)
		}
	}
	if want := "call.begin notes/read, call.end notes/read, denied notes/erase"; strings.Join(got, ", ") != want {
		t.Errorf("the log has %q; want %s", got, want)
	}
}

// The code of the page writes a log that can be verified, and in which no secret of a call is.
func TestAuditPage(t *testing.T) {
	t.Chdir(t.TempDir())
	vault := &mcp.Server{Name: "vault"}
	type secret struct {
		Text string `json:"text"`
	}
	mcp.AddTool(vault, mcp.Tool{Name: "keep"}, func(_ context.Context, in secret) (string, error) {
		if begun, err := os.ReadFile("audit.jsonl"); err != nil || !bytes.Contains(begun, []byte(`"kind":"call.begin"`)) {
			t.Errorf("the call was made before its line: %v", err)
		}
		return "planted-result", nil
	})
	gw := &gateway.Gateway{Name: "gateway", Version: "1"}
	srv := &mcp.Server{Name: "gateway", Version: "1", Handler: gw}
	err := audited(srv, gw, func() error {
		if err := gw.Set("vault", vault); err != nil {
			return err
		}
		s := mcptest.Connect(t, srv, &mcp.Client{Name: "desk"}, mcp.V2026_07_28)
		defer s.Close()
		_, err := s.CallTool(t.Context(), "vault_keep", secret{"planted-argument"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.LoadPublicKey("audit.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify([]string{"audit.jsonl"}, &audit.VerifyOptions{Key: key}); err != nil || !r.Whole() || r.Checkpoints < 2 {
		t.Errorf("%+v, %v", r, err)
	}
	text, err := os.ReadFile("audit.jsonl")
	if err != nil || bytes.Contains(text, []byte("planted")) || !bytes.Contains(text, []byte(`"kind":"call.end"`)) {
		t.Errorf("%v: %s", err, text)
	}
}

// The lines of the page are a log, and its table has all kinds of lines that the package writes.
func TestAuditLines(t *testing.T) {
	page, err := os.ReadFile("audit.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(page), "\r\n", "\n")
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(text)
	if block == nil {
		t.Fatal("the page has no lines")
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(block[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify([]string{path}, nil); err != nil || !r.Whole() || r.Lines != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		if line, err := json.Marshal(e); err != nil || string(line) != string(e.Line()) {
			t.Errorf("a line has members of another format:\n%s\n%s", e.Line(), line)
		}
	}
	for _, kind := range []audit.Kind{audit.CallBegin, audit.CallRetry, audit.CallEnd, audit.TaskEnd, audit.Denied, audit.List, audit.Config, audit.Node, audit.Checkpoint} {
		if !strings.Contains(text, "| `"+string(kind)+"` |") {
			t.Errorf("the page does not describe %s", kind)
		}
	}
}
