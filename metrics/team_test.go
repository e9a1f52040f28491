package metrics_test

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// A call with questions counts once for its team: when it has ended.
func TestTeamCallsCountOnce(t *testing.T) {
	c := &metrics.Counters{Team: func(context.Context) string { return "dev" }}
	for _, err := range []error{mcp.ErrPending, mcp.ErrPending, nil} {
		c.Front()(answer(mcp.RawResult(`{}`), err)).Handle(t.Context(), call("t"))
	}
	for _, f := range c.Families() {
		if f.Name == "patchbay_team_calls_total" && (len(f.Samples) != 1 || f.Samples[0].Value != 1) {
			t.Errorf("the team has made %+v, want 1 call", f.Samples)
		}
	}
}
