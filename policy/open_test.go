package policy_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// A policy around a client refuses in the same words as one around a server, and a refused tool
// has the same answer as a missing one.
func TestPolicyAroundClient(t *testing.T) {
	newServer := func() *mcp.Server {
		srv := &mcp.Server{Name: "s", Version: "1"}
		for _, name := range []string{"good", "bad"} {
			mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
		}
		return srv
	}
	onlyGood := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name != "bad" && a.Name != "absent"}
	})
	outcome := func(s *mcp.Session) (out []string) {
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, tool.Name)
		}
		for _, name := range []string{"good", "bad", "absent"} {
			res, err := s.CallTool(t.Context(), name, nil)
			if err != nil {
				out = append(out, err.Error())
			} else {
				out = append(out, res.Text())
			}
		}
		return out
	}
	around := newServer()
	around.Use(policy.Middleware("s", onlyGood, nil))
	s, err := (&mcp.Client{}).Open(t.Context(), around)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := outcome(s)
	client := &mcp.Client{}
	client.Use(policy.Middleware("s", onlyGood, nil))
	if s, err = client.Open(t.Context(), newServer()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := outcome(s)
	if len(want) != 4 || want[0] != "good" || want[1] != "good" {
		t.Fatalf("around the server: %q", want)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("around the client: %q\nwant %q", got, want)
			break
		}
	}
}
