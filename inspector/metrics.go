package inspector

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/metrics"
)

// Series has what callers got from a server or a tool over time.
type Series struct {
	Server string          `json:"server"`
	Tool   string          `json:"tool,omitempty"`
	Points []metrics.Point `json:"points"` // spans with calls, the oldest first
}

// traffic is the answer of /ui/metrics.
type traffic struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	StepMs int64     `json:"stepMs"` // length of a span
	Series []Series  `json:"series"`
}

// ranges are the times before now that /ui/metrics knows, with the lengths of their spans.
var ranges = map[string]struct{ all, step time.Duration }{
	"15m": {15 * time.Minute, time.Minute}, "1h": {time.Hour, time.Minute}, "24h": {24 * time.Hour, time.Hour},
}

// metrics answers with the traffic of a time: of all servers, of one, or of a tool of it.
func (p *Page) metrics(r *http.Request) (any, error) {
	q := r.URL.Query()
	for name := range q {
		if !slices.Contains([]string{"range", "server", "tool"}, name) {
			return nil, fail(http.StatusBadRequest, "/ui/metrics has no parameter %q; it has: range, server, tool", name)
		}
	}
	name, server, tool := q.Get("range"), q.Get("server"), q.Get("tool")
	if name == "" {
		name = "15m"
	}
	span, ok := ranges[name]
	var names []string
	for _, s := range p.Report().Servers {
		if server == "" || s.Name == server {
			names = append(names, s.Name)
		}
	}
	switch {
	case p.Gateway.Counters == nil:
		return nil, fail(http.StatusNotFound, "this program does not count calls")
	case !ok:
		return nil, fail(http.StatusBadRequest, "range=%s is not 15m, 1h or 24h", name)
	case tool != "" && server == "":
		return nil, fail(http.StatusBadRequest, "tool=%s needs a server", tool)
	case tool != "" && name != "1h":
		return nil, fail(http.StatusBadRequest, "range=%s is not known of a tool, only 1h", name)
	case tool != "" && !personOf(r.Context()).Admin:
		return nil, fail(http.StatusForbidden, "only administrators see the calls of a single tool, because they are those of other callers too")
	case server != "" && names == nil:
		return nil, fail(http.StatusNotFound, "no server has the name %q", server)
	}
	now := time.Now()
	out := &traffic{From: now.Truncate(span.step).Add(span.step - span.all), To: now, StepMs: span.step.Milliseconds(), Series: []Series{}}
	if tool != "" {
		points := p.Gateway.Counters.OfTool(server, tool)
		out.From, out.StepMs = now.Add(-span.all), (10 * time.Minute).Milliseconds()
		if len(points) > 0 && points[0].At.Before(out.From) {
			out.From = points[0].At
		}
		out.Series = append(out.Series, Series{server, tool, append([]metrics.Point{}, points...)})
		return out, nil
	}
	of := p.Gateway.Counters.Minutes
	if span.step == time.Hour {
		of = p.Gateway.Counters.Hours
	}
	for _, name := range names {
		points := slices.DeleteFunc(of(name), func(p metrics.Point) bool { return p.At.Before(out.From) })
		out.Series = append(out.Series, Series{name, "", append([]metrics.Point{}, points...)})
	}
	slices.SortStableFunc(out.Series, func(a, b Series) int { return strings.Compare(a.Server, b.Server) })
	return out, nil
}
