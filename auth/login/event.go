package login

import "errors"

// States of an [Event].
const (
	EventDone    = "done"    // there is a token: of a login here, or of one that another process has stored
	EventRefused = "refused" // by the user, or by the authorization server
	EventEnded   = "ended"   // logged out, here or by another process, or the authorization server does not refresh the token any more
)

// Event is something that has happened to the login for a server, for [Transport.OnLogin].
type Event struct {
	State  string // [EventDone], [EventRefused] or [EventEnded]
	Issuer string // the authorization server; empty: unknown
	Client string // id of this client there; empty: unknown
	Reason string // of a refused login, and of one that has ended
}

// tell reports an event about a token, which may be nil.
func (t *Transport) tell(state string, k *token, reason string) {
	if t.OnLogin == nil {
		return
	}
	e := Event{State: state, Reason: reason}
	if k != nil {
		e.Issuer, e.Client = k.from.issuer, k.as.ID
	}
	t.OnLogin(e)
}

// lost reports that a login has ended, if the attempt to refresh its token has found that out.
func (t *Transport) lost(old *token, before bool) {
	if old != nil && !before && old.spent.Load() {
		t.tell(EventEnded, old, "the token cannot be refreshed any more")
	}
}

// denied reports a login that was refused.
func (t *Transport) denied(err error) {
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		t.tell(EventRefused, nil, refused.Error())
	}
}
