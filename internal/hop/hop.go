// Package hop marks forwarded requests, so that a forwarding loop is detected and the request
// refused.
//
// A gateway, and a session that is a handler, has a random id. It appends the id to the list in
// the request, in [Meta] and, over HTTP, in [Header]. A request whose list already has the id, or
// more than [Most] ids, is in a loop. Gateways in one process have different ids, so that they
// can be chained.
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
	// Meta is the member of _meta that has the list, an array of strings. It has a prefix of our
	// own, as the specification requires (2026-07-28, basic/index, _meta).
	Meta = "dev.patchbay/hops"

	// Header has the list in HTTP, joined by ", ".
	Header = "Patchbay-Hops"

	// Most is the number of programs that may forward a request in turn.
	Most = 8

	maxID = 64 // bytes of an id that is passed on
)

// New returns an id, 80 random bits.
func New() string { return rand.Text()[:16] }

// Self is the id of a program that forwards with only one gateway.
var Self = New()

// ErrLoop reports that a request has come back to the program that forwarded it.
var ErrLoop = errors.New("this request came back to a program that forwarded it: remove the server that leads back here from the configuration")

// ErrFar reports that a request has passed through more programs than Most.
var ErrFar = errors.New("this request was forwarded by more than 8 programs: do their configurations form a loop?")

// Loops reports whether the text of an error contains that of ErrLoop or ErrFar, possibly from a
// remote program.
func Loops(text string) bool {
	return strings.Contains(text, ErrLoop.Error()) || strings.Contains(text, ErrFar.Error())
}

// Check returns [ErrLoop] if list contains the id self, and [ErrFar] if it is too long. Anything
// but an array of strings counts as no list, which is not an error.
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

// Append returns list with an id at its end. Elements that are not ids are left out.
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

// HeaderOf returns the value of [Header] for a list made by Append.
func HeaderOf(list json.RawMessage) string {
	ids := make([]string, 0, Most+1)
	for el := range jsonx.Elements(list) {
		if id, err := jsonx.Unquote(el); err == nil && plain(id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}

// FromHeader returns the list in [Header], nil without one. Elements that cannot be ids are left out.
func FromHeader(h http.Header) (list json.RawMessage) {
	for _, v := range h[Header] {
		for id := range strings.SplitSeq(v, ",") {
			if id = strings.TrimSpace(id); plain(id) && len(id) <= maxID {
				list = Append(list, id)
			}
		}
	}
	return list
}

// plain reports whether an id is valid in a header.
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

// CheckHeader is Check for the header, with the id [Self].
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

// Refuse answers requests in a loop with 508 Loop Detected (RFC 5842, section 7.2). Put it in
// front of authentication.
func Refuse(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CheckHeader(r.Header); err != nil {
			http.Error(w, err.Error(), http.StatusLoopDetected)
			return
		}
		next.ServeHTTP(w, r)
	})
}
