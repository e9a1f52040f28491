// Package netfault words errors of the network for people, and tells some of them apart. The error itself
// stays as it is, for errors.Is.
package netfault

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

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Words words an error of the network without its operations: "127.0.0.1:80 refuses
// connections" for "dial tcp 127.0.0.1:80: connect: connection refused".
func Words(err error) string {
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
		case is(err, syscall.ECONNREFUSED, 10061):
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
		return Words(in.Err)
	case errors.Is(err, context.DeadlineExceeded) && err.Error() == context.DeadlineExceeded.Error():
		return "no answer in time"
	}
	return err.Error()
}

// Listen words the error of a listener at an address.
func Listen(address string, err error) error {
	var dns *net.DNSError
	switch {
	case is(err, syscall.EADDRINUSE, 10048):
		return fmt.Errorf("cannot listen on %s: another program listens there%w", address, Quiet(err))
	case errors.Is(err, syscall.Errno(10013)): // WSAEACCES, which is not os.ErrPermission
		return fmt.Errorf("cannot listen on %s: Windows has reserved the port, or another program uses it alone; use another port%w", address, Quiet(err))
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("cannot listen on %s: not allowed; ports below 1024 need special privileges%w", address, Quiet(err))
	case is(err, syscall.EADDRNOTAVAIL, 10049):
		return fmt.Errorf("cannot listen on %s: this machine does not have that address%w", address, Quiet(err))
	case errors.As(err, &dns):
		return fmt.Errorf("cannot listen on %s: %s%w", address, Words(err), Quiet(err))
	}
	return fmt.Errorf("cannot listen on %s: %s%w", address, Words(err), Quiet(err))
}

// is reports whether an error has a number of Unix, or the one that sockets of Windows have for it
// and that package syscall does not take for the same.
func is(err error, unix, windows syscall.Errno) bool {
	var no syscall.Errno
	return errors.Is(err, unix) || errors.As(err, &no) && no == windows
}

// Quiet is a cause that adds nothing to the text of an error.
func Quiet(err error) error { return quietly{err} }

type quietly struct{ error }

func (quietly) Error() string { return "" }

func (q quietly) Unwrap() error { return q.error }

// IsPage reports whether the body of an HTTP error is a web page.
func IsPage(status *mcp.HTTPError) bool { return engine.IsPage(status.Header, status.Body) }

// SpeaksPlain reports whether a server that was to speak TLS answered without it.
func SpeaksPlain(err error) bool {
	var record tls.RecordHeaderError
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)
}

// OtherScheme returns the URL with http in place of https, or the reverse, or "" if the error does
// not say that the server speaks that.
func OtherScheme(address string, err error) string {
	var status *mcp.HTTPError
	scheme, rest, _ := strings.Cut(address, "://")
	switch {
	case SpeaksPlain(err):
		return map[string]string{"https": "http://", "wss": "ws://"}[scheme] + rest
	case errors.As(err, &status) && status.Status == http.StatusBadRequest && (strings.Contains(status.Body, "HTTP request to an HTTPS server") || strings.Contains(status.Body, "HTTP request was sent to HTTPS port")):
		return map[string]string{"http": "https://", "ws": "wss://"}[scheme] + rest
	}
	return ""
}

// Is tells an address that does not answer, or is not known, from other faults.
func Is(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}
