package steer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/auditlog"
	"github.com/patchbay-dev/patchbay/gateway/spread"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/launch"
)

// Role is the role of callers who may use the API over a listener.
const Role = "admin"

const (
	maxBody  = 4 << 10
	maxLines = 1000
	pace     = 30 * time.Second // that a reader may take for a line
)

// problem is an error as RFC 9457 has it.
type problem struct {
	Type   string   `json:"type"`
	Title  string   `json:"title"`
	Status int      `json:"status"`
	Detail string   `json:"detail"`
	Names  []string `json:"servers,omitempty"` // of the gateway, for an unknown name
}

func (p *problem) Error() string { return p.Detail }

func fail(status int, format string, args ...any) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// API returns the handler of the API. With guarded, callers need the role admin, and have a principal
// from a guard in front of it. Else they are the user of this program. On loopback, requests may have the
// host of the URL site, which a proxy passes on; it may be empty.
func (g *Gateway) API(guarded bool, site string) http.Handler {
	a := &api{g: g, guarded: guarded, routes: g.routes(), local: localUser()}
	if u, err := url.Parse(site); err == nil && u.Host != "" {
		a.proxied.AllowedHosts = []string{u.Host}
	}
	return a
}

// For returns the handler of the API for a person whose requests have been checked, as those of the page.
func (g *Gateway) For(by string) http.Handler {
	a := &api{g: g, routes: g.routes()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.serve(w, r, by); err != nil {
			refuse(w, err)
		}
	})
}

// localUser names the user of this program.
func localUser() string {
	if u, err := user.Current(); err == nil {
		return "local#" + u.Username
	}
	return "local#" + strconv.Itoa(os.Getuid())
}

type api struct {
	g       *Gateway
	guarded bool
	routes  []route
	local   string
	proxied web.Guard // for listeners on loopback
}

// route is one operation of the API.
type route struct {
	method, path string // below Path; {name} stands for a server
	summary      string
	query        []string                                                     // names of parameters
	body         string                                                       // name of the schema; empty: none
	answer       string                                                       // name of the schema
	handle       func(w http.ResponseWriter, r *http.Request, c *asked) error // writes an answer or returns an error
}

// asked is what a request asks for.
type asked struct {
	by     string
	server string // of the path
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	by, err := a.admit(r)
	if err == nil {
		err = a.serve(w, r, by)
	}
	if err != nil {
		refuse(w, err)
	}
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	var p *problem
	var unknown *Unknown
	var replica *spread.UnknownReplica
	switch {
	case errors.As(err, &p):
	case errors.As(err, &replica):
		p = fail(http.StatusNotFound, "%v", err)
	case errors.As(err, &unknown):
		p = fail(http.StatusNotFound, "%v", err)
		p.Names = unknown.Names[:min(len(unknown.Names), maxShown)]
	default:
		p = fail(http.StatusConflict, "%v", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, p.Status, p)
}

func write(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}

// hosts returns the guard for the address of a request. On other addresses than those of loopback, a guard
// with hosts would refuse all others.
func (a *api) hosts(r *http.Request) *web.Guard {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if at != nil && at.IP.IsLoopback() {
		return &a.proxied
	}
	return new(web.Guard)
}

// admit returns the caller of a request that may be answered.
func (a *api) admit(r *http.Request) (by string, err error) {
	if !a.guarded { // over the socket there is no other host, and no page reaches it
		by = a.local
	}
	refusal, guard := "requests of pages from other sites are refused here", *a.hosts(r)
	guard.Fail = func(_ http.ResponseWriter, why string) { refusal = why }
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" || !guard.Admit(nil, r, "GET, POST") {
		return "", fail(http.StatusForbidden, "%s", refusal)
	}
	if !a.guarded {
		return by, nil
	}
	p := auth.From(r.Context())
	if p == nil || !slices.Contains(p.Roles, Role) {
		who := "a caller without a principal"
		if p != nil {
			who = p.ID
		}
		a.g.Refused(who, r.Method+" "+r.URL.Path)
		return "", fail(http.StatusForbidden, "%s does not have the role %q, which this API needs", who, Role)
	}
	return p.ID, nil
}

// serve finds the route of a request.
func (a *api) serve(w http.ResponseWriter, r *http.Request, by string) error {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), Path)
	var methods []string
	for _, route := range a.routes {
		name, matches := match(route.path, path)
		if !ok || !matches {
			continue
		}
		if route.method != r.Method {
			methods = append(methods, route.method)
			continue
		}
		for key := range r.URL.Query() {
			if !slices.Contains(route.query, key) {
				return fail(http.StatusBadRequest, "%s %s has no parameter %q; it has: %s", route.method, Path+route.path, key, strings.Join(route.query, ", "))
			}
		}
		if r.Method == http.MethodPost {
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
				return fail(http.StatusUnsupportedMediaType, "a POST needs the header Content-Type: application/json")
			}
		}
		return route.handle(w, r, &asked{by, name})
	}
	if methods != nil {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return fail(http.StatusMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, strings.Join(methods, ", "), r.Method)
	}
	return fail(http.StatusNotFound, "nothing is at %s; GET %s/openapi.json lists what there is", r.URL.Path, Path)
}

// match compares an escaped path with that of a route, and returns the part at {name}.
func match(route, path string) (name string, ok bool) {
	of, is := strings.Split(route, "/"), strings.Split(path, "/")
	if len(of) != len(is) {
		return "", false
	}
	for i := range of {
		if of[i] == "{name}" && is[i] != "" {
			var err error
			if name, err = unescaped(is[i]); err != nil {
				return "", false
			}
		} else if of[i] != is[i] {
			return "", false
		}
	}
	return name, true
}

func (g *Gateway) routes() []route {
	act := func(action string) func(http.ResponseWriter, *http.Request, *asked) error {
		return func(w http.ResponseWriter, r *http.Request, c *asked) error { return g.act(w, r, c, action) }
	}
	return []route{
		{"GET", "/servers", "List the servers with their state", nil, "", "Report", func(w http.ResponseWriter, _ *http.Request, _ *asked) error {
			write(w, http.StatusOK, g.Report())
			return nil
		}},
		{"GET", "/servers/{name}", "Show a server", nil, "", "Server", g.server},
		{"GET", "/servers/{name}/tools", "List the tools of a server by its own names, as it last listed them", nil, "", "Tools", g.tools},
		{"GET", "/servers/{name}/logs", "Show the last lines of a server", []string{"lines", "follow"}, "", "Lines", g.logs},
		{"POST", "/servers/{name}/restart", "Start a server again, or its replicas one after another; calls in progress may finish", nil, "Restart", "Outcome", act(Restart)},
		{"POST", "/servers/{name}/enable", "Put a disabled server or replica back into use", nil, "Action", "Outcome", act(Enable)},
		{"POST", "/servers/{name}/disable", "Take a server or a replica out of use until it is enabled, or the gateway ends", nil, "Action", "Outcome", act(Disable)},
		{"GET", "/calls", "List the calls in progress", nil, "", "Calls", func(w http.ResponseWriter, _ *http.Request, _ *asked) error {
			list, all := g.Calls.List()
			write(w, http.StatusOK, map[string]any{"calls": list, "total": all})
			return nil
		}},
		{"GET", "/sessions", "List the sessions of clients before 2026-07-28", nil, "", "Sessions", func(w http.ResponseWriter, _ *http.Request, _ *asked) error {
			list, all := g.Sessions.List()
			write(w, http.StatusOK, map[string]any{"sessions": list, "total": all})
			return nil
		}},
		{"GET", "/nodes", "List the nodes of the cluster", nil, "", "Nodes", g.nodes},
		{"POST", "/nodes/{name}/drain", "Let load balancers send a node of the cluster no new requests, until that is undone or the node starts again", nil, "Drain", "Drained", g.drain},
		{"GET", "/logins", "List the logins of people, the newest first", nil, "", "Logins", g.logins},
		{"POST", "/logins/end", "End all logins of a person", nil, "Person", "Ended", g.endLogins},
		{"GET", "/audit", "Show the last selected lines of the audit log", auditQuery, "", "Audit", g.audit},
		{"GET", "/audit/verify", "Find changes of the audit log", nil, "", "Verified", g.verify},
		{"GET", "/openapi.json", "Describe this API", nil, "", "Document", func(w http.ResponseWriter, _ *http.Request, _ *asked) error {
			write(w, http.StatusOK, document(g.routes()))
			return nil
		}},
	}
}

// found returns the report of a server.
func (g *Gateway) found(name string) (*health.Server, error) {
	var names []string
	for _, s := range g.Report().Servers {
		if s.Name == name {
			return &s, nil
		}
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return nil, &Unknown{name, names}
}

func (g *Gateway) server(w http.ResponseWriter, _ *http.Request, c *asked) error {
	s, err := g.found(c.server)
	if err == nil {
		write(w, http.StatusOK, s)
	}
	return err
}

// tools lists the tools of a server; null: its list is not known.
func (g *Gateway) tools(w http.ResponseWriter, _ *http.Request, c *asked) error {
	if _, err := g.found(c.server); err != nil {
		return err
	}
	out := map[string]json.RawMessage{"tools": json.RawMessage("null")}
	if res := g.Tools(c.server); res != nil {
		out["tools"], _ = jsonx.Lookup(res.JSON(), "tools")
	}
	write(w, http.StatusOK, out)
	return nil
}

// readBody reads the body of a request.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, fail(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return nil, fail(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return raw, nil
}

// decode reads a body that must be one object, with these members alone, each once and by its exact name.
func decode(raw json.RawMessage, v any, members ...string) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return errors.New("want an object")
	}
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return err
	}
	for name := range jsonx.Members(raw) {
		if !slices.Contains(members, string(name)) {
			return fmt.Errorf("unknown member %q", name)
		}
	}
	return nil
}

// act reads the body of an action and does it.
func (g *Gateway) act(w http.ResponseWriter, r *http.Request, c *asked, action string) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	drain, replica := MaxDrain, ""
	if len(bytes.TrimSpace(raw)) > 0 {
		var body struct {
			Drain   string `json:"drain"`
			Replica string `json:"replica"`
		}
		if err := decode(raw, &body, "drain", "replica"); err != nil {
			return fail(http.StatusBadRequest, "the body is not an object with the members drain and replica, or without one: %v", err)
		}
		replica = body.Replica
		if body.Drain != "" {
			if drain, err = time.ParseDuration(body.Drain); action != Restart || err != nil || drain < 0 || drain > MaxDrain {
				return fail(http.StatusBadRequest, "drain %q is not a time from 0s to %v for a restart", body.Drain, MaxDrain)
			}
		}
	}
	o, err := g.Do(r.Context(), action, c.server, replica, drain, c.by)
	if err == nil {
		write(w, http.StatusOK, o)
	}
	return err
}

// number reads a parameter from 1 to maxLines.
func number(r *http.Request, name string, unset int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxLines {
		return 0, fail(http.StatusBadRequest, "%s=%s is not a number from 0 to %d", name, text, maxLines)
	}
	return n, nil
}

// logs shows the last lines of a server, and with follow those after them, a JSON object a line.
func (g *Gateway) logs(w http.ResponseWriter, r *http.Request, c *asked) error {
	j := g.Servers.Journal(c.server)
	if j == nil {
		return &Unknown{c.server, slices.Sorted(slices.Values(g.Servers.Names()))}
	}
	n, err := number(r, "lines", 100)
	if err != nil {
		return err
	}
	follow := false
	if text := r.URL.Query().Get("follow"); text != "" {
		if follow, err = strconv.ParseBool(text); err != nil {
			return fail(http.StatusBadRequest, "follow=%s is not true or false", text)
		}
	}
	last := j.Last(n)
	if !follow {
		if last == nil {
			last = []launch.Line{}
		}
		write(w, http.StatusOK, map[string]any{"lines": last})
		return nil
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	control, out := http.NewResponseController(w), json.NewEncoder(w)
	at := int64(0)
	if all := j.Last(1); len(all) > 0 {
		at = all[0].N
	}
	if len(last) > 0 {
		at = last[len(last)-1].N
	}
	changed := make(<-chan struct{})
	for first := true; ; first = false {
		if !first {
			if last, changed = j.After(at); len(last) > 0 && last[0].N > at+1 {
				last = append([]launch.Line{{N: last[0].N - 1, Time: last[0].Time, Event: true, Text: fmt.Sprintf("%d lines are left out here", last[0].N-1-at)}}, last...)
			}
		}
		for _, line := range last {
			_ = control.SetWriteDeadline(time.Now().Add(pace)) // not every writer has one
			if out.Encode(line) != nil {
				return nil
			}
			at = line.N
		}
		if len(last) > 0 || first {
			_ = control.SetWriteDeadline(time.Now().Add(pace))
			if control.Flush() != nil {
				return nil
			}
		}
		if first || len(last) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		}
	}
}

// auditQuery are the parameters of /audit: the flags of "patchbay audit query", and the server.
var auditQuery = []string{"lines", "server", "since", "until", "who", "team", "client", "tool", "rule", "outcome", "fault", "slower", "kind", "call"}

// audit shows lines of the audit log.
func (g *Gateway) audit(w http.ResponseWriter, r *http.Request, _ *asked) error {
	if g.AuditLog == "" {
		return noAuditLog()
	}
	n, err := number(r, "lines", 100)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	lines := auditlog.Lines{
		File: g.AuditLog, Since: q.Get("since"), Until: q.Get("until"), Who: q.Get("who"), Team: q.Get("team"), Client: q.Get("client"), Tool: q.Get("tool"),
		Rule: q.Get("rule"), Outcome: q.Get("outcome"), Fault: q.Get("fault"), Slower: q.Get("slower"), Kind: q.Get("kind"), Call: q.Get("call"),
	}
	l, err := lines.Open(q.Get("server"), time.Now())
	var bad auditlog.BadFlag
	switch {
	case errors.As(err, &bad):
		return fail(http.StatusBadRequest, "%s", strings.ReplaceAll(err.Error(), "--", ""))
	case errors.Is(err, fs.ErrNotExist):
		return fail(http.StatusNotFound, "the audit log is gone: %v", err)
	case err != nil:
		return err
	}
	list, err := l.Tail(n)
	if err != nil {
		return err
	}
	out := make([]json.RawMessage, 0, len(list))
	for _, e := range list {
		out = append(out, e.Line())
	}
	write(w, http.StatusOK, map[string]any{"lines": out, "warnings": append([]string{}, l.Warnings()...)})
	return nil
}

// verify verifies the audit log.
func (g *Gateway) verify(w http.ResponseWriter, _ *http.Request, _ *asked) error {
	if g.AuditLog == "" {
		return noAuditLog()
	}
	check := auditlog.Check{Files: []string{g.AuditLog}}
	if g.AuditKey != "" {
		check.Key = []string{g.AuditKey}
	}
	v, err := check.Verify()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(http.StatusNotFound, "the audit log cannot be verified: %v", err)
	case err != nil:
		return err
	}
	r, lines := v[0].Report, v.Lines(func(s, _ string) string { return s })
	r.Faults, r.Notes = r.Faults[:min(len(r.Faults), maxShown)], r.Notes[:min(len(r.Notes), maxShown)]
	write(w, http.StatusOK, struct {
		Whole bool     `json:"whole"`
		Text  []string `json:"text"` // for people
		*audit.Report
	}{v.Whole(), lines, r})
	return nil
}

func noAuditLog() error {
	return fail(http.StatusNotFound, "this gateway has no audit log; audit.file of gateway.yaml or --audit sets one")
}
