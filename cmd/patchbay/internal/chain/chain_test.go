package chain

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
// same: the policy refuses the first call and the limit the second, before the policy, and the access
// log, where there is one, has both.
func TestOrder(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("default: allow\nrules: [{name: no x, when: name == \"x\", effect: deny}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := Config{Log: "-", Limits: []string{"tool:x=1/h"}, Policy: rules}
	about := func(string) Server { return Server{Trusted: true} }
	for _, tt := range []struct {
		name  string
		list  func(*Chain) ([]mcp.Middleware, error)
		lines int
	}{
		{"own", func(c *Chain) ([]mcp.Middleware, error) { return c.Own("s") }, 2},
		{"gateway", func(c *Chain) ([]mcp.Middleware, error) {
			list, err := c.Front()
			return append(list, c.Around(about)("s")), err
		}, 2},
		{"host", func(c *Chain) ([]mcp.Middleware, error) { return []mcp.Middleware{c.Host(about)("s")}, nil }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, lines := program()
			c, err := New(config, p)
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
		})
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
	if err != nil || len(front) > 0 || c.Around(nil) != nil || c.Host(nil) != nil || !c.Empty() {
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
	} {
		p, _ := program()
		_, err := New(tt.config, p)
		var of *Error
		if !errors.As(err, &of) || !strings.HasPrefix(of.Error(), tt.want) || of.Usage != tt.usage || of.Next == "" {
			t.Errorf("%+v: %v, want %q", tt.config, err, tt.want)
		}
	}
}
