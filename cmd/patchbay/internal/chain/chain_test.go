package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// program returns a program whose access log is the returned text, complete after Close.
func program() (Program, *strings.Builder) {
	var lines strings.Builder
	return Program{Logger: slog.New(slog.DiscardHandler), Lines: &lines}, &lines
}

// calls calls the tool x twice through middlewares, and returns the errors.
func calls(list ...mcp.Middleware) (first, second error) {
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "x"}, func(context.Context, struct{}) (string, error) { return "done", nil })
	var h mcp.Handler = srv
	for _, mw := range slices.Backward(list) {
		h = mw(h)
	}
	call := func() error {
		_, err := h.Handle(context.Background(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`)})
		return err
	}
	return call(), call()
}

// In front of a server of this program, of a gateway and around a server of a host the order is the
// same: the policy refuses the first call and the limit the second, before the policy. The access log,
// where there is one, and the audit log have both.
func TestOrder(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("default: allow\nrules: [{name: no x, when: name == \"x\", effect: deny}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	about := func(server string) Server { return Server{Trusted: true} }
	for _, tt := range []struct {
		name  string
		list  func(*Chain) ([]mcp.Middleware, error)
		lines int
	}{
		{"own", func(c *Chain) ([]mcp.Middleware, error) { return c.Own("s", about("s")) }, 2},
		{"gateway", func(c *Chain) ([]mcp.Middleware, error) {
			list, err := c.Front()
			return append(list, c.Around(about)("s")), err
		}, 2},
		{"host", func(c *Chain) ([]mcp.Middleware, error) { return []mcp.Middleware{c.Host(about)("s")}, nil }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, lines := program()
			log := filepath.Join(t.TempDir(), "audit.jsonl")
			c, err := New(Config{Log: "-", Limits: []string{"tool:x=1/h"}, Policy: rules, Audit: log}, p)
			if err != nil {
				t.Fatal(err)
			}
			counters := &metrics.Counters{Owner: func(tool string) (string, string) { return "s", tool }}
			if tt.lines > 0 {
				c.Count(counters)
			}
			list, err := tt.list(c)
			if err != nil {
				t.Fatal(err)
			}
			first, second := calls(list...)
			c.Close()
			var late *limit.Error
			if first == nil || errors.As(first, &late) {
				t.Errorf("the first call has the error %v, want that of the policy", first)
			}
			if !errors.As(second, &late) {
				t.Errorf("the second call has the error %v, want that of the limit", second)
			}
			if counted := counters.Read(metrics.Total); tt.lines > 0 && (len(counted.Servers) != 1 || counted.Servers[0].Errors != metrics.Errors{Policy: 1, Limit: 1}) {
				t.Errorf("the counters have %+v, want an error of the policy and one of the limit", counted.Servers)
			}
			if got := strings.Count(lines.String(), `"tool":"x"`); got != tt.lines {
				t.Errorf("the access log has %d lines, want %d: %s", got, tt.lines, lines)
			}
			want := []string{"node start", "config start", `denied by "no x"`, `denied by ""`, "node stop"}
			if got := facts(t, log); !slices.Equal(got, want) {
				t.Errorf("the audit log has %q, want %q", got, want)
			}
		})
	}
}

// facts returns what the lines of an audit log say.
func facts(t *testing.T, path string) (list []string) {
	t.Helper()
	for e, err := range audit.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		fact := string(e.Kind) + " " + e.Event + e.Tool + e.Outcome
		if e.Kind == audit.Denied {
			rule := ""
			if e.Decision != nil {
				rule = e.Decision.Rule
			}
			fact = fmt.Sprintf("denied by %q", rule)
		}
		list = append(list, fact)
	}
	return list
}

// The line before a call has what the steps in front know, and it is in the log before the call.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "audit.jsonl")
	write(t, rules, "default: deny\nrules: [{name: any x, when: name == \"x\", effect: allow}]\n")
	write(t, filepath.Join(dir, "gateway.yaml"), `
audit: {file: audit.jsonl, key: audit.key, arguments: none, sync: none}
teams: {from: principal.claims.org.groups, members: {ops: [ops], dev: ["eng-*"]}}
`)
	p, _ := program()
	file, err := p.Load(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "audit.key")); err == nil {
		t.Error("Load has made the key")
	}
	c, err := New(Config{File: file, Policy: rules, HTTP: true}, p)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Front()
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "x"}, func(context.Context, struct{}) (string, error) {
		before = facts(t, log)
		return "done", nil
	})
	h := c.Around(func(string) Server {
		return Server{Config: config.Server{Name: "s", URL: "https://ada:pass@s.example/mcp?token=x"}}
	})("s")(srv)
	for _, mw := range slices.Backward(list) {
		h = mw(h)
	}
	const identity = "s https://[redacted]@s.example/mcp?token=[redacted]"
	ctx := auth.With(t.Context(), &auth.Principal{ID: "ada", Claims: map[string]any{"org": map[string]any{"groups": []any{1.5, "eng-db"}}}})
	var listener listen.Options
	c.Listen(&listener)
	listener.Around("http", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := h.Handle(r.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x"}`)}); err != nil {
			t.Error(err)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", nil))
	var state health.Report
	if c.Report(&state); state.Audit == nil || state.Audit.File != log || state.Audit.Error != "" || state.Audit.Dropped != 0 || state.State != "" || state.Unapplied != nil {
		t.Errorf("the state is %+v with the audit log %+v", state, state.Audit)
	}
	c.Close()
	if !slices.Contains(before, "call.begin x") || slices.Contains(before, "call.end xok") {
		t.Errorf("during the call the log has %q", before)
	}
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case audit.CallBegin, audit.CallEnd:
			if e.Principal == nil || e.Principal.ID != "ada" || e.Team != "dev" || e.Client == nil || e.Client.IP != "192.0.2.1" || e.Arguments != nil ||
				e.Server == nil || *e.Server != (audit.Server{Name: "s", Identity: identity}) || e.Decision == nil || e.Decision.Rule != "any x" {
				t.Errorf("a line is %s", e.Line())
			}
		case audit.Config:
			if detail := string(e.Detail); !strings.Contains(detail, `"gateway":"`+file.Digest) || !strings.Contains(detail, `"policy":"`+c.rules.Digest()) {
				t.Errorf("the line of the configuration has %s", detail)
			}
		}
	}
	key, err := audit.LoadPublicKey(filepath.Join(dir, "audit.key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify([]string{log}, &audit.VerifyOptions{Key: key}); err != nil || !r.Whole() {
		t.Errorf("the log is not whole: %+v, %v", r, err)
	}
}

// Without steps there are no middlewares.
func TestEmpty(t *testing.T) {
	p, _ := program()
	c, err := New(Config{}, p)
	if err != nil {
		t.Fatal(err)
	}
	front, err := c.Front()
	if err != nil || len(front) > 0 || c.Around(nil) != nil || c.Host(nil) != nil {
		t.Errorf("an empty chain has middlewares: %v, %v", front, err)
	}
	c.Close()
}

// Limits that are replaced count from the next call on, and none can take their place.
func TestReplacedLimits(t *testing.T) {
	l := new(limits)
	mw := l.limit
	if first, second := calls(mw); first != nil || second != nil {
		t.Errorf("without limits: %v, %v", first, second)
	}
	strict, err := newLimiter([]string{"tool:x=1/h"}, false)
	if err != nil {
		t.Fatal(err)
	}
	l.now.Store(strict)
	var late *limit.Error
	if first, second := calls(mw); first != nil || !errors.As(second, &late) {
		t.Errorf("with a limit: %v, %v", first, second)
	}
	l.now.Store(nil)
	if first, second := calls(mw); first != nil || second != nil {
		t.Errorf("after the limit: %v", first)
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		config Config
		want   string
		usage  bool
	}{
		{Config{Limits: []string{"fast"}}, "--limit fast: ", true},
		{Config{Limits: []string{"address=1/s"}}, "--limit address= and proxy= need HTTP; stdio has no addresses", true},
		{Config{Limits: []string{"proxy=10.0.0.0/8"}, HTTP: true}, "--limit proxy= needs another limit", true},
		{Config{Policy: "nowhere.yaml"}, "--policy: ", false},
		{Config{Audit: t.TempDir()}, "--audit: audit log: ", true},
	} {
		p, _ := program()
		_, err := New(tt.config, p)
		var of *Error
		if !errors.As(err, &of) || !strings.HasPrefix(of.Error(), tt.want) || of.Usage != tt.usage || of.Next == "" {
			t.Errorf("%+v: %v, want %q", tt.config, err, tt.want)
		}
	}
}
