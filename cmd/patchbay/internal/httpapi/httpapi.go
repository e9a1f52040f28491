// Package httpapi serves the tools of MCP servers to callers that do not speak MCP.
//
//	GET  /api                 an index
//	GET  /api/SERVER          an OpenAPI document of the server, as the caller may see it
//	POST /api/SERVER/TOOL     a call; the body is the arguments as JSON, the answer the result
//
// A view is at /api/v/VIEW in the same way. Begin with an [API] and put it behind a listener with [API.On].
//
// # Guarantees
//
//   - A request becomes one of revision 2026-07-28 to the server at /mcp/s/SERVER or /mcp/v/VIEW, so it passes all that a
//     request there passes: authentication, the logs, limits, policy and the view. It is made for this caller alone and has
//     no session.
//   - The caller cannot be asked: a tool with a question fails, and the answer says why.
//   - The checks of hosts and of the origins of pages, and the bounds of bodies, are those of /mcp. A call needs
//     Content-Type: application/json, which forms of web pages cannot send.
//   - A tool that the caller may not see and one that does not exist have the same answer.
//   - A call ends when its caller disconnects.
package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/reference"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// API is the API of one endpoint.
type API struct {
	Version string // of this program

	Only  string                                 // without Owner: the name of the server; empty: its own
	Owner func(tool string) (server, own string) // of a gateway: the server that has a tool, empty: none
	Views func() []string                        // of a gateway: the names of its views

	server   func(path string) *mcp.Server // below the path of the endpoint; nil: there is none
	security []string
	pacer    web.Pacer
	doors    sync.Map // *mcp.Server in front of a server
	params   sync.Map // []streamable.ParamHeader by toolKey
	learned  atomic.Int64
}

// On serves the API at an endpoint, before that serves.
func (a *API) On(e *listen.Endpoint) {
	a.server = e.Server
	if a.Owner == nil && a.Only == "" {
		a.Only = cmp.Or(e.Server("").Name, "server")
	}
	if a.Only != "" {
		a.server = func(path string) *mcp.Server {
			if path == "" || path == "s/"+a.Only {
				return e.Server("")
			}
			return nil
		}
	}
	if g := e.Guard(); g != nil {
		for _, v := range g.Verifiers {
			name := "bearer"
			switch v.(type) {
			case *auth.Basic:
				name = "basic"
			case *auth.MTLS:
				name = "mutualTLS"
			}
			if !slices.Contains(a.security, name) {
				a.security = append(a.security, name)
			}
		}
	}
	e.HandleAPI(a)
}

// ServeHTTP answers a request whose caller has been authenticated.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pace := a.pacer.Begin(w, r)
	defer pace.End()
	front := a.server("")
	guard := web.Guard{
		AllowedHosts: front.HTTP.AllowedHosts, AllowedOrigins: front.HTTP.AllowedOrigins,
		Fail: func(w http.ResponseWriter, why string) { fail(w, http.StatusForbidden, "%s", why) },
	}
	path, tool, ok := listen.APITarget(r)
	method := http.MethodGet
	if tool != "" {
		method = http.MethodPost
	}
	switch {
	case !guard.Admit(w, r, method):
		return
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Dest") != "document":
		fail(w, http.StatusForbidden, "requests of pages from other sites are refused here")
		return
	case ok && r.Method != method:
		w.Header().Set("Allow", method)
		fail(w, http.StatusMethodNotAllowed, "%s is not served here; use %s", r.Method, method)
		return
	case ok && path == "":
		a.index(w, r)
		return
	}
	srv := front
	if ok {
		srv = a.server(path)
	}
	c := &caller{api: a, r: r, srv: srv, path: path}
	switch {
	case !ok || srv == nil:
		fail(w, http.StatusNotFound, "nothing is here; GET %s has what you can use", listen.APIPath)
	case tool != "":
		c.tool(w, pace, tool)
	default:
		c.document(w)
	}
}

// At returns the path in the API of a server below /mcp, s/NAME or v/NAME, escaped.
func At(path string) string {
	kind, name, _ := strings.Cut(path, "/")
	if kind == "v" {
		return listen.APIPath + "/v/" + url.PathEscape(name)
	}
	return listen.APIPath + "/" + url.PathEscape(name)
}

// entry is a server or a view in the index.
type entry struct {
	Name  string `json:"name"`
	Path  string `json:"path"` // of its document; the name of a tool follows for a call
	Tools int    `json:"tools"`
}

// index answers with the servers and views that have tools for the caller.
func (a *API) index(w http.ResponseWriter, r *http.Request) {
	out := map[string][]*entry{"servers": {}}
	add := func(kind, path string, tools int) {
		_, name, _ := strings.Cut(path, "/")
		out[kind] = append(out[kind], &entry{name, At(path), tools})
	}
	tools, failed := (&caller{api: a, r: r, srv: a.server("")}).tools()
	if failed != nil && !failed.elsewhere() {
		failed.refuse(w, nil)
		return
	}
	if a.Only != "" {
		add("servers", "s/"+a.Only, len(tools))
	} else {
		count := map[string]int{}
		var names []string
		for _, t := range tools {
			if name, _ := a.Owner(t.Name); name != "" && a.server("s/"+name) != nil {
				if count[name]++; count[name] == 1 {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		for _, name := range names {
			add("servers", "s/"+name, count[name])
		}
		out["views"] = []*entry{}
		for _, name := range a.Views() {
			c := &caller{api: a, r: r, srv: a.server("v/" + name)}
			if c.srv == nil {
				continue // it was removed
			}
			tools, failed := c.tools()
			switch {
			case failed != nil && !failed.elsewhere():
				failed.refuse(w, nil)
				return
			case len(tools) > 0:
				add("views", "v/"+name, len(tools))
			}
		}
	}
	body, err := jsonx.Marshal(out)
	if err != nil {
		fail(w, http.StatusInternalServerError, "%v", err)
		return
	}
	write(w, http.StatusOK, "application/json", body)
}

// document answers with the OpenAPI document of a server.
func (c *caller) document(w http.ResponseWriter) {
	found := c.call("server/discover", "", []byte("{}"))
	if found == nil {
		return
	}
	if !found.ok() {
		found.refuse(w, nil)
		return
	}
	tools, failed := c.tools()
	if failed != nil {
		failed.refuse(w, nil)
		return
	}
	info, _ := jsonx.LookupPath(found.result, "_meta", "io.modelcontextprotocol/serverInfo")
	s := &reference.Server{Info: &mcp.ServerInfo{}, Tools: tools}
	_ = jsonx.Unmarshal(jsonx.OrObject(info), &s.Info.Implementation) // for people
	if text, ok := jsonx.Lookup(found.result, "instructions"); ok {
		s.Info.Instructions, _ = jsonx.Unquote(text)
	}
	_, name, _ := strings.Cut(c.path, "/")
	s.Info.Name = cmp.Or(s.Info.Name, name)
	write(w, http.StatusOK, "application/json", s.OpenAPI("/", At(c.path), c.api.security).Document())
}

// problem is an error as RFC 9457 has it.
type problem struct {
	Title   string            `json:"title"`
	Status  int               `json:"status"`
	Detail  string            `json:"detail,omitempty"`
	Content []json.RawMessage `json:"content,omitempty"` // of a tool that has failed, if it is more than a text
}

// fail answers with an error.
func fail(w http.ResponseWriter, status int, format string, args ...any) {
	(&problem{Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}).write(w)
}

func (p *problem) write(w http.ResponseWriter) {
	body, err := jsonx.Marshal(p)
	if err != nil {
		body = []byte(`{"title":"Internal Server Error","status":500}`)
	}
	write(w, p.Status, "application/problem+json", body)
}

func write(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may have disconnected
}
