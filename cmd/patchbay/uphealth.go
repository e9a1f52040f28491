package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	httpguard "github.com/patchbay-dev/patchbay/internal/transport/web"
)

// upReport is what "patchbay status" knows of a running "patchbay up".
type upReport struct {
	State   string         `json:"state"` // starting, ready, degraded, failing or ending
	Version string         `json:"version"`
	PID     int            `json:"pid"`
	URL     string         `json:"url,omitempty"` // empty: served over stdio
	From    string         `json:"from"`          // the configuration
	Since   time.Time      `json:"since"`
	Servers []serverReport `json:"servers"`
}

// serverReport is what became of one server.
type serverReport struct {
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

// running tells whether callers reach the server.
func (s *serverReport) running() bool {
	return s.State == string(gateway.Ready) || s.State == string(gateway.Idle)
}

// The states of up as a whole.
const (
	upStarting = "starting" // servers are being tried that may make it ready
	upReady    = "ready"    // all servers can be used
	upDegraded = "degraded" // some cannot, and none of them is required
	upFailing  = "failing"  // none can be used, or a required one cannot
	upEnding   = "ending"
)

// readyTime bounds the time that an up is starting although servers can be used, as others that are
// not required have not been tried.
const readyTime = 5 * time.Second

// stateOf is the state of an up that has run for a while and does not end. Untried are the servers
// that have not been tried yet.
func stateOf(servers []serverReport, untried []string, ran time.Duration) string {
	if len(servers) == 0 {
		return upReady
	}
	usable, away := 0, 0
	lacks, tried := false, len(untried) == 0 // lacks: a required one
	for _, s := range servers {
		switch {
		case s.running():
			usable++
		case s.Required:
			lacks = true
			tried = tried || !slices.Contains(untried, s.Name) // it is known to be away
		case s.State != string(leftOut): // of that a person has been told, and to wait for it is vain
			away++
		}
	}
	switch {
	case (lacks || usable == 0) && tried:
		return upFailing
	case lacks || usable == 0 || len(untried) > 0 && ran < readyTime:
		return upStarting
	case away > 0:
		return upDegraded
	}
	return upReady
}

// report tells how things are, the servers in the order of the configuration.
func (h *hub) report() *upReport {
	r := &upReport{Version: Version, PID: os.Getpid(), URL: h.url, From: h.from, Since: h.began}
	names := h.fleet.names()
	states := map[string]gateway.Status{}
	for _, s := range h.gateway.Status() {
		states[s.Name] = s
	}
	left := h.fleet.leftOut()
	for _, name := range names {
		s, ok := states[name]
		if why := left[name]; why != "" {
			s = gateway.Status{Name: name, State: leftOut, Reason: why, Since: h.began, Tools: -1, Prompts: -1, Resources: -1}
		} else if !ok { // it is about to be placed
			s = gateway.Status{Name: name, State: gateway.Starting, Since: time.Now(), Tools: -1, Prompts: -1, Resources: -1}
		}
		row := serverReport{
			Name: name, State: string(s.State), Required: h.fleet.requires(name), Since: s.Since, Restarts: s.Restarts, Share: s.Share.String(), Clients: s.Clients,
			Asks: s.Asks, Roots: s.Roots, Losses: s.Losses, Evicted: s.Evicted, Refused: s.Refused, Conns: s.Conns, Tools: s.Tools, Prompts: s.Prompts, Resources: s.Resources, Shadowed: s.Shadowed,
		}
		row.Processes, row.Memory = h.fleet.processes(name)
		row.Reason, row.Said = apart(s.Reason)
		row.Lost, _ = apart(s.Lost)
		row.LostAt = s.LostAt
		if s.State == gateway.NeedsLogin {
			row.Login = row.Reason
		}
		if s.Server.Name != "" {
			row.Server = oneLine(strings.TrimSpace(s.Server.Name+" "+s.Server.Version)) + ", " + string(s.Revision)
		}
		r.Servers = append(r.Servers, row)
	}
	if r.State = stateOf(r.Servers, h.board.starting(names), time.Since(h.began)); h.ending.Load() {
		r.State = upEnding
	}
	return r
}

// How a question for the health of up came.
type asked int

const (
	overSocket   asked = iota // by the socket that its user alone can open
	overLoopback              // at an endpoint that lets in everybody
	overGuarded               // at one that lets in those who are known
)

// handleHealth serves
//
//	/healthz  200 as long as the process answers
//	/readyz   200 if the state is ready or degraded, else 503
//
// Both say so in JSON. Servers, their states and reasons are for those on this machine
// who may use them without being known; others learn the state of the whole alone, also if
// they come through a proxy here.
func (h *hub) handleHealth(mux *http.ServeMux, how asked) {
	guard := httpguard.Guard{AllowedHosts: h.front.HTTP.AllowedHosts, AllowedOrigins: h.front.HTTP.AllowedOrigins}
	serve := func(path string, answer func(r *http.Request) (int, any)) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if how != overSocket && !guard.Admit(w, r, "GET") {
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
		report := h.report()
		code := http.StatusServiceUnavailable
		if report.State == upReady || report.State == upDegraded {
			code = http.StatusOK
		}
		if how == overGuarded || how == overLoopback && !(fromHere(r) && httpguard.IsLoopback(r.Host)) {
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
