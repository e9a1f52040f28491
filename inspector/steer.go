package inspector

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Gateway is what a page shows and does at a gateway beside the state of its servers. The page does not offer what is
// nil here.
type Gateway struct {
	// Counters have counted the calls of the servers.
	Counters *metrics.Counters

	// Admin returns the API by which a person acts on the gateway, whose actions get lines with the person in the audit
	// log. It answers the paths of "/admin/v1": /servers/NAME/logs, /restart, /disable and /enable, and /audit.
	Admin func(by string) http.Handler

	// Login starts the login of a person at a server (the action is "start"), cancels it ("cancel"), or shows it with its
	// steps (""), as JSON. It starts no browser: the page leads the person to the authorization server. The error is for
	// the person.
	Login func(ctx context.Context, server, by, action string) (any, error)

	// Audited reports whether the gateway has an audit log.
	Audited bool

	// Explain says what the gateway would do with a call of a tool, as JSON. The error is for the person.
	Explain func(ctx context.Context, a *Access) (any, error)

	// Harmless reports whether a tool of a server only reads, as a server says whose hints count. Nil: none does.
	Harmless func(server, tool string) bool

	// Questions returns the questions that a person may answer beside the clients who have to, with all those of
	// everybody, as JSON, and their number. Answer answers one; its error is for the person.
	Questions func(by string, all bool) (list any, n int)
	Answer    func(id, by string, all bool, answer json.RawMessage) error

	// Connect returns lines by which hosts connect to the gateway: lines to paste begin with two spaces, and are below
	// the names of their places.
	Connect func() []string
}

// adminPath is where the paths of [Gateway.Admin] begin.
const adminPath = "/admin/v1"

// routeGateway adds the paths of a gateway.
func (p *Page) routeGateway() {
	p.mux.Handle("GET /ui/metrics", answered(p.metrics))
	p.mux.Handle("GET /ui/inbox", answered(func(r *http.Request) (any, error) {
		list, _ := p.questions(r)
		return map[string]any{"questions": list}, nil
	}))
	p.mux.HandleFunc("POST /ui/answer/{question}", func(w http.ResponseWriter, r *http.Request) {
		answered(func(r *http.Request) (any, error) { return struct{}{}, p.answer(w, r) }).ServeHTTP(w, r)
	})
	p.mux.Handle("GET /ui/login/{server}", answered(p.login("")))
	p.mux.Handle("POST /ui/login/{server}", answered(p.login("start")))
	p.mux.Handle("POST /ui/login/{server}/cancel", answered(p.login("cancel")))
	p.mux.HandleFunc("POST /ui/explain", func(w http.ResponseWriter, r *http.Request) {
		answered(func(r *http.Request) (any, error) { return p.explain(w, r) }).ServeHTTP(w, r)
	})
	for pattern, path := range map[string]string{
		"GET /ui/logs/{server}": "/servers/{}/logs", "POST /ui/restart/{server}": "/servers/{}/restart", "POST /ui/disable/{server}": "/servers/{}/disable",
		"POST /ui/enable/{server}": "/servers/{}/enable", "GET /ui/audit": "/audit", "GET /ui/audit/verify": "/audit/verify",
	} {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.admin(w, r, strings.ReplaceAll(path, "{}", url.PathEscape(r.PathValue("server"))))
		})
	}
}

// admin passes a request of an administrator on to the API of the gateway.
func (p *Page) admin(w http.ResponseWriter, r *http.Request, path string) {
	by, admin := callerOf(r)
	switch {
	case p.Gateway.Admin == nil:
		refuse(w, fail(http.StatusNotFound, "this page is not that of a gateway, so there is nothing at %s", r.URL.Path))
		return
	case !admin:
		refuse(w, fail(http.StatusForbidden, "%s does not have the role %q, which this needs", by, adminRole))
		return
	}
	to := r.Clone(r.Context())
	to.URL = &url.URL{Path: adminPath + path, RawQuery: r.URL.RawQuery}
	if plain, err := url.PathUnescape(path); err == nil {
		to.URL.Path, to.URL.RawPath = adminPath+plain, adminPath+path
	}
	p.Gateway.Admin(by).ServeHTTP(w, to)
}

// login returns what answers a request of an administrator about the login at a server.
func (p *Page) login(action string) func(r *http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		by, admin := callerOf(r)
		server := r.PathValue("server")
		switch {
		case p.Gateway.Login == nil:
			return nil, fail(http.StatusNotFound, "this page is not that of a gateway, so there is nothing at %s", r.URL.Path)
		case !admin:
			return nil, fail(http.StatusForbidden, "%s does not have the role %q, which this needs", by, adminRole)
		case !slices.ContainsFunc(p.Report().Servers, func(s health.Server) bool { return s.Name == server }):
			return nil, fail(http.StatusNotFound, "no server has the name %q", text.Clip(server, 100))
		}
		return p.Gateway.Login(r.Context(), server, by, action)
	}
}

// questions returns the questions that the person of a request may answer.
func (p *Page) questions(r *http.Request) (list any, n int) {
	by, admin := callerOf(r)
	if p.Gateway.Questions == nil {
		return []struct{}{}, 0
	}
	return p.Gateway.Questions(by, admin)
}

const maxAnswer = 1 << 20 // bytes of the body of /ui/answer

// answer answers a question for the person of a request: one of their own, or of everybody for an administrator.
func (p *Page) answer(w http.ResponseWriter, r *http.Request) error {
	if p.Gateway.Answer == nil {
		return fail(http.StatusNotFound, "this page is not that of a gateway, so there are no questions")
	}
	var answer json.RawMessage
	if err := readBody(w, r, maxAnswer, &answer); err != nil {
		return err
	}
	by, admin := callerOf(r)
	return p.Gateway.Answer(r.PathValue("question"), by, admin, answer)
}

// callerOf returns who makes a request, and whether that person may act on the gateway.
func callerOf(r *http.Request) (by string, admin bool) {
	who := personOf(r.Context())
	if who.Principal == nil {
		return "nobody", false
	}
	return who.Principal.ID, who.Admin
}

// can adds to what the page offers.
func (g *Gateway) can(can map[string]bool) {
	can["login"] = g.Login != nil
	can["steer"], can["audit"], can["policy"] = g.Admin != nil, g.Admin != nil && g.Audited, g.Explain != nil
}
