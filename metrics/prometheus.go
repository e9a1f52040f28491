package metrics

import (
	"bytes"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// ServeHTTP answers GET with the counts since the start as text for Prometheus: OpenMetrics 1.0.0 if
// the request accepts it, otherwise the text format 0.0.4. [Metrics] lists the names.
//
// A character of a label that a terminal obeys, such as ESC, is written as the text \u001b.
//
// It has no access control: serve it on a listener of its own, or behind your own.
func (c *Counters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, r.URL.Path+" is read with GET", http.StatusMethodNotAllowed)
		return
	}
	open := acceptsOpenMetrics(r.Header.Values("Accept"))
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(c.text(open)) // the client may have disconnected
}

// acceptsOpenMetrics reports whether a header Accept prefers OpenMetrics to plain text.
func acceptsOpenMetrics(accept []string) bool {
	open, plain := 0.0, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch version := params["version"]; {
		case name == "application/openmetrics-text" && (version == "" || version == "1.0.0"):
			open = max(open, q)
		case name == "text/plain":
			plain = max(plain, q)
		}
	}
	return open > 0 && open >= plain
}

// text returns the text of all metrics.
func (c *Counters) text(open bool) []byte {
	p := new(page)
	for _, bound := range bounds {
		text := strconv.FormatFloat(bound, 'f', -1, 64)
		if open && !strings.Contains(text, ".") {
			text += ".0"
		}
		p.bounds = append(p.bounds, text)
	}
	for _, f := range c.Families() {
		family := f.Name
		if open {
			family = strings.TrimSuffix(family, "_total")
		}
		p.name = f.Name
		p.WriteString("# HELP " + family + " " + f.Help + "\n# TYPE " + family + " " + f.Type + "\n")
		if open && f.Unit != "" {
			p.WriteString("# UNIT " + family + " " + f.Unit + "\n")
		}
		for _, s := range f.Samples {
			p.label(f.Labels, s.Labels)
			p.sample(&s)
		}
	}
	if open {
		p.WriteString("# EOF\n")
	}
	return p.Bytes()
}

// page is a text while it is written.
type page struct {
	bytes.Buffer
	name   string   // of the metric that is written
	labels []byte   // of the sample that is written
	bounds []string // the bounds of histograms
}

// sample writes the lines of a sample.
func (p *page) sample(s *Sample) {
	if s.Counts == nil {
		p.line("", "", s.Value)
		return
	}
	sum := uint64(0)
	for i, n := range s.Counts {
		bound := "+Inf"
		if i < len(p.bounds) {
			bound = p.bounds[i]
		}
		sum += n
		p.line("_bucket", bound, float64(sum))
	}
	p.line("_sum", "", s.Sum)
	p.line("_count", "", float64(sum))
}

// line writes a line, with the bound of a bucket if there is one.
func (p *page) line(suffix, bound string, value float64) {
	b := append(append(p.AvailableBuffer(), p.name...), suffix...)
	if len(p.labels) > 0 || bound != "" {
		b = append(append(b, '{'), p.labels...)
		if bound != "" {
			if len(p.labels) > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, `le="`...), bound...), '"')
		}
		b = append(b, '}')
	}
	b = strconv.AppendFloat(append(b, ' '), value, 'f', -1, 64)
	p.Write(append(b, '\n'))
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// label sets the labels of the next lines. Empty values are left out, which is the same for Prometheus.
func (p *page) label(names, values []string) {
	p.labels = p.labels[:0]
	for i, v := range values {
		if v = strings.ToValidUTF8(v, "\uFFFD"); v == "" {
			continue
		}
		if len(p.labels) > 0 {
			p.labels = append(p.labels, ',')
		}
		v = string(text.Escape(nil, v)) // /metrics is read on terminals too
		p.labels = append(append(append(p.labels, names[i]...), `="`...), escapes.Replace(v)...)
		p.labels = append(p.labels, '"')
	}
}
