package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/policy"
)

// Lines say who listens to which resource, from when until when. A subscription to lists has no line,
// and a refused one has that of a refused request.
func TestSubscriptionLines(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
			decide := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
				return policy.Decision{Allow: a.Server != "c", Rule: "all but c"}
			})
			gw := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware {
				rule, around := policy.Foreign(server, true, decide, nil), trail.Around(server)
				return func(next mcp.Handler) mcp.Handler { return rule(around(next)) }
			}}
			servers := map[string]*mcp.Server{}
			for _, name := range []string{"a", "b", "c"} {
				s := &mcp.Server{Name: name}
				mcp.AddResource(s, mcp.Resource{URI: "x://" + name, Name: name}, func(context.Context) (string, error) { return name, nil })
				servers[name] = s
				if err := gw.Set(name, s); err != nil {
					t.Fatal(err)
				}
			}
			front := &mcp.Server{Name: "front", Handler: gw}
			front.Use(trail.Outer())
			s := mcptest.Connect(t, front, &mcp.Client{Name: "desk"}, rev)
			watch := func(uris ...string) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for e, err := range s.Watch(ctx, uris...) {
					if err != nil {
						t.Error(err)
						return
					}
					if e.Method == "notifications/subscriptions/acknowledged" {
						servers["b"].ResourceUpdated("x://b")
					}
					if e.URI == "x://b" {
						return
					}
				}
			}
			watch("x://b")
			if rev == mcp.V2026_07_28 {
				watch("x://a", "x://b")
			}
			for _, err := range s.Watch(t.Context(), "x://c") {
				if err == nil {
					t.Error("a resource that the policy refuses is watched")
				}
				break
			}
			var got, refused []string
			late := time.Now().Add(time.Minute)
			for open := 1; (open > 0 || len(refused) == 0) && time.Now().Before(late); { // until every end and the refusal has its line
				got, refused, open = nil, nil, 0
				for _, e := range calls(t, path) {
					if e.Method != "subscriptions/listen" {
						continue
					}
					if e.Client == nil || e.Client.Name != "desk" || e.Call == "" || e.Kind != audit.Denied && e.Arguments == nil {
						t.Errorf("%s", e.Line())
					}
					server := ""
					if e.Server != nil {
						server = e.Server.Name
					}
					about := strings.TrimSpace(fmt.Sprint(server, " ", e.Name, " ", string(e.Detail)))
					switch e.Kind {
					case audit.Subscribe:
						got = append(got, about)
						open++
					case audit.Unsubscribe:
						open--
					default:
						refused = append(refused, fmt.Sprint(e.Kind, " ", about))
					}
				}
				time.Sleep(time.Millisecond)
			}
			want := []string{"b x://b"}
			if rev == mcp.V2026_07_28 {
				want = append(want, `{"uris":["x://a","x://b"]}`)
			}
			if !slices.Equal(got, want) || !slices.Equal(refused, []string{"denied c"}) {
				t.Errorf("the subscriptions are %q, want %q; refused are %q, want one at c", got, want, refused)
			}
		})
	}
}
