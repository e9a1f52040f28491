package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The exit codes of the program. They are documented in "patchbay help exits" and
// do not change.
const (
	exitOK           = 0
	exitLocal        = 1
	exitUsage        = 2
	exitUnauthorized = 3
	exitUnreachable  = 4
	exitAnswer       = 5                // the tool or the server answered with an error
	exitRefused      = 6                // policy check: the policy refuses; audit verify: the log was changed
	exitModel        = 7                // the language model or its provider gave no answer
	exitBound        = 8                // the task was not done within its steps or time
	exitDenied       = 9                // a call was not allowed, and nobody could be asked
	exitFormat       = 10               // the answer does not fit --output-schema
	exitLoop         = process.ExitLoop // the program would serve or start itself
)

// fault is an error with advice for a person.
type fault struct {
	code   int
	err    error
	detail string // lines to show below, for instance the last output of a server
	next   string // a command to paste
}

func (f *fault) Error() string { return f.err.Error() }

func (f *fault) Unwrap() error { return f.err }

func (f *fault) hint(command string) *fault {
	f.next = command
	return f
}

func usagef(format string, args ...any) *fault {
	return &fault{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// errTool reports that the result of the tool is an error. The result has been printed.
var errTool = errors.New("the tool reported an error")

// errFailed reports that runs of an evaluation failed. The report has been printed.
var errFailed = errors.New("some runs failed")

// report prints an error with its advice and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errTool) {
		a.talk.Always("patchbay: " + errTool.Error())
		return exitAnswer
	}
	if errors.Is(err, errRefused) {
		a.talk.Always("patchbay: " + errRefused.Error())
		return exitRefused
	}
	if errors.Is(err, errFailed) {
		a.talk.Always("patchbay: " + errFailed.Error())
		return exitLocal
	}
	if a.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(a.ctx))) {
		a.talk.Always("patchbay: interrupted")
		return exitLocal
	}
	f := a.explain(err)
	label := a.talk.Paint("error:", "31")
	for i, text := range strings.Split(visible(f.err.Error()), "\n") {
		if i == 0 {
			text = "patchbay: " + label + " " + text
		}
		a.talk.Always(text)
	}
	if f.detail != "" {
		for _, text := range strings.Split(visible(f.detail), "\n") {
			a.talk.Always("  | " + text)
		}
	}
	if words, ok := complete.Split(f.next); ok && len(words) == 2 && strings.HasPrefix(f.next, "--") {
		f.next = a.again(words...) // flags alone cannot be pasted
	}
	if f.next != "" {
		a.talk.Always("patchbay: " + a.talk.Paint("hint:", "36") + " " + f.next)
	}
	return f.code
}

// explain finds the exit code, and explains the error to a person.
func (a *app) explain(err error) *fault {
	var f *fault
	if errors.As(err, &f) && f.code != 0 {
		return f
	}
	var words *arguments.Error
	if errors.As(err, &words) {
		return &fault{code: exitUsage, err: words.Err, detail: words.Detail, next: words.Next}
	}
	out := &fault{code: exitLocal, err: err}
	if f != nil {
		out.next = f.next
	}
	var (
		status *mcp.HTTPError
		exit   *mcp.ExitError
		rpc    *mcp.Error
		open   *launch.Error
		bad    config.Problems
	)
	switch {
	case errors.As(err, &bad):
		out.err = bad
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		out.code = exitUnauthorized
		out.err = fmt.Errorf("%s requires authorization: HTTP %d %s", a.serverName(), status.Status, http.StatusText(status.Status))
		out.next = a.again("--header", "Authorization: Bearer $TOKEN")
		if given := a.answers.Refusable(a.written); len(given) > 0 {
			out.next = forgetting(given)
		} else if a.wantsLogin(err, a.server) {
			out.next = a.beside("login", a.server.Name)
			if a.loggedIn(*a.server) {
				out.err = fmt.Errorf("%s no longer accepts the login: HTTP %d %s", a.serverName(), status.Status, http.StatusText(status.Status))
			}
		}
	case launch.IsLoop(err):
		out.code = exitLoop
	case errors.As(err, &exit):
		out.code = exitUnreachable
		out.err = fmt.Errorf("%s ended (%s) before it answered", a.serverName(), process.Ending(exit.State))
		out.detail = lastLines(exit.Stderr, 8)
	case errors.As(err, &open):
		out.code = exitUnreachable
	case errors.As(err, &rpc):
		out.code = exitAnswer
		out.err = fmt.Errorf("%s answered with an error: %s (code %d)", a.serverName(), clip(rpc.Message), rpc.Code)
		if rpc.Code == mcp.CodeMissingCapability {
			out.next = a.missingHint(rpc)
		}
	case errors.As(err, &status), errors.Is(err, context.DeadlineExceeded):
		out.code = exitUnreachable
	case errors.Is(err, fs.ErrNotExist):
		if a.names(err) {
			out.code = exitUsage
		}
	case netfault.Is(err):
		out.code = exitUnreachable
	}
	if out.code == exitUnreachable && out.next == "" {
		out.next = a.reachHint(err)
	}
	return out
}

// names reports whether the command line names the file that an error is about.
func (a *app) names(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && slices.ContainsFunc(slices.Concat(a.words, a.flags), func(word string) bool { return strings.HasSuffix(filepath.ToSlash(word), filepath.ToSlash(file.Path)) })
}

// missingHint names the flag that provides a capability that the server requires.
func (a *app) missingHint(rpc *mcp.Error) string {
	required, _ := jsonx.Lookup(rpc.Data, "requiredCapabilities")
	if _, ok := jsonx.Lookup(required, "roots"); ok {
		return a.again("--root", "DIR")
	}
	if _, ok := jsonx.Lookup(required, "sampling"); ok {
		return a.again("--on-sample", "@FILE")
	}
	return ""
}
