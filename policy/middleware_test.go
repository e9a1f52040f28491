package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/middleware"
	"github.com/patchbay-dev/patchbay/policy"
)

type nothing struct{}

// newShop is a server with one of each that is open, one that needs a scope, and one that is
// hidden.
func newShop() *mcp.Server {
	srv := &mcp.Server{Name: "shop", Version: "1", Cache: mcp.CacheHint{TTL: time.Hour, Public: true}}
	yes := true
	for _, name := range []string{"open", "scoped", "hidden", "looks"} {
		tool := mcp.Tool{Name: name}
		if name == "looks" {
			tool.Annotations = &mcp.ToolAnnotations{ReadOnly: &yes}
		}
		mcp.AddTool(srv, tool, func(_ context.Context, in struct {
			Amount int `json:"amount,omitempty"`
		}) (string, error) {
			return fmt.Sprint(name, " ", in.Amount), nil
		})
		suggest := func(context.Context, string, map[string]string) ([]string, error) { return []string{name}, nil }
		mcp.AddPrompt(srv, mcp.Prompt{Name: name, Complete: map[string]mcp.CompleteFunc{"to": suggest}}, func(context.Context, struct {
			To string `json:"to,omitempty"`
		}) (string, error) {
			return name, nil
		})
		mcp.AddResource(srv, mcp.Resource{URI: "mem://" + name, Name: name}, func(context.Context) (*mcp.ReadResult, error) {
			return &mcp.ReadResult{Contents: []mcp.ResourceContents{{URI: "mem://" + name, Text: name}}, Cache: mcp.CacheHint{TTL: time.Hour, Public: true}}, nil
		})
		mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{URITemplate: "mem://" + name + "/{id}", Name: name, Complete: map[string]mcp.CompleteFunc{"id": suggest}},
			func(_ context.Context, in struct {
				ID string `json:"id"`
			}) (string, error) {
				return name + in.ID, nil
			})
	}
	mcp.AddTool(srv, mcp.Tool{Name: "job", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(context.Context, nothing) (string, error) { return "done", nil })
	srv.HandleMethod("com.example/method", func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.RawResult(`{}`), nil })
	return srv
}

// shopPolicy needs the scope s for "scoped" features, refuses "hidden" ones and allows the rest.
func shopPolicy(_ context.Context, a *policy.Access) policy.Decision {
	name := a.Name + a.Template
	switch {
	case strings.Contains(name, "scoped"):
		if a.Principal.HasScope("s") {
			return policy.Decision{Allow: true}
		}
		return policy.Decision{Rule: "needs s", Scopes: []string{"s"}}
	case strings.HasSuffix(name, "hidden") || strings.Contains(name, "hidden/"):
		return policy.Decision{Rule: "hidden"}
	case a.Kind == "":
		return policy.Decision{Rule: "no extensions"}
	case name == "open" && !a.Partial && bytes.Contains(a.Arguments, []byte("999")):
		return policy.Decision{Rule: "too much", Reason: "at most 998"}
	}
	return policy.Decision{Allow: true}
}

// as puts a caller in front of everything.
func as(p *auth.Principal) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			return next.Handle(auth.With(ctx, p), req)
		})
	}
}

// fronts are the ways to put a policy in front of the shop, each with the prefix of its names.
var fronts = []struct {
	name, prefix string
	around       func(srv *mcp.Server, caller mcp.Middleware, pol mcp.Middleware) *mcp.Server
}{
	{"server", "", func(srv *mcp.Server, caller, pol mcp.Middleware) *mcp.Server {
		srv.Use(caller, pol)
		return srv
	}},
	{"gateway", "shop_", func(srv *mcp.Server, caller, pol mcp.Middleware) *mcp.Server {
		return behind(srv, caller, pol, func(g *gateway.Gateway) mcp.Handler { return g })
	}},
	{"bridge", "", func(srv *mcp.Server, caller, pol mcp.Middleware) *mcp.Server {
		return behind(srv, caller, pol, func(g *gateway.Gateway) mcp.Handler { return g.Direct("shop") })
	}},
}

// behind puts a server behind a gateway whose front says that everything is public.
func behind(srv *mcp.Server, caller, pol mcp.Middleware, of func(*gateway.Gateway) mcp.Handler) *mcp.Server {
	g := &gateway.Gateway{Name: "gw", Middleware: func(string) mcp.Middleware { return pol }}
	if err := g.Set("shop", srv); err != nil {
		panic(err)
	}
	front := &mcp.Server{Name: "gw", Version: "1", Handler: of(g), Cache: mcp.CacheHint{TTL: time.Hour, Public: true}}
	front.Use(caller)
	return front
}

// client returns the client of the tests.
func client() *mcp.Client { return &mcp.Client{Name: "test", Version: "1"} }

// names collects the names in a list.
func names[T any](t *testing.T, list func(func(*T, error) bool), name func(*T) string) (all []string) {
	t.Helper()
	for e, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, name(e))
	}
	return all
}

// On every revision and wire, in front of a server, of a gateway and of a bridge: lists have the
// usable features, and calls of the others are refused with the right error. CACHE-26-022: a call
// of a feature that is not in the caller's list is refused.
func TestEveryFeatureIsDecided(t *testing.T) {
	for i, front := range fronts {
		for _, scoped := range []bool{false, true} {
			if long.Raced() && scoped != (i%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s/scoped=%v", front.name, scoped), func(t *testing.T) {
				p := &auth.Principal{ID: "as#ada"}
				if scoped {
					p.Scopes = []string{"s"}
				}
				newServer := func() *mcp.Server {
					return front.around(newShop(), as(p), policy.Middleware("shop", policy.Func(shopPolicy), nil))
				}
				mcptest.Every(t, newServer, client, func(t *testing.T, s *mcp.Session) { testDecided(t, s, front.prefix, scoped) })
			})
		}
	}
}

func testDecided(t *testing.T, s *mcp.Session, prefix string, scoped bool) {
	ctx := t.Context()
	features := []string{"open", "looks"}
	if scoped {
		features = []string{"open", "scoped", "looks"}
	}
	want := func(form string) (all []string) {
		for _, f := range features {
			all = append(all, fmt.Sprintf(form, f))
		}
		return all
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	same("tools", names(t, s.Tools(ctx), func(e *mcp.Tool) string { return e.Name }), append(want(prefix+"%s"), prefix+"job"))
	same("prompts", names(t, s.Prompts(ctx), func(e *mcp.Prompt) string { return e.Name }), want(prefix+"%s"))
	same("resources", names(t, s.Resources(ctx), func(e *mcp.Resource) string { return e.URI }), want("mem://%s"))
	same("templates", names(t, s.ResourceTemplates(ctx), func(e *mcp.ResourceTemplate) string { return e.URITemplate }), want("mem://%s/{id}"))

	uses := map[string]func(name string) error{
		"tools/call": func(name string) error { _, err := s.CallTool(ctx, prefix+name, nothing{}); return err },
		"prompts/get": func(name string) error {
			_, err := s.Raw(ctx, "prompts/get", map[string]any{"name": prefix + name})
			return err
		},
		"resources/read": func(name string) error {
			_, err := s.Raw(ctx, "resources/read", map[string]any{"uri": "mem://" + name})
			return err
		},
		"resources/read of a template": func(name string) error {
			_, err := s.Raw(ctx, "resources/read", map[string]any{"uri": "mem://" + name + "/7"})
			return err
		},
		"completion/complete of a prompt": func(name string) error {
			_, err := s.Raw(ctx, "completion/complete", map[string]any{"ref": map[string]string{"type": "ref/prompt", "name": prefix + name}, "argument": map[string]string{"name": "to", "value": ""}})
			return err
		},
		"completion/complete of a template": func(name string) error {
			_, err := s.Raw(ctx, "completion/complete", map[string]any{"ref": map[string]string{"type": "ref/resource", "uri": "mem://" + name + "/{id}"}, "argument": map[string]string{"name": "id", "value": ""}})
			return err
		},
	}
	for what, use := range uses {
		if err := use("open"); err != nil {
			t.Errorf("%s of what is open: %v", what, err)
		}
		err := use("scoped")
		switch {
		case scoped && err != nil:
			t.Errorf("%s with the scope: %v", what, err)
		case !scoped && (err == nil || !strings.Contains(err.Error(), "scope")):
			t.Errorf("%s without the scope: %v, want that it is named", what, err)
		}
		// A hidden feature and a missing one have the same answer.
		there, not := use("hidden"), use("nothinghidden")
		var one, other *mcp.Error
		if !errors.As(there, &one) || !errors.As(not, &other) {
			t.Errorf("%s of what is hidden: %v; of what is not there: %v", what, there, not)
			continue
		}
		if strings.ReplaceAll(one.Message+string(one.Data), "nothinghidden", "hidden") != strings.ReplaceAll(other.Message+string(other.Data), "nothinghidden", "hidden") || one.Code != other.Code {
			t.Errorf("%s of what is hidden: %d %q %s; of what is not there: %d %q %s", what, one.Code, one.Message, one.Data, other.Code, other.Message, other.Data)
		}
	}
	// Refused only for the arguments.
	var rpc *mcp.Error
	_, err := s.CallTool(ctx, prefix+"open", map[string]int{"amount": 999})
	if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidRequest || !strings.Contains(rpc.Message, `"too much"`) || !strings.Contains(rpc.Message, "at most 998") {
		t.Errorf("with arguments that are refused: %v", err)
	}
	if prefix == "" && s.Revision() == mcp.V2026_07_28 {
		if _, err := s.Raw(ctx, "com.example/method", nothing{}); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("a method of an extension: %v", err)
		}
	}
}

// Results for one caller must not reach others: cache hints are private, whatever the server says
// (CACHE-26-018, CACHE-26-022).
func TestResultsArePrivate(t *testing.T) {
	for _, front := range fronts {
		s := mcptest.Connect(t, front.around(newShop(), as(nil), policy.Middleware("shop", policy.Func(shopPolicy), nil)), client(), mcp.V2026_07_28)
		for method, params := range map[string]any{
			"tools/list": nothing{}, "prompts/list": nothing{}, "resources/list": nothing{}, "resources/templates/list": nothing{},
			"resources/read": map[string]string{"uri": "mem://open"},
		} {
			raw, err := s.Raw(t.Context(), method, params)
			if err != nil || !bytes.Contains(raw, []byte(`"cacheScope":"private"`)) || bytes.Contains(raw, []byte(`"public"`)) {
				t.Errorf("%s: %s: %s, %v; want it to be private", front.name, method, raw, err)
			}
		}
	}
}

// Two callers share a server and a gateway, and neither sees what the other may.
func TestCallersDoNotShareLists(t *testing.T) {
	for _, front := range fronts {
		var who atomic.Pointer[auth.Principal]
		caller := func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				return next.Handle(auth.With(ctx, who.Load()), req)
			})
		}
		srv := front.around(newShop(), caller, policy.Middleware("shop", policy.Func(shopPolicy), nil))
		for range 2 {
			for _, p := range []*auth.Principal{{ID: "ada", Scopes: []string{"s"}}, {ID: "eve"}, nil} {
				who.Store(p)
				res, err := srv.Handle(t.Context(), &mcp.Request{Method: "tools/list"})
				if err != nil {
					t.Fatal(err)
				}
				if sees := bytes.Contains(res.JSON(), []byte("scoped")); sees != p.HasScope("s") {
					t.Errorf("%s: %v sees it: %v", front.name, p, sees)
				}
			}
		}
	}
}

// A subscription is refused if a resource is, and drops notifications about resources that are
// refused later.
func TestListen(t *testing.T) {
	for _, front := range fronts {
		for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(front.name+"/"+string(rev), func(t *testing.T) {
				var closed atomic.Bool
				pol := policy.Func(func(ctx context.Context, a *policy.Access) policy.Decision {
					if a.Name == "mem://looks" && closed.Load() {
						return policy.Decision{}
					}
					return shopPolicy(ctx, a)
				})
				shop := newShop()
				s := mcptest.Connect(t, front.around(shop, as(&auth.Principal{ID: "ada"}), policy.Middleware("shop", pol, nil)), client(), rev)
				for _, uri := range []string{"mem://scoped", "mem://hidden", "mem://nothinghidden"} {
					for e, err := range s.Watch(t.Context(), "mem://open", uri) {
						if err == nil {
							t.Errorf("subscribed to %s, and was told %v", uri, e)
						}
						break
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				var told []string
				for e, err := range s.Watch(ctx, "mem://looks", "mem://open") {
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case e.Method == "notifications/subscriptions/acknowledged":
						shop.ResourceUpdated("mem://looks")
					case e.URI == "mem://looks":
						closed.Store(true)
						shop.ResourceUpdated("mem://looks")
						shop.ResourceUpdated("mem://open")
					}
					if e.URI != "" {
						told = append(told, e.URI)
					}
					if e.URI == "mem://open" {
						break
					}
				}
				if want := []string{"mem://looks", "mem://open"}; !slices.Equal(told, want) {
					t.Errorf("told of %q, want %q", told, want)
				}
			})
		}
	}
}

// A task is refused when its tool is: it seems not to exist, is not listed, and is not changed.
func TestTasks(t *testing.T) {
	for _, front := range fronts {
		for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(front.name+"/"+string(rev), func(t *testing.T) {
				var closed atomic.Bool
				pol := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
					return policy.Decision{Allow: !closed.Load() || a.Name != "job"}
				})
				s := mcptest.Connect(t, front.around(newShop(), as(&auth.Principal{ID: "ada"}), policy.Middleware("shop", pol, nil)), client(), rev)
				task, err := s.StartTask(t.Context(), front.prefix+"job", nothing{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := task.Info(t.Context()); err != nil {
					t.Fatal(err)
				}
				closed.Store(true)
				var rpc *mcp.Error
				if info, err := task.Info(t.Context()); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("tasks/get of a refused tool: %+v, %v", info, err)
				}
				if err := task.Cancel(t.Context()); !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
					t.Errorf("tasks/cancel of a refused tool: %v", err)
				}
				closed.Store(false)
				if res, err := task.Wait(t.Context()); err != nil || res.Text() != "done" {
					t.Errorf("the task afterwards: %v, %v", res, err)
				}
			})
		}
	}
}

// A server is asked for annotations only if the policy needs them.
func TestAnnotations(t *testing.T) {
	for _, front := range fronts {
		var asks atomic.Bool
		pol := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
			if !asks.Load() {
				return policy.Decision{Allow: true}
			}
			n := a.Annotations()
			return policy.Decision{Allow: n != nil && n.ReadOnly}
		})
		var lists atomic.Int32
		shop := newShop()
		srv := front.around(shop, as(nil), policy.Foreign("shop", true, pol, nil))
		shop.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == "tools/list" {
					lists.Add(1)
				}
				return next.Handle(ctx, req)
			})
		})
		call := func(name string) error {
			_, err := srv.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"` + front.prefix + name + `"}`)})
			return err
		}
		if err := call("open"); err != nil { // a gateway reads the list before its first call
			t.Errorf("%s: %v", front.name, err)
		}
		before := lists.Load()
		if err := call("open"); err != nil || lists.Load() != before {
			t.Errorf("%s: %v, after %d lists", front.name, err, lists.Load()-before)
		}
		asks.Store(true)
		if err := call("open"); err == nil {
			t.Errorf("%s: what is not said to be read-only passes", front.name)
		}
		for range 3 {
			if err := call("looks"); err != nil {
				t.Errorf("%s: what is said to be read-only: %v", front.name, err)
			}
		}
		if n := lists.Load() - before; n != 1 {
			t.Errorf("%s: listed %d times, want once", front.name, n)
		}
	}
}

// Trap 22: annotations count only for the program's own features and those of trusted servers, in
// calls and in lists (TOOL-26-012).
func TestAnnotationsOfOthers(t *testing.T) {
	readOnly := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		n := a.Annotations()
		return policy.Decision{Allow: n != nil && n.ReadOnly}
	})
	for _, front := range fronts {
		for name, tt := range map[string]struct {
			mw   mcp.Middleware
			want bool
		}{
			"by itself":   {policy.Middleware("shop", readOnly, nil), front.name == "server"},
			"trusted":     {policy.Foreign("shop", true, readOnly, nil), true},
			"not trusted": {policy.Foreign("shop", false, readOnly, nil), false},
		} {
			s := mcptest.Connect(t, front.around(newShop(), as(nil), tt.mw), client(), mcp.V2026_07_28)
			if _, err := s.CallTool(t.Context(), front.prefix+"looks", nothing{}); (err == nil) != tt.want {
				t.Errorf("%s, %s: a tool that calls itself read-only: %v, want allowed %t", front.name, name, err, tt.want)
			}
			listed := false
			for tool := range s.Tools(t.Context()) {
				listed = listed || tool.Name == front.prefix+"looks"
			}
			if listed != tt.want {
				t.Errorf("%s, %s: listed %t, want %t", front.name, name, listed, tt.want)
			}
		}
	}
}

// A served Session is a foreign server, whether the policy is in the Use of a server or directly
// in front of the Session.
func TestAnnotationsOfSession(t *testing.T) {
	readOnly := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		n := a.Annotations()
		return policy.Decision{Allow: n != nil && n.ReadOnly}
	})
	back := mcptest.Connect(t, newShop(), client(), mcp.V2026_07_28)
	step := &mcp.Server{Name: "front", Version: "1", Handler: back}
	step.Use(policy.Middleware("shop", readOnly, nil))
	for name, front := range map[string]*mcp.Server{
		"a step": step, "in front of the session": {Name: "front", Version: "1", Handler: policy.Middleware("shop", readOnly, nil)(back)},
	} {
		if res, err := mcptest.Connect(t, front, client(), mcp.V2026_07_28).CallTool(t.Context(), "looks", nothing{}); err == nil {
			t.Errorf("%s: a tool that calls itself read-only: %v", name, res)
		}
	}
}

// Refusals are logged with the rule and the feature, and without arguments.
func TestRefusalsAreLogged(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	s := mcptest.Connect(t, fronts[0].around(newShop(), as(&auth.Principal{ID: "as#ada"}), policy.Middleware("shop", policy.Func(shopPolicy), log)), client(), mcp.V2026_07_28)
	for range s.Tools(t.Context()) {
	}
	if out.Len() > 0 {
		t.Errorf("a list logs %q", out.String())
	}
	_, _ = s.CallTool(t.Context(), "open", map[string]int{"amount": 9990042})
	_, _ = s.CallTool(t.Context(), "scoped", nothing{})
	_, _ = s.ReadResource(t.Context(), "mem://me:9990042@hidden?key=9990042#hidden")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("logged %q", out.String())
	}
	for i, want := range []string{`rule="too much" principal=as#ada server=shop method=tools/call tool=open`, `rule="needs s" principal=as#ada server=shop method=tools/call tool=scoped scopes=[s]`, `rule=hidden principal=as#ada server=shop method=resources/read uri=mem://hidden`} {
		if !strings.HasSuffix(lines[i], want) {
			t.Errorf("logged %q, want %q", lines[i], want)
		}
	}
	if strings.Contains(out.String(), "9990042") {
		t.Errorf("an argument is in the log: %q", out.String())
	}
}

// lastResponse keeps the status and the headers of the last response.
type lastResponse struct {
	status int
	header http.Header
}

func (l *lastResponse) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		l.status, l.header = res.StatusCode, res.Header.Clone()
	}
	return res, err
}

// A refusal is a denial for middleware in front of the policy, and reads like a missing feature on
// the wire: status, headers and error are those of the next handler.
func TestRefusalsAreDenials(t *testing.T) {
	var mu sync.Mutex
	outcomes := map[string]middleware.Outcome{}
	srv := newShop()
	srv.Use(middleware.Observe(func(_ context.Context, r middleware.Record) {
		mu.Lock()
		defer mu.Unlock()
		outcomes[r.Method+" "+r.Name] = r.Outcome
	}), policy.Middleware("shop", policy.Func(shopPolicy), nil))
	web := httptest.NewServer(srv)
	defer web.Close()
	wire := &lastResponse{}
	session, err := (&mcp.Client{HTTPClient: &http.Client{Transport: wire}}).Dial(t.Context(), web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	answer := func(method, params string) string {
		_, err := session.Raw(t.Context(), method, json.RawMessage(params))
		wire.header.Del("Date")
		wire.header.Del("Content-Length")
		return strings.ReplaceAll(fmt.Sprint(wire.status, wire.header, err), "nonehidden", "none")
	}
	for method, params := range map[string]string{
		"tools/call":     `{"name":"%s"}`,
		"prompts/get":    `{"name":"%s"}`,
		"resources/read": `{"uri":"mem://%s"}`,
	} {
		refused, missing := answer(method, fmt.Sprintf(params, "nonehidden")), answer(method, fmt.Sprintf(params, "none"))
		if refused != missing {
			t.Errorf("%s: a refusal is answered with\n%s\na missing feature with\n%s", method, refused, missing)
		}
	}
	answer("tools/call", `{"name":"open","arguments":{"amount":999}}`)
	mu.Lock()
	defer mu.Unlock()
	for request, want := range map[string]middleware.Outcome{
		"tools/call nonehidden": middleware.Denied, "prompts/get nonehidden": middleware.Denied, "resources/read mem://nonehidden": middleware.Denied,
		"tools/call open": middleware.Denied, "tools/call none": middleware.Failed,
	} {
		if got := outcomes[request]; got != want {
			t.Errorf("%s: outcome %q, want %q", request, got, want)
		}
	}
}
