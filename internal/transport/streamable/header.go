package streamable

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Headers of the protocol, in the spelling of http.Header.
const (
	headerVersion   = "Mcp-Protocol-Version"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerSession   = "Mcp-Session-Id"
	headerLastEvent = "Last-Event-Id"
)

// The markers of a value in Base64. They are case-sensitive (HTTP-26-049).
const (
	sentinelOpen  = "=?base64?"
	sentinelClose = "?="
)

// EncodeValue returns the form of s that may stand in a header: s itself if it is
// plain ASCII, else the Base64 sentinel form (2026-07-28,
// basic/transports/streamable-http, Value Encoding; HTTP-26-047 to -052).
func EncodeValue(s string) string {
	if plain(s) && !sentinel(s) && s == strings.Trim(s, " \t") {
		return s
	}
	return sentinelOpen + base64.StdEncoding.EncodeToString([]byte(s)) + sentinelClose
}

// DecodeValue is the inverse of [EncodeValue]. It fails on bytes that a header must not have and
// on bad Base64; a value without both markers is literal.
func DecodeValue(s string) (string, error) {
	s = trim(s)
	if !plain(s) {
		return "", fmt.Errorf("%q holds characters that must be sent as %s...%s", text.Short(s), sentinelOpen, sentinelClose)
	}
	if !sentinel(s) {
		return s, nil
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(s[len(sentinelOpen) : len(s)-len(sentinelClose)])
	if err != nil {
		return "", fmt.Errorf("%q is not valid Base64", text.Short(s))
	}
	return string(raw), nil
}

func sentinel(s string) bool {
	return len(s) >= len(sentinelOpen)+len(sentinelClose) &&
		strings.HasPrefix(s, sentinelOpen) && strings.HasSuffix(s, sentinelClose)
}

// plain reports whether s has only visible ASCII, space and tab.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 0x20 || c > 0x7e) && c != '\t' {
			return false
		}
	}
	return true
}

// nameParam returns the member of params that Mcp-Name mirrors, or "" if the method has none
// (HTTP-26-031).
func nameParam(method string) string {
	switch method {
	case revision.MethodCall, revision.MethodPrompt:
		return "name"
	case revision.MethodRead:
		return "uri"
	case revision.MethodTask, revision.MethodTaskUpdate, revision.MethodTaskCancel:
		return "taskId" // extensions/tasks, Streamable HTTP: Routing Headers
	}
	return ""
}

// checkHeaders compares the mirrored headers of a modern request with its body
// (HTTP-26-057 to -068). Nil means that they agree.
func checkHeaders(h http.Header, msg *jsonrpc.Message, version string) *jsonrpc.Error {
	got, err := single(h, headerVersion)
	if err != nil {
		return err
	}
	if got != version {
		return mismatch("MCP-Protocol-Version is %q but _meta says %q", text.Short(got), text.Short(version))
	}
	if got, err = single(h, headerMethod); err != nil {
		return err
	}
	if got != msg.Method {
		return mismatch("Mcp-Method is %q but the method is %q", text.Short(got), text.Short(msg.Method))
	}
	param := nameParam(msg.Method)
	if param == "" {
		return nil
	}
	raw, ok := msg.Param(param)
	if ok = ok && jsonx.KindOf(raw) == '"'; !ok && len(h[headerName]) == 0 {
		return nil // the handler will say that the param is missing
	}
	if got, err = single(h, headerName); err != nil {
		return err
	}
	name, bad := DecodeValue(got)
	if bad != nil {
		return mismatch("Mcp-Name: %v", bad)
	}
	if !ok || !textIs(raw, name) {
		return mismatch("Mcp-Name is %q, which is not params.%s", text.Short(name), param)
	}
	return nil
}

// single returns the value of a header that must be there once.
func single(h http.Header, name string) (string, *jsonrpc.Error) {
	v := h[name]
	if len(v) == 1 {
		return trim(v[0]), nil
	}
	if len(v) == 0 {
		return "", mismatch("header %s is missing", name)
	}
	return "", mismatch("header %s is sent %d times", name, len(v))
}

// header returns the first value of a header, or "" if there is none. It is Get without
// canonicalizing the name.
func header(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// trim removes leading and trailing white space, which net/http does too.
func trim(s string) string {
	if n := len(s); n > 0 && s[0] > ' ' && s[n-1] > ' ' {
		return s
	}
	return strings.Trim(s, " \t")
}

// textIs reports whether a JSON string has the text s.
func textIs(raw json.RawMessage, s string) bool {
	if len(raw) == len(s)+2 && string(raw[1:len(raw)-1]) == s {
		return strings.IndexByte(s, '\\') < 0
	}
	if text, err := jsonx.Unquote(raw); err == nil {
		return text == s
	}
	return false
}

func mismatch(format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: revision.CodeHeaderMismatch, Message: "header mismatch: " + fmt.Sprintf(format, args...)}
}
