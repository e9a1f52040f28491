package web

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/buffer"
)

// ErrTooLarge reports a request body over the limit.
var ErrTooLarge = errors.New("body is over the limit")

// believed is the largest declared length, in bytes, for which ReadBody allocates in advance.
const believed = 32 << 10

// ReadBody appends the body of a request of at most limit bytes. It trusts the declared length
// only up to 32 KiB. The body may take 20 to 21 seconds from the beginning of its pace, and one
// more for each KiB; after that the error is [ErrSlow].
func ReadBody(dst []byte, w http.ResponseWriter, r *http.Request, pace *Pace, limit int64) ([]byte, error) {
	if len(r.TransferEncoding) > 0 {
		// There may have been a Content-Length too, which net/http drops, because a proxy could
		// take the next request for the rest of the body (RFC 9112, 6.1).
		w.Header().Set("Connection", "close")
	}
	if r.ContentLength > limit {
		return dst, ErrTooLarge
	}
	if n := int(min(r.ContentLength, believed)); n > 0 {
		dst = buffer.Grow(dst, n+1) // one byte more, to see the end without growing
	}
	for {
		if len(dst) == cap(dst) {
			dst = buffer.Grow(dst, 512)
		}
		n, err := r.Body.Read(dst[len(dst):min(cap(dst), int(limit)+1)])
		dst = dst[:len(dst)+n]
		if int64(len(dst)) > limit {
			// The rest is not read: the connection ends after the answer.
			w.Header().Set("Connection", "close")
			return dst, ErrTooLarge
		}
		switch err {
		case nil:
			pace.got(len(dst))
		case io.EOF:
			pace.whole()
			return dst, nil
		default:
			return dst, slow(err)
		}
	}
}

// IsJSON reports whether a body is plain application/json: the type is sent once, and the body is
// not compressed. Otherwise a proxy in front could read it differently.
func IsJSON(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || len(h["Content-Encoding"]) > 0 {
		return false
	}
	v := types[0]
	if v == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(v)
	return err == nil && t == "application/json"
}

// Accepts reports which kinds of answer a client accepts. Without an Accept header it accepts
// both (RFC 9110, 12.5.1).
func Accepts(h http.Header) (json, events bool) {
	values := h["Accept"]
	if len(values) == 0 {
		return true, true
	}
	if len(values) == 1 && values[0] == AcceptBoth {
		return true, true
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			t, params, _ := strings.Cut(part, ";")
			if refused(params) {
				continue
			}
			switch t = strings.TrimSpace(t); {
			case t == "*/*":
				json, events = true, true
			case strings.EqualFold(t, "application/json"), strings.EqualFold(t, "application/*"):
				json = true
			case strings.EqualFold(t, "text/event-stream"), strings.EqualFold(t, "text/*"):
				events = true
			}
		}
	}
	return json, events
}

// AcceptBoth is the Accept header that the specification requires of clients.
const AcceptBoth = "application/json, text/event-stream"

// refused reports whether the parameters of a media range have the weight 0.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, v, ok := strings.Cut(strings.TrimSpace(p), "=")
		if ok && strings.EqualFold(name, "q") && strings.Trim(v, "0.") == "" {
			return true
		}
	}
	return false
}
