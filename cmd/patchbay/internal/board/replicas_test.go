package board

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

// broken is the state of a replica whose breaker has opened.
func broken(name string, now time.Time) spread.Status {
	s := spread.Status{Name: name, Conns: 1, Calls: 2}
	s.Breaker = breaker.Status{Open: true, Since: now.Add(-5 * time.Second), Until: now.Add(10 * time.Second), Kind: breaker.Unusable, Cause: "tools/call: it answers, but is not an MCP server: a web page", Opened: 3}
	s.Breaker.Failures[breaker.Unusable], s.Breaker.Failures[breaker.Lost] = 10, 2
	return s
}

// The report has the breaker of each replica: its state, its cause, and its failures by kind. A person reads the same
// in the status, and one line when it opens or closes; metrics have it too.
func TestBreakerInReport(t *testing.T) {
	now := time.Now()
	list := []spread.Status{broken("a.example", now), {Name: "b.example", Conns: 1, Calls: 1}}
	all := Replicas(list)
	text, err := json.Marshal(all[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"breaker":"open"`, `"opened":3`, `"kind":"unusable"`, `"reason":"tools/call: it answers`, `"failures":{"lost":2,"unusable":10}`, `"until":"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if text, _ := json.Marshal(all[1]); strings.Contains(string(text), "failures") || !strings.Contains(string(text), `"breaker":"closed"`) {
		t.Errorf("a replica that works: %s", text)
	}
	want := []metrics.Breaker{{Replica: "a.example", Open: true, Failures: map[string]int{"lost": 2, "unusable": 10}}, {Replica: "b.example"}}
	if got := Breakers(all); !reflect.DeepEqual(got, want) {
		t.Errorf("metrics get %v, want %v", got, want)
	}
	lines := Remarks(&health.Server{Replicas: all}, now)
	if want := []string{
		"replica a.example: gets no calls, as its breaker has been open for 5s; last failure: tools/call: it answers, but is not an MCP server: a web page; it is tried again in 10s; failures since the start: 2 lost connections, 10 unusable answers",
		"replica b.example: 1 call running",
	}; !slices.Equal(lines, want) {
		t.Errorf("the status says %q, want %q", lines, want)
	}
	for want, replicas := range map[string][]health.Replica{
		"1 of 2 replicas gets no calls": all,
		"2 of 3 replicas get no calls":  append(Replicas([]spread.Status{{Name: "c", Out: "is disabled", Conns: 1}}), all...),
		"its breaker is open":           all[:1],
		"":                              {{Name: "idle", Breaker: "closed"}},
	} {
		if got := Away(&health.Server{Replicas: replicas}); got != want {
			t.Errorf("patchbay top says %q, want %q", got, want)
		}
	}
	var out strings.Builder
	b := New(&terminal.Talk{W: &out})
	b.Replica("work", list[0])
	b.Replica("work", list[1])
	list[0].Name = "work" // a single server with a breaker
	b.Replica("work", list[0])
	if got := out.String(); !strings.Contains(got, "work: replica a.example: gets no calls for now: tools/call: it answers, but is not an MCP server: a web page; it is tried again in 10s\n") ||
		!strings.Contains(got, "work: replica b.example: gets calls again\n") || !strings.Contains(got, "work: gets no calls for now") {
		t.Errorf("printed %q", got)
	}
}
