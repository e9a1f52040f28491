package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Errors of libraries in words for people. The error itself stays as it is, for errors.Is.

// plainNetwork words an error of the network without its operations: "127.0.0.1:80 refuses
// connections" for "dial tcp 127.0.0.1:80: connect: connection refused".
func plainNetwork(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var in *url.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no host " + dns.Name + " is known"
	case errors.As(err, &dns):
		return "the name " + dns.Name + " cannot be looked up: " + dns.Err
	case errors.As(err, &op):
		at := "the other side"
		if op.Addr != nil {
			at = op.Addr.String()
		}
		var sys *os.SyscallError
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return at + ": connection refused"
		case op.Timeout():
			return at + ": no answer in time"
		case errors.Is(err, syscall.ENOENT):
			return at + " is not there"
		case errors.As(err, &sys):
			return at + ": " + sys.Err.Error()
		}
		return at + ": " + op.Err.Error()
	case errors.As(err, &in): // Get "http://localhost/readyz": ...
		return plainNetwork(in.Err)
	case errors.Is(err, context.DeadlineExceeded) && err.Error() == context.DeadlineExceeded.Error():
		return "no answer in time"
	}
	return err.Error()
}

// plainListen words the error of a listener.
func plainListen(address string, err error) error {
	var dns *net.DNSError
	switch {
	case addressInUse(err):
		return fmt.Errorf("cannot listen on %s: another program listens there%w", address, quietly{err})
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("cannot listen on %s: not allowed; ports below 1024 need special rights%w", address, quietly{err})
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("cannot listen on %s: this machine does not have that address%w", address, quietly{err})
	case errors.As(err, &dns):
		return fmt.Errorf("cannot listen on %s: %s%w", address, plainNetwork(err), quietly{err})
	}
	return fmt.Errorf("cannot listen on %s: %s%w", address, plainNetwork(err), quietly{err})
}

// addressInUse tells whether another listener has the address, on Windows too.
func addressInUse(err error) bool {
	const windowsInUse = syscall.Errno(10048) // WSAEADDRINUSE
	var no syscall.Errno
	return errors.Is(err, syscall.EADDRINUSE) || errors.As(err, &no) && no == windowsInUse
}

// quietly is a cause that adds nothing to the text.
type quietly struct{ error }

func (quietly) Error() string { return "" }

func (q quietly) Unwrap() error { return q.error }

// endings are exit codes with a meaning on every system with signals. The guard of a command
// passes a signal on as 128 and its number, as shells do.
var endings = map[int]string{
	126: "it cannot be run", 127: "the command was not found", 129: "its terminal was closed, SIGHUP", 130: "interrupted, SIGINT",
	132: "it crashed, SIGILL", 134: "it crashed, SIGABRT", 135: "it crashed, SIGBUS", 136: "it crashed, SIGFPE",
	137: "killed, SIGKILL: often by the system for lack of memory", 139: "it crashed, SIGSEGV", 143: "told to end, SIGTERM",
}

// plainEnding words how a process ended: "exit status 137" is not widely known to be a signal.
func plainEnding(state string) string {
	if code, ok := exitCode(state); ok && endings[code] != "" {
		return endings[code] + ", " + state
	}
	return state
}

// isPage tells a web page from an error of a server: it is HTML.
func isPage(status *mcp.HTTPError) bool {
	if strings.Contains(status.Header.Get("Content-Type"), "html") {
		return true
	}
	body := strings.ToLower(strings.TrimSpace(status.Body))
	return strings.HasPrefix(body, "<!doctype html") || strings.HasPrefix(body, "<html")
}

// speaksPlain tells whether a server that was to speak TLS answered without it.
func speaksPlain(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)
}

// otherScheme is the URL with http in place of https, or the reverse, if the error says that the
// server speaks that; else empty.
func otherScheme(address string, err error) string {
	var status *mcp.HTTPError
	scheme, rest, _ := strings.Cut(address, "://")
	switch {
	case speaksPlain(err):
		return map[string]string{"https": "http://", "wss": "ws://"}[scheme] + rest
	case errors.As(err, &status) && status.Status == http.StatusBadRequest && (strings.Contains(status.Body, "HTTP request to an HTTPS server") || strings.Contains(status.Body, "HTTP request was sent to HTTPS port")):
		return map[string]string{"http": "https://", "ws": "wss://"}[scheme] + rest
	}
	return ""
}
