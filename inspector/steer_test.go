package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// at makes a page of a gateway with the servers db and a/b, and returns what answers a request for it by a person.
func at(g Gateway) func(method, path string, by *auth.Principal) *httptest.ResponseRecorder {
	p := &Page{Gateway: g, Report: func() *health.Report {
		return &health.Report{Servers: []health.Server{{Name: "db", State: "ready"}, {Name: "a/b", State: "ready"}}}
	}}
	p.route()
	return func(method, path string, by *auth.Principal) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader("{}"))
		w := httptest.NewRecorder()
		p.mux.ServeHTTP(w, r.WithContext(asPerson(r.Context(), by)))
		return w
	}
}

func asPerson(ctx context.Context, by *auth.Principal) context.Context {
	if by == nil {
		return ctx
	}
	return context.WithValue(auth.With(ctx, by), personKey{}, person{by, by.HasRole(adminRole)})
}

var (
	ada = &auth.Principal{ID: "as#ada", Roles: []string{"admin"}}
	bob = &auth.Principal{ID: "as#bob"}
)

// A request of an administrator reaches the API of the gateway under the name of the person; those of others, and of a
// page without a gateway, reach nothing.
func TestAdmin(t *testing.T) {
	get := at(Gateway{Admin: func(by string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, by, " ", r.Method, " ", r.URL.RequestURI())
		})
	}})
	for _, tt := range []struct{ method, path, want string }{
		{"POST", "/ui/restart/db", "as#ada POST /admin/v1/servers/db/restart"},
		{"POST", "/ui/disable/a%2Fb", "as#ada POST /admin/v1/servers/a%2Fb/disable"},
		{"POST", "/ui/enable/db", "as#ada POST /admin/v1/servers/db/enable"},
		{"GET", "/ui/logs/db?follow=true&lines=3", "as#ada GET /admin/v1/servers/db/logs?follow=true&lines=3"},
		{"GET", "/ui/audit?who=*%23ada", "as#ada GET /admin/v1/audit?who=*%23ada"},
		{"GET", "/ui/audit/verify", "as#ada GET /admin/v1/audit/verify"},
	} {
		if w := get(tt.method, tt.path, ada); w.Code != http.StatusOK || w.Body.String() != tt.want {
			t.Errorf("%s %s: HTTP %d %s, want %s", tt.method, tt.path, w.Code, w.Body, tt.want)
		}
		if w := get(tt.method, tt.path, bob); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `as#bob does not have the role \"admin\"`) {
			t.Errorf("%s %s by bob: HTTP %d %s", tt.method, tt.path, w.Code, w.Body)
		}
		if w := get(tt.method, tt.path, nil); w.Code != http.StatusForbidden {
			t.Errorf("%s %s by nobody: HTTP %d %s", tt.method, tt.path, w.Code, w.Body)
		}
		if w := at(Gateway{})(tt.method, tt.path, ada); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "not that of a gateway") {
			t.Errorf("%s %s without a gateway: HTTP %d %s", tt.method, tt.path, w.Code, w.Body)
		}
	}
}

// Administrators alone start, cancel and see the login at a server of the page.
func TestLoginAdmission(t *testing.T) {
	get := at(Gateway{Login: func(_ context.Context, server, by, action string) (any, error) {
		return []string{server, by, action}, nil
	}})
	for _, tt := range []struct{ method, path, want string }{
		{"GET", "/ui/login/db", `["db","as#ada",""]`},
		{"POST", "/ui/login/a%2Fb", `["a/b","as#ada","start"]`},
		{"POST", "/ui/login/db/cancel", `["db","as#ada","cancel"]`},
	} {
		if w := get(tt.method, tt.path, ada); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != tt.want {
			t.Errorf("%s %s: HTTP %d %s, want %s", tt.method, tt.path, w.Code, w.Body, tt.want)
		}
		for _, by := range []*auth.Principal{bob, nil} {
			if w := get(tt.method, tt.path, by); w.Code != http.StatusForbidden {
				t.Errorf("%s %s by %v: HTTP %d %s", tt.method, tt.path, by, w.Code, w.Body)
			}
		}
		if w := at(Gateway{})(tt.method, tt.path, ada); w.Code != http.StatusNotFound {
			t.Errorf("%s %s without a gateway: HTTP %d %s", tt.method, tt.path, w.Code, w.Body)
		}
	}
	if w := get("POST", "/ui/login/nobody", ada); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), `no server has the name \"nobody\"`) {
		t.Errorf("of another server: HTTP %d %s", w.Code, w.Body)
	}
}

// The page offers what the gateway has.
func TestOffers(t *testing.T) {
	can := func(g Gateway) (out struct{ Can map[string]bool }) {
		if err := json.Unmarshal(at(g)("GET", "/ui/state", ada).Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	admin := func(string) http.Handler { return http.NotFoundHandler() }
	if got := can(Gateway{}).Can; got["steer"] || got["audit"] {
		t.Errorf("without a gateway: %v", got)
	}
	if got := can(Gateway{Admin: admin}).Can; !got["steer"] || got["audit"] {
		t.Errorf("without an audit log: %v", got)
	}
	if got := can(Gateway{Admin: admin, Audited: true}).Can; !got["audit"] {
		t.Errorf("with an audit log: %v", got)
	}
	var got State
	if err := json.Unmarshal(at(Gateway{Connect: func() []string { return []string{"Claude Code:", "  claude mcp add"} }})("GET", "/ui/state", ada).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Connect, []string{"Claude Code:", "  claude mcp add"}) {
		t.Errorf("lines for hosts: %q", got.Connect)
	}
}

// The traffic of a range has spans of it, of the servers of the page.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(metrics.Counters)
		call := func(server string) {
			h := c.Server(server)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				time.Sleep(10 * time.Millisecond)
				return mcp.RawResult(`{}`), nil
			}))
			h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"query"}`)})
		}
		call("db")
		call("removed")
		time.Sleep(20 * time.Minute)
		call("db")
		call("a/b")
		get := at(Gateway{Counters: c})
		for _, tt := range []struct{ query, want string }{
			{"", "60000: a/b 1, db 1"},
			{"?range=15m&server=db", "60000: db 1"},
			{"?range=1h", "60000: a/b 1, db 1 1"},
			{"?range=24h&server=db", "3600000: db 2"},
			{"?range=1h&server=db&tool=query", "600000: db query 1 1"},
			{"?range=1h&server=db&tool=other", "600000: db other"},
		} {
			w := get("GET", "/ui/metrics"+tt.query, ada)
			var out traffic
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%s: HTTP %d %s, %v", tt.query, w.Code, w.Body, err)
			}
			var list []string
			for _, s := range out.Series {
				one := strings.TrimSpace(s.Server + " " + s.Tool)
				for _, p := range s.Points {
					one += fmt.Sprint(" ", p.Calls)
					if p.At.Before(out.From) || p.At.After(out.To) || p.P50.Duration < 9*time.Millisecond {
						t.Errorf("%s: %+v is not from %v to %v", tt.query, p, out.From, out.To)
					}
				}
				list = append(list, one)
			}
			if got := fmt.Sprint(out.StepMs, ": ", strings.Join(list, ", ")); got != tt.want {
				t.Errorf("%s: %s, want %s", tt.query, got, tt.want)
			}
		}
		for _, tt := range []struct {
			query, want string
			code        int
		}{
			{"?range=2h", "range=2h is not 15m, 1h or 24h", 400},
			{"?rnge=1h", `no parameter \"rnge\"; it has: range, server, tool`, 400},
			{"?tool=query", "tool=query needs a server", 400},
			{"?server=db&tool=query&range=24h", "range=24h is not known of a tool, only 1h", 400},
			{"?range=1h&server=db&tool=query", "only administrators see the calls of a single tool", 403},
			{"?server=removed", `no server has the name \"removed\"`, 404},
		} {
			if w := get("GET", "/ui/metrics"+tt.query, bob); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) {
				t.Errorf("%s: HTTP %d %s, want %d %s", tt.query, w.Code, w.Body, tt.code, tt.want)
			}
		}
		if w := at(Gateway{})("GET", "/ui/metrics", bob); w.Code != 404 || !strings.Contains(w.Body.String(), "does not count calls") {
			t.Errorf("without counters: HTTP %d %s", w.Code, w.Body)
		}
	})
}

// The state that other people get has nothing of the machine of the owner, and nothing of the calls of others.
func TestStateForOthers(t *testing.T) {
	one := health.Server{
		Name: "db", State: "failed", Reason: "secret reason", Said: []string{"secret line"}, Debug: []string{"secret address"}, Asked: "secret caller", Tokens: 77777,
		Largest: []health.Tool{{Name: "secret tool"}}, Lost: "secret loss", Strays: 1, Stray: "secret print", Shadowed: []string{"secret://uri"},
		Replicas: []health.Replica{{Name: "one", Reason: "secret", Differs: "secret", Out: "secret"}},
		Minute:   &metrics.Server{Name: "db", Tools: []metrics.Tool{{Name: "secret tool"}}},
	}
	p := &Page{Report: func() *health.Report { return &health.Report{Servers: []health.Server{one}} }}
	read := func(by *auth.Principal) string {
		out, err := json.Marshal(p.state(asPerson(t.Context(), by), ""))
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := read(bob); strings.Contains(got, "secret") || strings.Contains(got, "77777") || !strings.Contains(got, `"lastMinute"`) {
		t.Errorf("others see %s", got)
	}
	one.Asked = bob.ID
	if got := read(bob); !strings.Contains(got, `"asked":"as#bob"`) || !strings.Contains(got, `"principal":"as#bob"`) {
		t.Errorf("the person who is asked sees %s", got)
	}
	one.Asked = "secret caller"
	if got := read(ada); strings.Count(got, "secret") != 12 || !strings.Contains(got, "77777") {
		t.Errorf("administrators see %s", got)
	}
}
