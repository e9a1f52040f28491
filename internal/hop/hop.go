// Package hop marks requests that are forwarded, so that one that comes back to where it was is
// refused instead of going round until the memory is gone.
//
// A gateway, and a session that is a handler, has a random id. It appends
// the id to the list that the request came with, in [Meta] and, over HTTP, in [Header]. A request whose
// list has the id of who is to forward it, or more than [Most] ids, goes in circles. Several in one
// process have ids of their own, so that they can be chained.
package hop

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const (
	// Meta is the member of _meta that has the list, an array of strings. Its prefix is ours, as
	// the specification wants it (2026-07-28, basic/index, _meta).
	Meta = "dev.patchbay/hops"

	// Header has the list in HTTP, joined by ", ".
	Header = "Patchbay-Hops"

	// Most is how many programs may forward a request, one after the other.
	Most = 8

	maxID = 64 // bytes of an id that is passed on
)

// New returns an id, 80 random bits.
func New() string { return rand.Text()[:16] }

// Self is the id of a program that forwards by one gateway alone.
var Self = New()

// ErrLoop says that a request has come back to the program that has forwarded it.
var ErrLoop = errors.New("this request was forwarded by the program that it comes to: remove the server that leads back here from the configuration")

// ErrFar says that a request has passed through more programs than Most.
var ErrFar = errors.New("this request was forwarded by more than 8 programs: do their configurations lead in a circle?")

// Loops tells whether the text of an error is that of ErrLoop or ErrFar, which may have come over
// several wires.
func Loops(text string) bool {
	return strings.Contains(text, ErrLoop.Error()) || strings.Contains(text, ErrFar.Error())
}

// Check returns [ErrLoop] or [ErrFar] for a list that goes in circles, for who has the id self. Anything but an array of
// strings is no list, which is no fault here.
func Check(list json.RawMessage, self string) error {
	if len(list) == 0 {
		return nil
	}
	n := 0
	for el := range jsonx.Elements(list) {
		if is(el, self) {
			return ErrLoop
		}
		n++
	}
	if n > Most {
		return ErrFar
	}
	return nil
}

// is compares a JSON string with an id, which has no escapes.
func is(el []byte, self string) bool {
	return len(el) == len(self)+2 && string(el[1:len(el)-1]) == self
}

// Append returns list with an id at its end. Elements that are no ids are left out.
func Append(list json.RawMessage, self string) json.RawMessage {
	out := make([]byte, 0, len(list)+len(self)+len(`[""],`))
	out = append(out, '[')
	for el := range jsonx.Elements(list) {
		if jsonx.KindOf(el) == '"' && len(el) <= maxID+2 {
			out = append(append(out, el...), ',')
		}
	}
	return append(append(append(out, '"'), self...), `"]`...)
}

// HeaderOf is the value of [Header] for a list that Append has made.
func HeaderOf(list json.RawMessage) string {
	ids := make([]string, 0, Most+1)
	for el := range jsonx.Elements(list) {
		if id, err := jsonx.Unquote(el); err == nil && plain(id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}

// plain tells whether an id may stand in a header.
func plain(id string) bool {
	for i := range len(id) {
		c := id[i]
		if c|0x20 < 'a' || c|0x20 > 'z' {
			if (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return id != ""
}

// CheckHeader does for a header what Check does for _meta, for who has the id [Self].
func CheckHeader(h http.Header) error {
	values := h[Header]
	if len(values) == 0 {
		return nil
	}
	n := 0
	for _, v := range values {
		for id := range strings.SplitSeq(v, ",") {
			if strings.TrimSpace(id) == Self {
				return ErrLoop
			}
			n++
		}
	}
	if n > Most {
		return ErrFar
	}
	return nil
}

// Refuse answers requests that go in circles by 508 Loop Detected (RFC 5842, section 7.2), before
// anybody asks who they are from.
func Refuse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CheckHeader(r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusLoopDetected)
			return
		}
		next.ServeHTTP(w, r)
	})
}
