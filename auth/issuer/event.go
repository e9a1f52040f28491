package issuer

import (
	"net"
	"net/http"
)

// States of an [Event].
const (
	EventDone    = "done"    // a host has its first tokens
	EventRefused = "refused" // the person, the identity provider, Require or a rule of this package has refused the login
	EventEnded   = "ended"   // before its time: revoked by the host, by EndLogins, or since a code or refresh token was used twice
)

// Event is something that has happened to a login, for [Server.OnLogin].
type Event struct {
	State   string // [EventDone], [EventRefused] or [EventEnded]
	Login          // as far as it is known: that of a refused one is often not
	Client  string // id of the host, shortened unless it is a URL; empty: unknown
	Address string // IP address that the request came from; empty: the program has ended the login itself
	Reason  string // of a refused login, and of one that has ended
}

// tell reports an event. A nil request stands for the program itself.
func (s *Server) tell(r *http.Request, e Event) {
	if s.OnLogin == nil {
		return
	}
	if r != nil {
		e.Address = r.RemoteAddr
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			e.Address = host
		}
	}
	if e.Client != "" {
		e.Client = shownClient(e.Client)
	}
	s.OnLogin(e)
}

// refused reports a login that was refused.
func (s *Server) refused(r *http.Request, client string, err error) {
	s.tell(r, Event{State: EventRefused, Client: client, Reason: faultOf(err).text})
}

// ended reports a login that has ended before its time.
func (s *Server) ended(r *http.Request, client string, one *session, reason string) {
	if one != nil {
		s.tell(r, Event{State: EventEnded, Login: one.login(), Client: client, Reason: reason})
	}
}
