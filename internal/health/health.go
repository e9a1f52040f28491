// Package health reports the state of a running gateway: "patchbay up" or "patchbay bridge".
//
// A gateway makes a [Report] for each request. [Handle] answers /healthz and /readyz over HTTP;
// [OpenSocket] lets other programs of the same user find the gateway, with [Gateways], without a
// port.
//
// # Guarantees
//
//   - Only the user of the machine gets the names, states and errors from servers: other callers
//     get only the state of the gateway as a whole.
//   - Requests from web pages and with rebound host names are refused, as for the server itself.
//   - The search for gateways takes at most 3 seconds, and removes the sockets of killed ones that
//     are older than a minute.
package health

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// Report is the state of a gateway, as "patchbay status" shows it.
type Report struct {
	State   string    `json:"state"` // starting, ready, degraded, failing, draining or ending
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	URL     string    `json:"url,omitempty"`  // empty: it serves stdio
	Page    string    `json:"page,omitempty"` // URL of the page for people; empty: there is none
	From    string    `json:"from"`           // the configuration
	Since   time.Time `json:"since"`
	Servers []Server  `json:"servers"`
	Views   []View    `json:"views,omitempty"` // with what they take of the window of a model

	Reason    string     `json:"reason,omitempty"`    // why it is failing although servers are available; without secrets
	Audit     *Audit     `json:"audit,omitempty"`     // nil: there is no audit log
	Record    *Record    `json:"record,omitempty"`    // nil: frames are not recorded
	Telemetry *Telemetry `json:"telemetry,omitempty"` // nil: none is sent
	Cluster   *Cluster   `json:"cluster,omitempty"`   // nil: the gateway is alone
	Steers    bool       `json:"steers,omitempty"`    // its servers can be restarted, disabled and enabled
	Unapplied []string   `json:"unapplied,omitempty"` // changed files that are not in use, each with the first reason
}

// Where describes for people where the program is reached.
func (r *Report) Where() string {
	switch {
	case r.URL != "":
		return r.served()
	case r.Page != "":
		return "the page " + r.Page
	}
	return "over stdio"
}

// served returns the URL for clients: that of the endpoint, or of the first view if nothing is served there.
func (r *Report) served() string {
	u, err := url.Parse(r.URL)
	if err != nil || len(r.Views) == 0 || slices.ContainsFunc(r.Views, func(v View) bool { return v.Path == u.Path }) {
		return r.URL
	}
	u.Path = r.Views[0].Path
	switch n := len(r.Views) - 1; n {
	case 0:
		return u.String()
	case 1:
		return u.String() + " and another view"
	default:
		return fmt.Sprintf("%s and %d other views", u, n)
	}
}

// View is what clients see at one path of a gateway.
type View struct {
	Name   string `json:"name"`
	Path   string `json:"path,omitempty"`   // below the address of the gateway, such as "/mcp/v/support"
	Search bool   `json:"search,omitempty"` // its tools are not listed, but found
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"` // of its list of tools, about

	Warnings []string `json:"warnings,omitempty"` // what is wrong with it, each with its place in the file
}

// Cluster says which node of a cluster a gateway is.
type Cluster struct {
	Name string `json:"name"`
	Node string `json:"node"`
	// Config is a digest of the files that the nodes should have alike; empty: they were not read yet.
	Config string `json:"config,omitempty"`
}

// Record is the state of a recording of all frames.
type Record struct {
	Dir   string `json:"dir"`
	Lost  int64  `json:"lost,omitempty"`  // frames that are missing since the start
	Error string `json:"error,omitempty"` // of the last write; empty: it succeeded
}

// Audit is the state of the audit log of a gateway.
type Audit struct {
	File    string  `json:"file"`
	Lines   int64   `json:"lines"`             // written since the start
	Queued  int     `json:"queued,omitempty"`  // that wait
	Dropped int64   `json:"dropped,omitempty"` // that are lost
	Lag     float64 `json:"lagMs"`             // that the last lines took to be written
	Error   string  `json:"error,omitempty"`   // of the last lines; empty: they were written
	Changed string  `json:"changed,omitempty"` // how others have changed the log, as found since the start
}

// Telemetry says how much telemetry a gateway has sent since its start.
type Telemetry struct {
	Endpoint string `json:"endpoint"`          // of the collector
	Sent     uint64 `json:"sent"`              // spans that the collector has taken
	Dropped  uint64 `json:"dropped,omitempty"` // spans that found the queue full
	Lost     uint64 `json:"lost,omitempty"`    // spans that the collector did not take
	Fault    string `json:"fault,omitempty"`   // why the last request failed; empty: it did not
}

// Server is the state of one server of a gateway.
type Server struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Required  bool      `json:"required,omitempty"` // the gateway is not ready without it
	Reason    string    `json:"reason,omitempty"`
	Login     string    `json:"login,omitempty"` // the command to run, if it needs login
	Said      []string  `json:"said,omitempty"`  // the last lines of its standard error, if it is not running
	Restarts  int       `json:"restarts"`
	Share     string    `json:"share"`
	Asks      bool      `json:"asks,omitempty"`         // callers that share a connection take turns, because its questions name no call
	Waiting   int       `json:"waiting,omitempty"`      // calls that wait for their turn now
	Question  time.Time `json:"questionSince,omitzero"` // when the oldest open question to a caller was asked; zero: none is open
	Asked     string    `json:"asked,omitempty"`        // the principal who has to answer it; empty: unknown
	Roots     bool      `json:"roots,omitempty"`        // it runs once per session for sessions with roots, because it asks for them
	Clients   int       `json:"clients"`                // connections of single clients
	Conns     int       `json:"connections"`            // all of them
	Processes int       `json:"processes"`
	Memory    int64     `json:"memory,omitempty"`  // private memory of the processes in bytes; 0: unknown
	Debug     []string  `json:"debug,omitempty"`   // addresses of debuggers, one for each process that has one
	Losses    int       `json:"losses,omitempty"`  // clients that lost the server's state for them
	Evicted   int       `json:"evicted,omitempty"` // idle connections that were closed to make room
	Refused   int       `json:"refused,omitempty"` // requests that got no connection
	Tools     int       `json:"tools"`             // -1: unknown, as Prompts and Resources
	Tokens    int       `json:"tokens,omitempty"`  // that the definitions of its tools take, about; 0: unknown
	Largest   []Tool    `json:"largest,omitempty"` // at most 100 of its tools, those with the most tokens first
	Prompts   int       `json:"prompts"`
	Resources int       `json:"resources"`
	Cache     *Cache    `json:"cache,omitempty"`    // nil: results are not cached
	Strays    int       `json:"strays,omitempty"`   // lines of its standard output that are not messages
	Stray     string    `json:"stray,omitempty"`    // the first of them, cut
	Lost      string    `json:"lost,omitempty"`     // why a connection last ended by itself
	LostAt    time.Time `json:"lostAt,omitzero"`    // when it ended
	Server    string    `json:"server,omitempty"`   // its name, version and revision
	Shadowed  []string  `json:"shadowed,omitempty"` // its URIs that a server with an earlier name also has

	Replicas []Replica `json:"replicas,omitempty"` // empty: it is one server without a breaker

	Minute *metrics.Server `json:"lastMinute,omitempty"` // calls, with the ten busiest tools; nil: none, and none is running
}

// Tool is a tool of a server with the tokens that its definition takes, about.
type Tool struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// Replica is the state of a replica of a server, or of the server itself if it is one with a breaker.
type Replica struct {
	Name     string         `json:"name"`
	Conns    int            `json:"connections"`
	Calls    int            `json:"calls"`              // in progress
	Breaker  string         `json:"breaker"`            // "open" or "closed"
	Opened   int            `json:"opened,omitempty"`   // how many times the breaker has opened
	Since    time.Time      `json:"since,omitzero"`     // when it opened or closed last
	Until    time.Time      `json:"until,omitzero"`     // of an open one: when the replica is probed
	Kind     string         `json:"kind,omitempty"`     // of an open one: of the failure that opened it, as in Failures
	Reason   string         `json:"reason,omitempty"`   // why the breaker is open, or there is no connection
	Differs  string         `json:"differs,omitempty"`  // how it differs from the one with the lists
	Failures map[string]int `json:"failures,omitempty"` // by kind, since the start: lost, timeout, status, internal, unusable, refused, silent
	Out      string         `json:"out,omitempty"`      // why the operator lets it get no calls, such as "is disabled (…)"
}

// Cache counts the calls of read-only tools since the start.
type Cache struct {
	Hits   uint64 `json:"hits"` // answered without the server
	Misses uint64 `json:"misses"`
}

// Running reports whether callers can reach the server.
func (s *Server) Running() bool {
	return s.State == string(gateway.Ready) || s.State == string(gateway.Idle)
}

// The states of a gateway as a whole.
const (
	Starting = "starting" // servers are being tried that may make it ready
	Ready    = "ready"    // all servers can be used, except those left out or disabled
	Degraded = "degraded" // some cannot, and none of them is required
	Failing  = "failing"  // none can be used, or a required one cannot
	Draining = "draining" // they can be used, and callers should go to another node
	Ending   = "ending"
)

// LeftOut is the state of a server that is not started because it leads back to this program.
const LeftOut gateway.State = "left out"

// ReadyTime is the default of the wait in [StateOf].
const ReadyTime = 5 * time.Second

// StateOf returns the state of a gateway that has run for a while and is not ending. The servers in
// untried have not been tried yet. A gateway with usable servers stays starting for at most wait
// because others, which are not required, have not been tried.
func StateOf(servers []Server, untried []string, ran, wait time.Duration) string {
	if len(servers) == 0 {
		return Ready
	}
	usable, away := 0, 0
	lacks, tried := false, len(untried) == 0 // lacks: a required one
	for _, s := range servers {
		switch {
		case s.Running():
			usable++
		case s.Required:
			lacks = true
			tried = tried || !slices.Contains(untried, s.Name) // it is known to be away
		case s.State != string(LeftOut) && s.State != string(gateway.Disabled): // it would never come, or nobody wants it
			away++
		}
	}
	switch {
	case (lacks || usable == 0) && tried:
		return Failing
	case lacks || usable == 0 || len(untried) > 0 && ran < wait:
		return Starting
	case away > 0:
		return Degraded
	}
	return Ready
}

// Way is the way on which a request for the health of a gateway arrives.
type Way int

const (
	OverSocket   Way = iota // over the socket that only its user can open
	OverLoopback            // at an endpoint without authentication
	OverGuarded             // at an endpoint with authentication
)

// Handle serves
//
//	/healthz  200 as long as the process answers
//	/readyz   200 if the state is ready or degraded, else 503
//
// Both return the state in JSON. Callers on this machine that may use the servers without
// authentication get the whole [Report]. All others get only the state and its reason, including those behind a
// proxy on this machine. The hosts and origins that srv allows also hold for these requests, except
// over the socket.
func Handle(mux *http.ServeMux, way Way, srv *mcp.Server, report func() *Report) {
	var guard *web.Guard
	if way != OverSocket {
		guard = &web.Guard{AllowedHosts: srv.HTTP.AllowedHosts, AllowedOrigins: srv.HTTP.AllowedOrigins}
	}
	serve := func(path string, answer func(*http.Request) (int, any)) {
		mux.Handle(path, web.HandleHealth(guard, answer))
	}
	type brief struct {
		Program string `json:"program"`
		State   string `json:"state"`
		Reason  string `json:"reason,omitempty"`
	}
	serve("/healthz", func(*http.Request) (int, any) { return http.StatusOK, brief{"patchbay", "alive", ""} })
	serve("/readyz", func(r *http.Request) (int, any) {
		report := report()
		code := http.StatusServiceUnavailable
		if report.State == Ready || report.State == Degraded {
			code = http.StatusOK
		}
		if way == OverGuarded || way == OverLoopback && !(fromHere(r) && web.IsLoopback(r.Host)) {
			return code, brief{"patchbay", report.State, report.Reason}
		}
		return code, report
	})
}

// fromHere reports whether a request was made on this machine and not passed on by a proxy.
func fromHere(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
