package policy_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
)

// An observer gets the decisions about requests, not those about lists, and the policy keeps its other
// methods. Counters are such an observer.
func TestObserve(t *testing.T) {
	var got []string
	c := new(metrics.Counters)
	p := policy.Func(func(_ context.Context, a *policy.Access) policy.Decision {
		return policy.Decision{Allow: a.Name != "secret", Rule: "by name"}
	})
	mw := policy.Middleware("s", policy.Observe(policy.Observe(p, c.Decided), func(allow bool, rule string) { got = append(got, fmt.Sprint(allow, " ", rule)) }), nil)
	srv := &mcp.Server{Name: "s"}
	for _, name := range []string{"open", "secret"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
	srv.Use(mw)
	s, err := (&mcp.Client{Name: "c"}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range s.Tools(t.Context()) {
	}
	s.CallTool(t.Context(), "open", nil)
	s.CallTool(t.Context(), "secret", nil)
	if want := []string{"true by name", "false by name"}; !slices.Equal(got, want) {
		t.Errorf("decisions %q, want %q", got, want)
	}
	for _, f := range c.Families() {
		if f.Name == "patchbay_policy_decisions_total" && len(f.Samples) != 2 {
			t.Errorf("the counters have %+v", f.Samples)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Observe takes a nil function")
		}
	}()
	policy.Observe(p, nil)
}
