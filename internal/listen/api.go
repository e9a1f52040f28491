package listen

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/auth"
)

// APIPath is the path of the API for callers that do not speak MCP.
const APIPath = "/api"

// api is the API of an endpoint.
type api struct {
	handler http.Handler // nil: there is none
	guards  sync.Map     // *auth.Guard of views, by path
}

// HandleAPI serves an API at [APIPath] and below, behind the limiter and the guard, as the server itself. The
// credentials of a view, at v/NAME below, are those of the server at v/NAME below [Path]. The handler checks hosts,
// origins and bodies. It is called before Serve.
func (e *Endpoint) HandleAPI(h http.Handler) {
	e.api.handler = h
	e.Mux.HandleFunc(APIPath, e.serveAPI)
	e.Mux.HandleFunc(APIPath+"/", e.serveAPI)
}

// Notes returns a line for people about each address besides URL.
func (e *Endpoint) Notes() (lines []string) {
	if e.SSE != "" {
		lines = append(lines, "clients of 2024-11-05, over HTTP+SSE: "+e.SSE)
	}
	if e.api.handler != nil {
		lines = append(lines, "callers without MCP, over HTTP: "+strings.TrimSuffix(e.URL, Path)+APIPath)
	}
	return lines
}

func (e *Endpoint) serveAPI(w http.ResponseWriter, r *http.Request) {
	e.protected("http", e.api.handler, e.apiGuard(r)).ServeHTTP(w, r)
}

// APITarget returns what a request to the API is for: the path of a server below [Path], s/NAME or v/NAME, and the
// name of a tool. Both are empty for the API itself, and tool is empty for a server. A GET of v/NAME is for a view, and a POST
// there for a tool of a server with the name v. It returns false if nothing has the path.
func APITarget(r *http.Request) (path, tool string, ok bool) {
	rest := strings.TrimPrefix(r.URL.EscapedPath(), APIPath)
	if rest == "" || rest == "/" {
		return "", "", true
	}
	names := strings.Split(rest[1:], "/")
	for i, name := range names {
		text, err := url.PathUnescape(name)
		if err != nil || text == "" {
			return "", "", false
		}
		names[i] = text
	}
	kind := "s/"
	if names[0] == "v" && (len(names) > 2 || len(names) == 2 && r.Method != http.MethodPost) {
		kind, names = "v/", names[1:]
	}
	switch len(names) {
	case 1:
		return kind + names[0], "", true
	case 2:
		return kind + names[0], names[1], true
	}
	return "", "", false
}

// apiGuard returns the guard of a request to the API.
func (e *Endpoint) apiGuard(r *http.Request) *auth.Guard {
	guard := e.options.Guard
	path, _, _ := APITarget(r)
	if guard == nil || e.find == nil || !strings.HasPrefix(path, "v/") {
		return guard
	}
	switch {
	case e.find(path) != nil:
		known, ok := e.api.guards.Load(path)
		if !ok {
			known, _ = e.api.guards.LoadOrStore(path, e.guardOf(path))
		}
		return known.(*auth.Guard)
	case plain(path) && r.Header.Get("Authorization") == "":
		return e.guardOf(path) // the answer to a stranger is that of a view that is there
	}
	return guard
}

// ofAPI reports whether a request is one to the API.
func (e *Endpoint) ofAPI(r *http.Request) bool {
	return e.api.handler != nil && (r.URL.Path == APIPath || strings.HasPrefix(r.URL.Path, APIPath+"/"))
}
