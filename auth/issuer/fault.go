package issuer

import (
	"errors"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Error codes (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2).
const (
	invalidRequest  = "invalid_request"
	invalidClient   = "invalid_client"
	invalidGrant    = "invalid_grant"
	invalidTarget   = "invalid_target"
	invalidMetadata = "invalid_client_metadata"
	invalidRedirect = "invalid_redirect_uri"
	unsupportedType = "unsupported_grant_type"
	accessDenied    = "access_denied"
	serverError     = "server_error"
	unavailable     = "temporarily_unavailable"
)

// fault is a request that is refused. Its text is for the sender.
type fault struct {
	status int // zero: 400
	code   string
	text   string
	basic  bool  // the client authenticated by Basic
	cause  error // for the log alone; may be nil
}

func (f *fault) Error() string {
	if f.cause != nil {
		return f.code + ": " + f.text + ": " + f.cause.Error()
	}
	return f.code + ": " + f.text
}

func (f *fault) Unwrap() error { return f.cause }

func refuse(code, text string) *fault { return &fault{code: code, text: text} }

// faultOf returns the fault in an error, and one without details for others.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{status: http.StatusInternalServerError, code: serverError, text: "the server failed; its log says why"}
}

// writeError writes the JSON of an error.
func writeError(w http.ResponseWriter, f *fault) {
	status := f.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	if f.basic {
		w.Header().Set("WWW-Authenticate", `Basic realm="client"`)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	writeJSON(w, status, struct {
		Code string `json:"error"`
		Text string `json:"error_description,omitempty"`
	}{f.code, plain(f.text)})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := jsonx.Marshal(v)
	if err != nil {
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// plain returns a text in the characters that a description of an error may have (RFC 6749, 5.2).
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, s)
}
