package launch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Error says that a session with a server could not be opened, or has failed.
type Error struct {
	Server string // its name
	Err    error  // why
}

func (e *Error) Error() string {
	var rpc *mcp.Error
	if errors.As(e.Err, &rpc) {
		if _, wait := retryafter.Data(rpc.Data); wait {
			return e.Server + " refuses the request: " + text.Clip(rpc.Message, 2000)
		}
	}
	return fmt.Sprintf("cannot reach %s: %s", e.Server, e.Reason())
}

// Reason returns the text of the error without the name of the server.
func (e *Error) Reason() string {
	var dns *net.DNSError
	var op *net.OpError
	var status *mcp.HTTPError
	switch {
	case errors.As(e.Err, &dns):
		return netfault.Words(dns)
	case errors.As(e.Err, &op):
		return netfault.Words(op)
	case netfault.SpeaksPlain(e.Err):
		return "it speaks http, not https"
	case errors.As(e.Err, &status):
		said := fmt.Sprintf("HTTP %d %s", status.Status, http.StatusText(status.Status))
		switch body := strings.Join(strings.Fields(status.Body), " "); {
		case netfault.IsPage(status):
			return "it answers, but is not an MCP server: a web page (" + said + ")"
		case body != "":
			said += ": " + text.Clip(body, 2000)
		}
		return said
	}
	if inner := errors.Unwrap(e.Err); inner != nil {
		return inner.Error()
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
