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

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	exitOK           = advice.ExitOK
	exitLocal        = advice.ExitLocal
	exitUsage        = advice.ExitUsage
	exitUnauthorized = advice.ExitUnauthorized
	exitUnreachable  = advice.ExitUnreachable
	exitAnswer       = advice.ExitAnswer
	exitRefused      = advice.ExitRefused
	exitModel        = advice.ExitModel
	exitBound        = advice.ExitBound
	exitDenied       = advice.ExitDenied
	exitFormat       = advice.ExitFormat
	exitLoop         = advice.ExitLoop
	exitInterrupted  = advice.ExitInterrupted
)

// fault is an error with advice for a person.
type fault = advice.Error

func usagef(format string, args ...any) *fault { return advice.Usagef(format, args...) }

// errTool reports that the result of the tool is an error. The result has been printed.
var errTool = errors.New("the tool reported an error")

// errFailed reports that runs of an evaluation failed. The report has been printed.
var errFailed = errors.New("some runs failed")

// errWorse does so for tasks that are worse than their baseline.
var errWorse = fmt.Errorf("%w: more than in the baseline", errFailed)

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
		a.talk.Always("patchbay: " + err.Error())
		return exitLocal
	}
	if a.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(a.ctx))) {
		a.talk.Always("patchbay: interrupted")
		return exitInterrupted
	}
	f := a.explain(err)
	label := a.talk.Paint("error:", "31")
	for i, text := range strings.Split(visible(advice.Words(f.Err)), "\n") {
		if i == 0 {
			text = "patchbay: " + label + " " + text
		}
		a.talk.Always(text)
	}
	if f.Detail != "" {
		for _, text := range strings.Split(visible(f.Detail), "\n") {
			a.talk.Always("  | " + text)
		}
	}
	if words, ok := complete.Split(f.Next); ok && len(words) == 2 && strings.HasPrefix(f.Next, "--") {
		f.Next = a.again(words...) // flags alone cannot be pasted
	}
	if f.Next != "" {
		a.talk.Always("patchbay: " + a.talk.Paint("hint:", "36") + " " + f.Next)
	}
	return f.Code
}

// explain finds the exit code, and explains the error to a person.
func (a *app) explain(err error) *fault {
	var f *fault
	if errors.As(err, &f) && f.Code != 0 {
		return f
	}
	var words *arguments.Error
	if errors.As(err, &words) {
		return &fault{Code: exitUsage, Err: words.Err, Detail: words.Detail, Next: words.Next}
	}
	out := &fault{Code: exitLocal, Err: err}
	if f != nil {
		out.Next = f.Next
	}
	var (
		status *mcp.HTTPError
		exit   *mcp.ExitError
		rpc    *mcp.Error
		open   *launch.Error
		bad    config.Problems
		of     *model.Error
	)
	switch {
	case errors.As(err, &of):
		return a.modelFault(of)
	case errors.As(err, &bad):
		out.Err = bad
	case errors.As(err, &status) && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		out.Code = exitUnauthorized
		out.Err = fmt.Errorf("%s requires authorization: HTTP %d %s", a.serverName(), status.Status, http.StatusText(status.Status))
		out.Next = a.again("--header", "Authorization: Bearer $TOKEN")
		if a.server != nil && a.server.Name == steer.Up && a.server.Source == "" {
			out.Detail = "the auth of that gateway says which login, key or token a caller needs (patchbay help auth)"
		}
		if given := a.answers.Refusable(a.written); len(given) > 0 {
			out.Next = forgetting(given)
		} else if a.wantsLogin(err, a.server) {
			out.Detail = strings.TrimPrefix(out.Detail+"\nfor a key or token: "+out.Next, "\n")
			out.Next = a.beside("login", a.server.Name)
			if a.loggedIn(*a.server) {
				out.Err = fmt.Errorf("%s no longer accepts the login: HTTP %d %s", a.serverName(), status.Status, http.StatusText(status.Status))
			}
		}
	case launch.IsLoop(err):
		out.Code = exitLoop
	case errors.As(err, &exit):
		out.Code = exitUnreachable
		out.Err = fmt.Errorf("%s ended (%s) before it answered", a.serverName(), process.Ending(exit.State))
		out.Detail = lastLines(exit.Stderr, 8)
	case errors.As(err, &open):
		out.Code = exitUnreachable
	case errors.As(err, &rpc):
		out.Code = exitAnswer
		out.Err = fmt.Errorf("%s answered with an error: %s (code %d)", a.serverName(), clip(rpc.Message), rpc.Code)
		if rpc.Code == mcp.CodeMissingCapability {
			out.Next = a.missingHint(rpc)
		}
	case errors.As(err, &status), errors.Is(err, context.DeadlineExceeded):
		out.Code = exitUnreachable
	case errors.Is(err, fs.ErrNotExist):
		if a.names(err) {
			out.Code = exitUsage
		}
	case netfault.Is(err):
		out.Code = exitUnreachable
	}
	if out.Code == exitUnreachable && out.Next == "" {
		out.Next = a.reachHint(err)
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
