package spread_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Callers that fail fast do not attract more: with callers at once, both wrong answers and -32603 reach at most a
// few callers more than it takes to open the breaker.
func TestWrongAnswersDoNotAttract(t *testing.T) {
	long.WithoutRace(t) // it compares latencies below a millisecond
	for _, how := range []string{"a web page", "-32603"} {
		t.Run(how, func(t *testing.T) {
			a, b := newBox(t, "a"), newBox(t, "b")
			group := &spread.Group{Name: "work", Logger: quiet(), Rule: breaker.Rule{Failures: 1000, Calls: 1000}, // it stays closed
				Replicas: []spread.Replica{a.replica(mcp.V2026_07_28, nil), b.replica(mcp.V2026_07_28, nil)}}
			_, session := through(t, group, gateway.Shared)
			s := session()
			connected(t, group)
			compared(t, s, a, b)
			if how == "-32603" {
				a.broken.Store(true)
			} else {
				a.answersWrongly(wrongs[how], "tools/call")
			}
			failed := 0
			for range 300 {
				if _, err := call(t, s, "work_which"); err != nil {
					failed++
				}
			}
			if failed > 30 {
				t.Errorf("%d of 300 calls failed: the replica that fails fast gets most calls", failed)
			}
		})
	}
}
