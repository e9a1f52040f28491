package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Snapshot has the counts of a window. Counts of calls that end while it is made may be missing
// from some of its parts.
type Snapshot struct {
	Requests []Method `json:"requests,omitempty"` // of clients, as Counters.Front counts them; those that occurred
	Servers  []Server `json:"servers,omitempty"`  // by name
}

// Server returns the counts of a server with its ten busiest tools, or nil if it has neither calls in
// the window nor running ones.
func (s *Snapshot) Server(name string) *Server {
	i, ok := slices.BinarySearchFunc(s.Servers, name, func(one Server, name string) int { return strings.Compare(one.Name, name) })
	if !ok || s.Servers[i].Calls == 0 && s.Servers[i].Open == 0 {
		return nil
	}
	one := s.Servers[i]
	one.Tools = one.Busiest(10)
	return &one
}

// Method has the counts of a method.
type Method struct {
	Name string `json:"name"`
	Stats
}

// Server has the counts of a server.
type Server struct {
	Name string `json:"name"`
	Stats
	Tools    []Tool `json:"tools,omitempty"`   // those with calls, by name
	Upstream Stats  `json:"upstream,omitzero"` // what the server itself answers; only with Counters.Around
}

// Tool has the counts of a tool. Name is "other" for all tools that the server does not list.
type Tool struct {
	Name string `json:"name"`
	Stats
	Upstream Stats `json:"upstream,omitzero"`
}

// Stats has counts of calls that have ended, and their durations. Without calls all of it is zero
// except Open.
type Stats struct {
	Calls    uint64  `json:"calls"`              // with all errors
	Open     int64   `json:"open,omitempty"`     // calls that are running now, whatever the window
	Errors   Errors  `json:"errors,omitzero"`    // by kind
	Canceled uint64  `json:"canceled,omitempty"` // by their callers; these are not errors
	BytesIn  uint64  `json:"bytesIn,omitempty"`  // of the params
	BytesOut uint64  `json:"bytesOut,omitempty"` // of the results of servers outside of this process
	P50      Latency `json:"p50Ms,omitzero"`     // half of the calls took at most this long
	P95      Latency `json:"p95Ms,omitzero"`
	P99      Latency `json:"p99Ms,omitzero"`
}

// Latency is a duration that is a number of milliseconds in JSON.
type Latency struct{ time.Duration }

// MarshalJSON returns the milliseconds.
func (l Latency) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(l.Microseconds())/1000, 'f', -1, 64), nil
}

// UnmarshalJSON reads milliseconds.
func (l *Latency) UnmarshalJSON(raw []byte) error {
	ms, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return fmt.Errorf("%q is not a number of milliseconds", text.Short(raw))
	}
	l.Duration = time.Duration(ms * float64(time.Millisecond))
	return nil
}

// Errors counts failed calls by [Kind].
type Errors struct {
	Tool      uint64 `json:"tool,omitempty"`
	Protocol  uint64 `json:"protocol,omitempty"`
	Transport uint64 `json:"transport,omitempty"`
	Policy    uint64 `json:"policy,omitempty"`
	Limit     uint64 `json:"limit,omitempty"`
	Deadline  uint64 `json:"deadline,omitempty"`
	Audit     uint64 `json:"audit,omitempty"`
	Unsent    uint64 `json:"unsent,omitempty"`
}

// Sum returns the number of all errors.
func (e Errors) Sum() uint64 {
	return e.Tool + e.Protocol + e.Transport + e.Policy + e.Limit + e.Deadline + e.Audit + e.Unsent
}

// Busiest returns the tools with the most calls, at most n of them, the busiest first;
// none if n is negative.
func (s *Server) Busiest(n int) []Tool {
	tools := slices.Clone(s.Tools)
	slices.SortStableFunc(tools, func(a, b Tool) int { return cmp.Compare(b.Calls, a.Calls) })
	return tools[:max(0, min(n, len(tools)))]
}

// Read returns the counts of a window that ends now.
func (c *Counters) Read(w Window) Snapshot {
	now := now()
	var out Snapshot
	for i := range c.front.methods {
		if s := c.front.methods[i].Load(); s != nil {
			t := new(tally)
			if s.addTo(t, w, now); t.calls() > 0 || t.open > 0 {
				out.Requests = append(out.Requests, Method{methods[i], t.stats()})
			}
		}
	}
	for _, s := range c.all() {
		row := Server{Name: s.name}
		var whole, upstream tally
		behind := map[string]*tally{}
		s.upstream.each(w, now, func(_, tool string, t *tally) {
			upstream.add(t)
			behind[tool] = t
		})
		s.callers.each(w, now, func(_, tool string, t *tally) {
			whole.add(t)
			if tool == "" {
				return
			}
			one := Tool{Name: tool, Stats: t.stats()}
			if b := behind[tool]; b != nil {
				one.Upstream = b.stats()
			}
			row.Tools = append(row.Tools, one)
		})
		row.Stats, row.Upstream = whole.stats(), upstream.stats()
		out.Servers = append(out.Servers, row)
	}
	return out
}

// each calls do for each method and tool with counts in a window, tools last and by name. The tool
// is "other" for tools without a series, and empty for other methods.
func (t *table) each(w Window, now time.Duration, do func(method, tool string, t *tally)) {
	visit := func(method, tool string, s *series) {
		sum := new(tally)
		if s.addTo(sum, w, now); sum.calls() > 0 || sum.open > 0 {
			do(method, tool, sum)
		}
	}
	for i := 1; i < len(t.methods); i++ {
		if s := t.methods[i].Load(); s != nil {
			visit(methods[i], "", s)
		}
	}
	if tools := t.tools.Load(); tools != nil {
		for _, tool := range slices.Sorted(maps.Keys(*tools)) {
			visit(callMethod, tool, (*tools)[tool])
		}
	}
	if s := t.methods[0].Load(); s != nil {
		visit(callMethod, other, s)
	}
}

func (t *tally) stats() Stats {
	return Stats{
		Calls: t.calls(), Open: t.open, Canceled: t.kinds[Canceled], BytesIn: t.in, BytesOut: t.out,
		Errors: Errors{t.kinds[ToolError], t.kinds[ProtocolError], t.kinds[TransportError], t.kinds[Refused], t.kinds[Limited], t.kinds[TimedOut], t.kinds[Unlogged], t.kinds[Unsent]},
		P50:    Latency{t.quantile(0.5)}, P95: Latency{t.quantile(0.95)}, P99: Latency{t.quantile(0.99)},
	}
}
