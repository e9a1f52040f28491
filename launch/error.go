package launch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Error says that a session with a server could not be opened, or has failed.
type Error struct {
	Server string // its name
	Err    error  // why
}

func (e *Error) Error() string { return "cannot reach " + e.Server + ": " + e.Reason() }

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

// endings are the exit codes of signals on every system that has them. The guard of a command
// reports a signal as 128 plus its number, as shells do.
var endings = map[int]string{
	126: "it cannot be run", 127: "the command was not found", 129: "its terminal was closed, SIGHUP", 130: "interrupted, SIGINT",
	132: "it crashed, SIGILL", 134: "it crashed, SIGABRT", 135: "it crashed, SIGBUS", 136: "it crashed, SIGFPE",
	137: "killed, SIGKILL: often by the system for lack of memory", 139: "it crashed, SIGSEGV", 143: "told to end, SIGTERM",
}

// Ending describes how a process ended, from the state of an [mcp.ExitError]: few readers recognize
// "exit status 137" as a signal.
func Ending(state string) string {
	if code, ok := ExitCode(state); ok && endings[code] != "" {
		return endings[code] + ", " + state
	}
	return state
}

// ExitCode parses the number in the state of a process, in the form of an [mcp.ExitError].
func ExitCode(state string) (code int, ok bool) {
	text, ok := strings.CutPrefix(state, "exit status ")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}
