package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
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

	// Words name the only server on the command line, such as -- and a command; nil: servers are in the configuration, under
	// their names.
	Words []string

	// Gateway is what the page offers beside that at a gateway.
	Gateway Gateway

	// URL is the address of the page, such as http://127.0.0.1:7420/. Requests must be for its host, or for one of Hosts:
	// names, or names with a port, by which a proxy is reached.
	URL   string
	Hosts []string

	// Sandbox is the origin of another host at which the page shows views of MCP Apps: with http such as http://localhost:7420,
	// for the page at URL, or with https, for the page at all of its hosts. No other program may get what browsers send there:
	// localhost is both 127.0.0.1 and ::1. Empty: views are not shown, because of what NoSandbox says.
	Sandbox, NoSandbox string

	// Local is the principal of the people who come by a [Page.Link]: the owner of the program.
	Local *auth.Principal

	// Guard checks the credentials of other people; nil: nobody else comes in. Those with the role admin may do everything
	// that the owner may; others come in if Admits allows it, and may call servers and see their state. Admits gets the
	// context of a request with its principal; nil: nobody else comes in.
	Guard  *auth.Guard
	Admits func(ctx context.Context) bool

	// Client is the id that the page has at the authorization server of the Guard, a public client with the redirect URI /in
	// at the host of the Guard's Resource: people log in there. Empty, or if the Guard has tokens of several: they paste a token.
	Client string

	// Watch is called when the first administrator opens the page, and what it returns when the last one has left, so that
	// nothing makes frames while nobody looks; nil: frames are made all the time, or never.
	Watch func() (stop func())

	Again string // the command that makes another link; empty: patchbay page

	// Frames has what is on the wire; nil: there is no wire screen.
	Frames *Frames

	// Recording is the file that Frames was read from, for people; empty: Frames are of live traffic.
	Recording string

	// Files is the folder into which this program records; empty: it does not.
	Files string

	// Judge says what other rules, in the form of a file, would do with the calls of tools in a recording for the principal
	// of an access; its Server names the server if the recording is not that of a gateway. The error is for the
	// person. Nil: the page does not offer it.
	Judge func(ctx context.Context, rules []byte, by *Access, recording io.Reader) (*Answer, error)

	Logger *slog.Logger // gets what cannot be answered; nil: nothing does

	once      sync.Once
	mux       *http.ServeMux
	door      door
	signIns   signIns
	watch     watch
	lease     lease
	library   library
	replaying sync.Mutex // held while requests are sent again
	open      streams
	bell      bell // rings when a document of events has changed
}

func (p *Page) route() {
	p.mux = http.NewServeMux()
	p.mux.HandleFunc("GET /assets/{name}", asset)
	p.mux.Handle("GET /ui/state", answered(func(r *http.Request) (any, error) { return p.state(r.Context(), r.Host), nil }))
	p.mux.HandleFunc("GET /ui/events", p.events)
	p.mux.HandleFunc("POST /ui/mcp/{server}", p.mcp)
	p.mux.HandleFunc("POST /ui/view", func(w http.ResponseWriter, r *http.Request) {
		answered(func(r *http.Request) (any, error) { return p.view(w, r) }).ServeHTTP(w, r)
	})
	p.routeGateway()
	p.routeForms()
	p.routeWire()
	p.mux.HandleFunc("/ui/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, fail(http.StatusNotFound, "nothing is at %s", r.URL.Path))
	})
	p.mux.HandleFunc("/", document)
}

// State is what the page shows of the servers and of the person.
type State struct {
	Title     string          `json:"title"`
	Version   string          `json:"version"`
	Home      string          `json:"home"`
	URL       string          `json:"url,omitempty"`
	Person    string          `json:"person"`
	Principal string          `json:"principal,omitempty"` // the ID of the person
	Admin     bool            `json:"admin"`
	Recording string          `json:"recording,omitempty"`
	Can       map[string]bool `json:"can"`
	Servers   []health.Server `json:"servers"`
	Open      int             `json:"open"` // questions of other callers that the person may answer
	Sandbox   string          `json:"sandbox,omitempty"`
	NoSandbox string          `json:"noSandbox,omitempty"` // why views are not shown
	Connect   []string        `json:"connect,omitempty"`   // see Gateway.Connect
}

// adminsOnly is what the page offers to administrators alone.
var adminsOnly = []string{"wire", "steer", "audit", "policy", "judge", "login"}

// state returns what the person of a request sees on the page at a host; empty: elsewhere.
func (p *Page) state(ctx context.Context, host string) *State {
	report, who := p.Report(), personOf(ctx)
	s := &State{Title: p.Title, Version: p.Version, Home: p.Home, URL: report.URL, Recording: p.Recording, Admin: who.Admin, Servers: report.Servers, Can: map[string]bool{"call": p.Server != nil, "wire": p.Frames != nil, "judge": p.Judge != nil && p.Frames != nil}}
	if who.Principal != nil {
		s.Person, s.Principal = cmp.Or(who.Principal.Name, who.Principal.ID), who.Principal.ID
	}
	if !who.Admin {
		s.Servers = slices.Clone(s.Servers)
		for i := range s.Servers {
			s.Servers[i] = forOthers(s.Servers[i], s.Principal)
		}
	}
	if p.Gateway.Connect != nil && host != "" {
		s.Connect = p.Gateway.Connect()
	}
	if p.Server != nil && host != "" {
		s.Sandbox, s.NoSandbox = p.views(host)
	}
	if s.Home == "" {
		s.Home = "servers"
	}
	if s.Servers == nil {
		s.Servers = []health.Server{}
	}
	p.Gateway.can(s.Can)
	if ask := p.Gateway.Questions; ask != nil && who.Principal != nil {
		_, s.Open = ask(who.Principal.ID, who.Admin)
	}
	for _, name := range adminsOnly {
		s.Can[name] = s.Can[name] && who.Admin
	}
	return s
}

// forOthers returns what people who are not administrators see of a server. Reasons have paths and addresses of the machine,
// and the tools of a server and their calls may be those of other callers. Own is the principal of the person.
func forOthers(s health.Server, own string) health.Server {
	s.Said, s.Debug, s.Largest, s.Shadowed = nil, nil, nil, nil
	s.Reason, s.Lost, s.Stray, s.Tokens = "", "", "", 0
	if s.Asked != own {
		s.Asked = ""
	}
	if s.Minute != nil {
		minute := *s.Minute
		minute.Tools = nil
		s.Minute = &minute
	}
	s.Replicas = slices.Clone(s.Replicas)
	for i := range s.Replicas {
		s.Replicas[i].Reason, s.Replicas[i].Differs, s.Replicas[i].Out = "", "", ""
	}
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
		refuse(w, fail(http.StatusNotFound, "no server has the name %q", name))
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

	Ways []string `json:"ways,omitempty"` // how people come in: link, login, key, password, certificate
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
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the browser may have gone
}

// screens are the first parts of the paths of screens, as ui/screens.ts has them.
var screens = map[string]bool{"": true, "s": true, "apps": true, "tasks": true, "wire": true, "charts": true, "inbox": true, "policy": true, "audit": true, "recordings": true, "help": true}

// isScreen reports whether a path is that of a screen, or of people who come back from an authorization server, whose
// document is the page. Nothing is at other paths: clients
// that look for an authorization server there must not find a page.
func isScreen(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return screens[first] || path == "/"+backPath
}
