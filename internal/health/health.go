// Package health tells how a running gateway is: "patchbay up" or "patchbay bridge".
//
// A gateway makes a [Report] whenever somebody asks. [Handle] answers /healthz and /readyz over HTTP;
// [OpenSocket] has other programs of the same user find it, with [Gateways], without a port.
//
// # Guarantees
//
//   - The names, states and errors of servers are for the user of the machine: other callers get the
//     state of the whole alone.
//   - Web pages and rebound names of hosts are refused like requests to the server itself.
//   - The search for gateways takes at most 3 seconds, and removes what killed ones left behind.
package health

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/transport/web"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Report is the state of a gateway, as "patchbay status" shows it.
type Report struct {
	State   string    `json:"state"` // starting, ready, degraded, failing or ending
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	URL     string    `json:"url,omitempty"` // empty: it serves stdio
	From    string    `json:"from"`          // the configuration
	Since   time.Time `json:"since"`
	Servers []Server  `json:"servers"`
}

// Server is the state of one server of a gateway.
type Server struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Since     time.Time `json:"since"`
	Required  bool      `json:"required,omitempty"` // up is not ready without it
	Reason    string    `json:"reason,omitempty"`
	Login     string    `json:"login,omitempty"` // the command to run, if it needs login
	Said      []string  `json:"said,omitempty"`  // the last lines of its standard error, if it is not there
	Restarts  int       `json:"restarts"`
	Share     string    `json:"share"`
	Asks      bool      `json:"asks,omitempty"`  // callers who share a connection take turns, as its questions name no call
	Roots     bool      `json:"roots,omitempty"` // it is run per session for sessions with roots, as it asks for them
	Clients   int       `json:"clients"`         // connections of single clients
	Conns     int       `json:"connections"`     // all of them
	Processes int       `json:"processes"`
	Memory    int64     `json:"memory,omitempty"`  // bytes that the processes have for themselves; 0: not known
	Losses    int       `json:"losses,omitempty"`  // clients that lost what it kept for them
	Evicted   int       `json:"evicted,omitempty"` // quiet connections that made room
	Refused   int       `json:"refused,omitempty"` // requests that found no place for a connection
	Tools     int       `json:"tools"`             // -1: not known, as the next two
	Prompts   int       `json:"prompts"`
	Resources int       `json:"resources"`
	Lost      string    `json:"lost,omitempty"`     // why a connection to it ended last by itself
	LostAt    time.Time `json:"lostAt,omitzero"`    // when it did
	Server    string    `json:"server,omitempty"`   // its name, version and revision
	Shadowed  []string  `json:"shadowed,omitempty"` // its URIs that a server with an earlier name has too
}

// Running tells whether callers reach the server.
func (s *Server) Running() bool {
	return s.State == string(gateway.Ready) || s.State == string(gateway.Idle)
}

// The states of a gateway as a whole.
const (
	Starting = "starting" // servers are being tried that may make it ready
	Ready    = "ready"    // all servers can be used
	Degraded = "degraded" // some cannot, and none of them is required
	Failing  = "failing"  // none can be used, or a required one cannot
	Ending   = "ending"
)

// LeftOut is the state of a server that is not started, as it leads back to this program.
const LeftOut gateway.State = "left out"

// readyTime bounds how long a gateway is starting although servers can be used, because others that are
// not required have not been tried.
const readyTime = 5 * time.Second

// StateOf returns the state of a gateway that has run for a while and is not ending. Untried are the
// servers that have not been tried yet.
func StateOf(servers []Server, untried []string, ran time.Duration) string {
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
		case s.State != string(LeftOut): // it would never come
			away++
		}
	}
	switch {
	case (lacks || usable == 0) && tried:
		return Failing
	case lacks || usable == 0 || len(untried) > 0 && ran < readyTime:
		return Starting
	case away > 0:
		return Degraded
	}
	return Ready
}

// Way is how a request for the health of a gateway comes.
type Way int

const (
	OverSocket   Way = iota // by the socket that its user alone can open
	OverLoopback            // at an endpoint without authentication
	OverGuarded             // at an endpoint with authentication
)

// Handle serves
//
//	/healthz  200 as long as the process answers
//	/readyz   200 if the state is ready or degraded, else 503
//
// Both say so in JSON. The whole [Report] is for callers on this machine who may use the servers
// without authentication; all others, those behind a proxy here too, get its state alone. Srv is the
// server beside it: a request is admitted, unless it comes over the socket, where its hosts and origins
// are.
func Handle(mux *http.ServeMux, way Way, srv *mcp.Server, report func() *Report) {
	var guard web.Guard
	if srv != nil {
		guard = web.Guard{AllowedHosts: srv.HTTP.AllowedHosts, AllowedOrigins: srv.HTTP.AllowedOrigins}
	}
	serve := func(path string, answer func(r *http.Request) (int, any)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if way != OverSocket && !guard.Admit(w, r, "GET") {
				return
			}
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				w.Header().Set("Allow", "GET, HEAD")
				http.Error(w, path+" is read with GET", http.StatusMethodNotAllowed)
				return
			}
			code, v := answer(r)
			body, err := json.Marshal(v)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(code)
			w.Write(append(body, '\n'))
		})
	}
	type brief struct {
		Program string `json:"program"`
		State   string `json:"state"`
	}
	serve("/healthz", func(*http.Request) (int, any) { return http.StatusOK, brief{"patchbay", "alive"} })
	serve("/readyz", func(r *http.Request) (int, any) {
		report := report()
		code := http.StatusServiceUnavailable
		if report.State == Ready || report.State == Degraded {
			code = http.StatusOK
		}
		if way == OverGuarded || way == OverLoopback && !(fromHere(r) && web.IsLoopback(r.Host)) {
			return code, brief{"patchbay", report.State}
		}
		return code, report
	})
}

// fromHere tells whether a request was made on this machine, and not passed on by a proxy.
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
