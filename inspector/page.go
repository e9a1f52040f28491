package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Page serves the page. Its fields are set before the first request.
type Page struct {
	Title   string // what is inspected: the configuration or the command, for people
	Version string // of the program
	Home    string // the first screen: "servers" or "tools"; empty: servers

	// Report returns the state of the servers.
	Report func() *health.Report

	// Server returns the server of a name with the whole chain in front, "*" all of them; nil: there is none.
	Server func(name string) *mcp.Server

	// Gateway is what the page offers beside that at a gateway.
	Gateway Gateway

	Logger *slog.Logger // gets what cannot be answered; nil: nothing does

	once sync.Once
	mux  *http.ServeMux
}

// ServeHTTP answers a request for the page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.once.Do(p.route)
	p.mux.ServeHTTP(w, r)
}

func (p *Page) route() {
	p.mux = http.NewServeMux()
	p.mux.HandleFunc("GET /assets/{name}", asset)
	p.mux.Handle("GET /ui/state", answered(func(*http.Request) (any, error) { return p.state(), nil }))
	p.mux.HandleFunc("GET /ui/events", p.events)
	p.mux.HandleFunc("/ui/mcp/{server}", p.mcp)
	p.routeGateway()
	p.routeForms()
	p.mux.HandleFunc("/ui/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fail(http.StatusNotFound, "nothing is at %s", r.URL.Path))
	})
	p.mux.HandleFunc("/", document)
}

// State is what the page shows of the servers and of the person.
type State struct {
	Title   string          `json:"title"`
	Version string          `json:"version"`
	Home    string          `json:"home"`
	URL     string          `json:"url,omitempty"`
	Person  string          `json:"person"`
	Admin   bool            `json:"admin"`
	Can     map[string]bool `json:"can"`
	Servers []health.Server `json:"servers"`
}

func (p *Page) state() *State {
	report := p.Report()
	s := &State{Title: p.Title, Version: p.Version, Home: p.Home, URL: report.URL, Admin: true, Servers: report.Servers, Can: map[string]bool{"call": p.Server != nil}}
	if s.Home == "" {
		s.Home = "servers"
	}
	if s.Servers == nil {
		s.Servers = []health.Server{}
	}
	p.Gateway.can(s.Can)
	return s
}

// mcp passes a request on to a server.
func (p *Page) mcp(w http.ResponseWriter, r *http.Request) {
	var srv *mcp.Server
	name := r.PathValue("server")
	if p.Server != nil {
		srv = p.Server(name)
	}
	if srv == nil {
		refuse(w, fail(http.StatusNotFound, "there is no server %q", name))
		return
	}
	took := &tookWriter{ResponseWriter: w, began: time.Now()}
	defer took.end()
	srv.ServeHTTP(took, r)
}

// problem is an error as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return p.Detail }

func fail(status int, format string, args ...any) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// answered makes a handler of a function that returns a document.
func answered(of func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, err := of(r)
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, "application/json", v)
	})
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = fail(http.StatusConflict, "%v", err)
	}
	write(w, p.Status, "application/problem+json", p)
}

func write(w http.ResponseWriter, status int, kind string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"about:blank","title":"Internal Server Error","status":500}`)
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the browser may have gone
}

// isScreen reports whether a path is that of a screen, whose document is the page.
func isScreen(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return !strings.Contains(first, ".") // such as favicon.ico, robots.txt
}
