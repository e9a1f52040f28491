package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// A refused read is a line "denied" with the server that the policy protects, or with none if the
// resource could be that of several. However many servers get the request, it has one begin, which names
// none; the end names the server that has the resource.
func TestUnlistedRead(t *testing.T) {
	for _, tt := range []struct {
		name, uri string
		deny      []string // servers
		want      []string
	}{
		{"listed", "x://a", []string{"a"}, []string{"denied a deny denied"}},
		{"listed, and refused for all", "x://a", []string{"a", "b", "c"}, []string{"denied a deny denied"}},
		{"refused for all", "x://none", []string{"a", "b", "c"}, []string{"denied  deny denied"}},
		{"refused for the first", "x://none", []string{"a"}, []string{"call.begin  allow ", "call.end a deny denied"}},
		{"refused for one", "x://none", []string{"b"}, []string{"call.begin  allow ", "call.end b deny denied"}},
		{"refused for two", "x://none", []string{"a", "c"}, []string{"call.begin  allow ", "call.end  deny denied"}},
		{"refused, and found elsewhere", "x://hidden/c", []string{"a"}, []string{"call.begin  allow ", "call.end c allow ok"}},
		{"not found", "x://none", nil, []string{"call.begin  allow ", "call.end  allow error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			trail := &audit.Trail{Log: open(t, path, &audit.Options{Sync: audit.SyncNone})}
			decide := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
				return policy.Decision{Allow: a.Kind != mcp.KindResource || !slices.Contains(tt.deny, a.Server)}
			})
			gw := &gateway.Gateway{Name: "gw", Middleware: func(server string) mcp.Middleware {
				rule, around := policy.Foreign(server, true, decide, nil), trail.Around(server)
				return func(next mcp.Handler) mcp.Handler { return rule(around(next)) }
			}}
			for _, name := range []string{"a", "b", "c"} {
				s := &mcp.Server{Name: name}
				mcp.AddResource(s, mcp.Resource{URI: "x://" + name, Name: name}, func(context.Context) (string, error) { return name, nil })
				h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == "resources/read" && strings.Contains(string(req.Params), `"x://hidden/`+name) {
						return mcp.RawResult(`{"contents":[]}`), nil
					}
					return s.Handle(ctx, req)
				})
				if err := gw.Set(name, h); err != nil {
					t.Fatal(err)
				}
			}
			front := &mcp.Server{Name: "front", Handler: gw}
			front.Use(trail.Outer())
			session, err := new(mcp.Client).Open(t.Context(), front)
			if err != nil {
				t.Fatal(err)
			}
			_, err = session.ReadResource(t.Context(), tt.uri)
			session.Close()
			if found := tt.name == "refused, and found elsewhere"; (err == nil) != found {
				t.Error(err)
			}
			if err := trail.Log.Close(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for e, err := range audit.Read(path) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Method != "resources/read" {
					continue
				}
				server, effect := "", ""
				if e.Server != nil {
					server = e.Server.Name
				}
				if e.Decision != nil {
					effect = e.Decision.Effect
				}
				got = append(got, fmt.Sprint(e.Kind, " ", server, " ", effect, " ", e.Outcome))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("the lines are %q, want %q", got, tt.want)
			}
		})
	}
}
