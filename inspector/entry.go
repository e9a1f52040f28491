package inspector

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"net/http"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
)

// Bounds of what is kept for people who come and go.
const (
	codeTime      = 5 * time.Minute // that a link works
	maxCodes      = 16              // links that work at once; the oldest gives way
	maxSessions   = 64              // people who are in; the one who was quiet for longest gives way
	maxOfOne      = 8               // sessions of one principal with a credential
	maxEnded      = 64              // sessions whose end is remembered, to say why
	maxCredential = 8 << 10         // bytes of the body of /ui/in
)

// person is a caller of the page.
type person struct {
	Principal *auth.Principal
	Admin     bool // may see all traffic, act on servers, and answer for others
}

// personKey is the context key of the person of a request.
type personKey struct{}

// personOf returns the person of a request; the zero person: there is none.
func personOf(ctx context.Context) person {
	p, _ := ctx.Value(personKey{}).(person)
	return p
}

// secret is the hash of a code or of the value of a cookie. Only hashes are kept.
type secret [sha256.Size]byte

// newSecret returns a random text of 192 bits for URLs, and its hash.
func newSecret() (text string, hash secret) {
	var b [24]byte
	rand.Read(b[:]) // never fails
	text = base64.RawURLEncoding.EncodeToString(b[:])
	return text, sha256.Sum256([]byte(text))
}

// same compares two hashes in a time that does not depend on them.
func (s secret) same(t secret) bool { return subtle.ConstantTimeCompare(s[:], t[:]) == 1 }

// link is a link that was not used yet.
type link struct {
	code    secret
	expires time.Time
	timer   *time.Timer
	over    func() // may be nil
}

// session is somebody who is in.
type session struct {
	value secret // of the cookie
	code  secret // of the link that made it; zero: it was made with a credential
	used  time.Time

	// How a credential is checked again with each request; nil: the session was made by a link.
	credential http.Header
	tls        *tls.ConnectionState
	id         string // of its principal

	ctx context.Context
	end context.CancelCauseFunc
}

// reason says why a session ended, for people.
type reason string

func (r reason) Error() string { return string(r) }

const (
	left      = reason("you have left this page")
	twice     = reason("the link of this page was used a second time, so the session that it opened has ended: somebody else may have seen the link")
	revoked   = reason("the credential of this page is not valid any more")
	displaced = reason("there are too many sessions of this page, so the one that was quiet for longest has ended")
	closing   = reason("the program has ended")
)

// door keeps who is in and who may come. The zero value is an empty one.
type door struct {
	mu       sync.Mutex
	closed   bool       // guarded by mu
	links    []*link    // the oldest first; guarded by mu
	sessions []*session // guarded by mu
	ended    []ended    // the oldest first; guarded by mu
}

// ended is a session that has ended.
type ended struct {
	value secret
	why   reason
}

// issue returns a new code, which is valid once, within codeTime. Then, or when it is used or gives way, it calls
// over; nil: nothing.
func (d *door) issue(over func()) (code string) {
	l := &link{expires: time.Now().Add(codeTime), over: over}
	code, l.code = newSecret()
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		l.forget()
		return code
	}
	var gone *link
	if len(d.links) >= maxCodes {
		gone, d.links = d.links[0], d.links[1:]
	}
	l.timer = time.AfterFunc(codeTime, func() { d.expire(l) })
	d.links = append(d.links, l)
	d.mu.Unlock()
	if gone != nil {
		gone.forget()
	}
	return code
}

// forget tells that a link does not work any more.
func (l *link) forget() {
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.over != nil {
		l.over()
	}
}

// expire removes a link whose time is over.
func (d *door) expire(l *link) {
	d.mu.Lock()
	for i, have := range d.links {
		if have == l {
			d.links = append(d.links[:i:i], d.links[i+1:]...)
			d.mu.Unlock()
			l.forget()
			return
		}
	}
	d.mu.Unlock()
}

// enter makes a session of a code, and returns the value of its cookie. A code that was used before ends the session
// that it made.
func (d *door) enter(code string) (value string, err error) {
	hash := secret(sha256.Sum256([]byte(code)))
	d.mu.Lock()
	found := -1
	for i, l := range d.links {
		if l.code.same(hash) {
			found = i
		}
	}
	if found >= 0 {
		l := d.links[found]
		d.links = append(d.links[:found:found], d.links[found+1:]...)
		if time.Now().Before(l.expires) && !d.closed {
			value = d.add(&session{code: hash})
		}
		d.mu.Unlock()
		l.forget()
		if value != "" {
			return value, nil
		}
		return "", fail(http.StatusUnauthorized, "this link has expired: a link works for %v", codeTime)
	}
	var used *session
	for _, s := range d.sessions {
		if s.code.same(hash) {
			used = s
		}
	}
	d.mu.Unlock()
	if used != nil {
		d.close(used, twice)
		return "", fail(http.StatusUnauthorized, "%s", twice)
	}
	return "", fail(http.StatusUnauthorized, "this link does not work: it was used before, has expired, or is of another program")
}

// admit adds a session of somebody with a credential, and returns the value of its cookie.
func (d *door) admit(s *session) (value string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return "", fail(http.StatusServiceUnavailable, "%s", closing)
	}
	return d.add(s), nil
}

// add adds a session and returns the value of its cookie; d.mu is held.
func (d *door) add(s *session) (value string) {
	value, s.value = newSecret()
	s.used = time.Now()
	s.ctx, s.end = context.WithCancelCause(context.Background())
	count := func(of func(*session) bool) (n int, oldest *session) {
		for _, have := range d.sessions {
			if of(have) {
				if n++; oldest == nil || have.used.Before(oldest.used) {
					oldest = have
				}
			}
		}
		return n, oldest
	}
	if s.credential != nil {
		if n, oldest := count(func(have *session) bool { return have.credential != nil && have.id == s.id }); n >= maxOfOne {
			d.remove(oldest, displaced)
		}
	}
	if n, oldest := count(func(*session) bool { return true }); n >= maxSessions {
		d.remove(oldest, displaced)
	}
	d.sessions = append(d.sessions, s)
	return value
}

// find returns the session of a cookie; nil: there is none. Then why says how it has ended; empty: it never was.
func (d *door) find(value string) (_ *session, why reason) {
	hash := secret(sha256.Sum256([]byte(value)))
	d.mu.Lock()
	defer d.mu.Unlock()
	var found *session
	for _, s := range d.sessions {
		if s.value.same(hash) {
			found = s
		}
	}
	for _, e := range d.ended {
		if e.value.same(hash) {
			why = e.why
		}
	}
	if found != nil {
		found.used = time.Now()
	}
	return found, why
}

// close ends a session, and with it its streams and calls.
func (d *door) close(s *session, why reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.remove(s, why)
}

// remove ends a session; d.mu is held.
func (d *door) remove(s *session, why reason) {
	for i, have := range d.sessions {
		if have != s {
			continue
		}
		d.sessions = append(d.sessions[:i:i], d.sessions[i+1:]...)
		s.end(why)
		if d.ended = append(d.ended, ended{s.value, why}); len(d.ended) > maxEnded {
			d.ended = d.ended[1:]
		}
		return
	}
}

// shut ends all sessions and links; nobody comes in any more.
func (d *door) shut() {
	d.mu.Lock()
	links := d.links
	d.closed, d.links = true, nil
	for len(d.sessions) > 0 {
		d.remove(d.sessions[0], closing)
	}
	d.mu.Unlock()
	for _, l := range links {
		l.forget()
	}
}
