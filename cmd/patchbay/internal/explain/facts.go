package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// facts describes a call and its server.
func (d *Deployment) facts(c *Call, t *tool, s *launch.Offered, team string) (list []Fact) {
	add := func(of, format string, args ...any) { list = append(list, Fact{of, fmt.Sprintf(format, args...)}) }
	trusted := d.Trusted(s.Server)
	add("caller", "%s", caller(c, team))
	server := fmt.Sprintf("%s, tool %s (%s)", t.server, t.own, place(s.Source))
	if trusted {
		server += ", trusted"
	}
	if state := d.States[t.server]; state != "" {
		server += "; now " + state
	}
	add("server", "%s", server)
	hints, readOnly := hints(t.definition)
	switch {
	case !t.known && c.Annotations == nil:
		add("hints", "unknown, as no running patchbay up with %s lists the tool; --annotation readOnlyHint=true sets one", filepath.Base(d.Servers.Path))
	case !trusted:
		add("hints", "%s; they do not count, as %s is not trusted", cmp.Or(hints, "none"), t.server)
	default:
		add("hints", "%s", cmp.Or(hints, "none"))
	}
	readOnly = readOnly && trusted
	for _, text := range d.limits(t.name) {
		add("limit", "%s", text)
	}
	if len(d.File.Limits) == 0 {
		add("limit", "none")
	}
	add("cache", "%s", d.cache(t, s, trusted, readOnly))
	add("deadline", "%s", deadline(s))
	add("breaker", "%s", breakerOf(s))
	add("share", "%s", d.share(s))
	add("audit", "%s", d.audited(t, readOnly))
	return list
}

// caller describes the caller of a call.
func caller(c *Call, team string) string {
	text := "anonymous"
	if p := c.Principal; p != nil {
		text = p.ID
		if len(p.Roles) > 0 {
			text += "; roles " + strings.Join(p.Roles, ", ")
		}
		if len(p.Scopes) > 0 {
			text += "; scopes " + strings.Join(p.Scopes, " ")
		}
	}
	return text + "; team " + cmp.Or(team, "none")
}

// place shortens the path in "path:line".
func place(source string) string { return filepath.Base(source) }

// hints returns the annotations of a definition in words, and whether the tool only reads.
func hints(definition json.RawMessage) (text string, readOnly bool) {
	annotations, _ := jsonx.Lookup(definition, "annotations")
	if jsonx.KindOf(annotations) != '{' {
		return "", false
	}
	var said []string
	for name, value := range jsonx.Members(annotations) {
		if strings.HasSuffix(string(name), "Hint") && (string(value) == "true" || string(value) == "false") {
			said = append(said, string(name)+"="+string(value))
			readOnly = readOnly || string(name) == "readOnlyHint" && string(value) == "true"
		}
	}
	return strings.Join(said, ", "), readOnly
}

// limits returns those that count a call of a tool, each with its place.
func (d *Deployment) limits(tool string) (list []string) {
	for i, text := range d.File.Limits {
		l := new(limit.Limiter)
		if err := listen.AddLimit(l, text); err != nil {
			continue // the file was checked
		}
		at := d.place(fmt.Sprintf("limits[%d]", i))
		switch {
		case l.Tools != nil && counts(l, tool):
			list = append(list, fmt.Sprintf("%s (%s): calls of the tool, of this caller", text, at))
		case l.Tools != nil, l.Proxies != nil:
		case l.Address != limit.Rate{}:
			list = append(list, fmt.Sprintf("%s (%s): HTTP requests of the address", text, at))
		default:
			list = append(list, fmt.Sprintf("%s (%s): requests of this caller", text, at))
		}
	}
	return list
}

// counts reports whether a limiter, which has limits of tools alone, counts calls of a tool.
func counts(l *limit.Limiter, tool string) bool {
	one := &limit.Limiter{Tools: map[string]limit.Rate{}}
	for pattern := range l.Tools {
		one.Tools[pattern] = limit.Rate{Count: 1, Per: 24 * time.Hour}
	}
	h := one.Limit(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.ToolResult{}, nil }))
	params := jsonx.With(nil, []byte("{}"), "name", jsonx.AppendString(nil, tool))
	var err error
	for range 2 {
		_, err = h.Handle(context.Background(), &mcp.Request{Method: "tools/call", Params: params})
	}
	return err != nil
}

// cache says whether the result may come from the cache.
func (d *Deployment) cache(t *tool, s *launch.Offered, trusted, readOnly bool) string {
	switch ttl := d.about(s).CacheTime(); {
	case s.Cache <= 0:
		return `no: "cache" of the server is not set`
	case !trusted:
		return fmt.Sprintf(`no: "cache" has no effect without "trusted": true of %s`, t.server)
	case !readOnly:
		return "no, and the call drops the kept results of " + t.server + ": the tool does not declare readOnlyHint"
	default:
		return fmt.Sprintf("yes, for %v: an equal call of this caller gets the kept result, if the server announces changes of its tools", ttl)
	}
}

// idleTime is the default of callTimeout for a call of a tool.
const idleTime = 5 * time.Minute

func deadline(s *launch.Offered) string {
	text, total := fmt.Sprintf("%v without a message (default)", idleTime), "none for the whole call"
	switch {
	case s.CallTimeout > 0:
		text = fmt.Sprintf("%v without a message (callTimeout)", s.CallTimeout)
	case s.CallTimeout < 0:
		text = "none for a silent server (callTimeout)"
	}
	if s.CallLimit > 0 {
		total = fmt.Sprintf("%v for the whole call (callLimit)", s.CallLimit)
	}
	return text + "; " + total
}

func breakerOf(s *launch.Offered) string {
	switch {
	case s.Breaker.Off:
		return `none: "breaker": false`
	case s.Replicas == 1 && !s.Breaker.On:
		return `none: a single server has one with "breaker": true`
	}
	rule := s.Rule()
	text := fmt.Sprintf("opens when %d of %d calls within %v fail, for %v", rule.Failures, rule.Calls, rule.Window, rule.For)
	if s.Replicas > 1 {
		text += fmt.Sprintf("; one for each of %d replicas", s.Replicas)
	}
	return text
}

// share says which callers share a connection.
func (d *Deployment) share(s *launch.Offered) string {
	text := d.Shares[s.Name]
	if text == "" {
		text = cmp.Or(s.Share, d.Servers.Share, "auto")
	}
	says := map[string]string{
		"auto": "the revision of the server decides", "shared": "one connection for all callers", "session": "one connection for each session",
		"principal": "one connection for each principal", "exclusive": "one caller at a time",
	}[text]
	if says != "" {
		text += ": " + says
	}
	if s.Clients > 0 {
		text += fmt.Sprintf("; at most %d clients", s.Clients)
	}
	return text
}

// audited says how the call is logged.
func (d *Deployment) audited(t *tool, readOnly bool) string {
	a := d.File.Audit
	if a == nil {
		return "no: " + filepath.Base(d.File.Path) + " has no audit"
	}
	text := "yes, in " + filepath.Base(a.File) + ": "
	switch {
	case readOnly:
		text += "the call does not wait for its first line, as the tool of a trusted server only reads"
	case a.Sync == "none":
		text += "the call waits until its first line is written, not until it is on disk"
	default:
		text += "the call waits until its first line is on disk"
	}
	if a.OnFailure == "pass" {
		return text + "; it is made even if that fails"
	}
	return text + "; it is refused if that fails"
}

// Lines returns the explanation for people, each line with its heading. The first one follows "allowed" or
// "refused".
func (e *Explanation) Lines(source string) (lines [][2]string) {
	best := slices.IndexFunc(e.Ways, func(w Way) bool { return w.Allowed })
	w := e.Ways[max(best, 0)]
	lines = append(lines, [2]string{"", w.By})
	if w.Why != "" {
		lines = append(lines, [2]string{"", w.Why})
	}
	for i, w := range e.Ways {
		at := w.Path
		if w.View != "" {
			at = "view " + w.View + ", " + w.Path
		}
		name := "as " + w.Name
		if w.Through != "" {
			name += ", by " + w.Through
		}
		switch {
		case w.Allowed:
			lines = append(lines, [2]string{"at", at + ": " + name})
		case len(e.Ways) == 1:
			lines = append(lines, [2]string{"at", at})
		case i == max(best, 0):
			lines = append(lines, [2]string{"not at", at})
		default:
			lines = append(lines, [2]string{"not at", at + ": " + w.By})
		}
	}
	for _, f := range e.Facts {
		lines = append(lines, [2]string{f.Of, f.Text})
	}
	if source != "" {
		lines = append(lines, [2]string{"tools of", source})
	}
	return lines
}
