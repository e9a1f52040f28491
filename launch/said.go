package launch

import (
	"errors"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A server's standard error goes to callers, logs, the status and journals. This file removes the secrets
// from it, with the rules of recordings.

// said removes from the standard error of a server the known secrets, and all that looks like one.
func (e *Env) said(text string) string { return secrets.Lookalikes(e.clean(text)) }

// clean removes the known secrets from a text.
func (e *Env) clean(text string) string {
	if e.Redact == nil {
		return text
	}
	return e.Redact.Text(text)
}

// public returns an error for others. It contains no known secret and, if a process has ended, no secret of
// its standard error: neither in the text nor in the [mcp.ExitError] that errors.As finds.
func (e *Env) public(err error) error {
	var exit *mcp.ExitError
	if !errors.As(err, &exit) {
		return secrets.Cleaned(err, e.clean)
	}
	shown := *exit
	shown.Stderr = e.said(exit.Stderr)
	text := strings.ReplaceAll(err.Error(), strconv.Quote(exit.Stderr), strconv.Quote(shown.Stderr))
	return endedError{e.clean(text), err, &shown}
}

// endedError is the error of a process that has ended, without secrets.
type endedError struct {
	text string
	err  error
	exit *mcp.ExitError
}

func (e endedError) Error() string { return e.text }

func (e endedError) Unwrap() error { return e.err }

// As finds the error of the process without its secrets.
func (e endedError) As(target any) bool {
	to, ok := target.(**mcp.ExitError)
	if ok {
		*to = e.exit
	}
	return ok
}
