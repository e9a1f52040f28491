// Package doctor finds out why a server or a language model does not work. It takes the steps of a
// session one by one, stops at the first that fails, and says how to fix it.
//
// The steps of a command are config, command, start, stdout, handshake, era and tools. For a URL,
// proxy, dns, tcp, tls and auth or http take the place of those before handshake; for a model, key,
// network and the list of models.
//
// # Guarantees
//
//   - [Exam.Run] closes its session and ends its processes.
//   - No tool is called, and elicitation requests are declined.
//   - Reports hold no secret that [launch.Env.Redact] knows.
package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/process"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Exam examines one server or model. Its exported fields are read when work starts. OK, Warn and
// Fail may be called before Run; no method may be called while it runs.
type Exam struct {
	Env    *launch.Env   // required
	Server config.Server // resolved
	Model  *config.Model // resolved; nil: a server is examined; else Server is the address of the model

	// Client returns the client of the session. Required for a server.
	Client func(s config.Server) (*mcp.Client, error)

	// Bound returns the context that bounds the whole exam. Nil: the context of Run.
	Bound func(ctx context.Context, s config.Server) (context.Context, context.CancelFunc)

	// TLS returns the TLS configuration for connections to a model; nil: the default.
	TLS func() (*tls.Config, error)

	// List asks the server of the model for the names of its models. Required for a model.
	List func(context.Context) ([]string, error)

	Config string // the examined file, for hints if there is more than one; empty: none

	idle   bool // Run does nothing
	steps  []Step
	next   string   // how to fix the step that failed
	code   *int     // the exit code of the command, if it ended
	stderr []string // the last lines of its standard error
	lacks  []string // variables that it may need

	mu    sync.Mutex
	noise []string // lines of its standard output that are not messages; guarded by mu
}

// Step is one step of an examination.
type Step struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "warning" or "failed"
	Detail string `json:"detail,omitempty"`
}

// Report is the result of an examination.
type Report struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Model    string   `json:"model,omitempty"` // PROVIDER/NAME; empty: a server
	Where    string   `json:"where,omitempty"`
	Steps    []Step   `json:"steps"`
	Failed   string   `json:"failed,omitempty"`
	ExitCode *int     `json:"exitCode,omitempty"`
	Stderr   []string `json:"stderr,omitempty"`
	Next     string   `json:"next,omitempty"`
	Wanted   []string `json:"wanted,omitempty"` // variables that are set here and not passed on
	Source   string   `json:"-"`                // "path:line" of its entry
}

func (e *Exam) step(name, state, detail string) {
	e.steps = append(e.steps, Step{name, state, e.clean(detail)})
}

// OK adds a step that succeeded.
func (e *Exam) OK(name, detail string) { e.step(name, "ok", detail) }

// Warn adds a step that succeeded with a doubt.
func (e *Exam) Warn(name, detail string) { e.step(name, "warning", detail) }

// Fail adds a step that failed; next says how to fix it.
func (e *Exam) Fail(name, detail, next string) {
	e.step(name, "failed", detail)
	e.next = e.clean(next)
}

// clean removes the server's secrets from a text.
func (e *Exam) clean(text string) string {
	if e.Env != nil && e.Env.Redact != nil {
		text = e.Env.Redact.Text(text)
	}
	return screen.Clip(text)
}

// Failed returns the step that failed, or nil if none did.
func (e *Exam) Failed() *Step {
	if n := len(e.steps); n > 0 && e.steps[n-1].State == "failed" {
		return &e.steps[n-1]
	}
	return nil
}

// Report returns the results so far.
func (e *Exam) Report() Report {
	r := Report{Name: e.Server.Name, OK: e.Failed() == nil, Where: e.where(), Steps: e.steps, ExitCode: e.code, Stderr: e.stderr, Next: e.next, Wanted: e.lacks, Source: e.Server.Source}
	if f := e.Failed(); f != nil {
		r.Failed = f.Name
	}
	if e.Model != nil {
		r.Model = e.Model.Provider + "/" + e.Model.Model
	}
	return r
}

// where returns the command or URL of the server, or "" if its entry is faulty.
func (e *Exam) where() string {
	if e.Server.Command == "" && e.Server.URL == "" && e.Server.Builtin == "" {
		return ""
	}
	return entry.Where(&e.Server)
}

// Run takes all steps, up to the first that fails. It takes no longer than Bound or ctx allows, and
// a few seconds to close the session.
func (e *Exam) Run(ctx context.Context) {
	if e.idle {
		return
	}
	if e.Bound != nil {
		var cancel context.CancelFunc
		ctx, cancel = e.Bound(ctx, e.Server)
		defer cancel()
	}
	switch {
	case e.Model != nil:
		e.runModel(ctx)
		return
	case e.Server.Builtin != "":
	case e.Server.URL != "":
		if !e.network(ctx) {
			return
		}
	default:
		if !e.command() {
			return
		}
	}
	e.session(ctx)
}

// command looks for the program.
func (e *Exam) command() bool {
	s := e.Server
	if err := process.CheckSelf(s.CommandLine()); err != nil {
		e.Fail("command", err.Error(), "change the entry in "+e.Server.Source)
		return false
	}
	if err := process.Check(s); err != nil {
		next := "install it, or set \"command\" to its full path"
		if s.Dir != "" && !strings.Contains(err.Error(), "command") {
			next = `create it, or correct "cwd"`
		}
		detail := err.Error()
		if !strings.ContainsRune(s.Command, filepath.Separator) && s.Dir == "" {
			detail += "; PATH is " + os.Getenv("PATH")
		}
		e.Fail("command", detail, next)
		return false
	}
	found := s.Command
	if path, err := exec.LookPath(s.Command); err == nil {
		found = path
	}
	e.OK("command", found)
	return true
}

// session opens a session, lists the tools, and closes the session.
func (e *Exam) session(ctx context.Context) {
	client, err := e.Client(e.Server)
	if err != nil {
		e.Fail("handshake", err.Error(), "")
		return
	}
	client.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	var said tailOf
	start := time.Now()
	p, err := e.Env.Open(stray.With(ctx, e.stray), e.Server, client, &said)
	took := time.Since(start).Round(time.Millisecond)
	if err != nil {
		e.noSession(err, &said, took)
		e.lacks = e.wanted()
		return
	}
	defer p.Close()
	if e.Server.Command != "" {
		before := len(e.steps)
		e.OK("start", "")
		defer func() { e.heard(before + 1) }() // the lines until the end of the session
	}
	info := p.Server()
	e.OK("handshake", screen.OneLine(strings.TrimSpace(info.Name+" "+info.Version))+", in "+screen.ShortTime(took))
	e.OK("protocol", string(p.Revision()))
	if !info.Capabilities.Has("tools") {
		e.OK("tools", "none")
		return
	}
	n := 0
	for _, err := range p.Tools(ctx) {
		if err != nil {
			e.stderr = said.lines(e)
			e.Fail("tools", "tools/list: "+screen.OneLine(err.Error()), e.byHand())
			e.lacks = e.wanted()
			return
		}
		n++
	}
	e.OK("tools", screen.Quantity(n, "tool"))
}

// stray takes a line of standard output that is not a message. The exam has a step about it, so the log needs no warning.
func (e *Exam) stray(line []byte) (shown string, known bool) {
	shown = e.clean(screen.Cut(screen.OneLine(string(line)), 200))
	e.mu.Lock()
	defer e.mu.Unlock()
	const most = 3
	if text := strconv.Quote(shown); len(e.noise) < most && !slices.Contains(e.noise, text) {
		e.noise = append(e.noise, text)
	}
	return shown, true
}

// heard inserts a step about lines on standard output that are not messages.
func (e *Exam) heard(at int) {
	e.mu.Lock()
	noise := strings.Join(e.noise, ", ")
	e.mu.Unlock()
	step := Step{"stdout", "ok", "only messages"}
	if noise != "" {
		step = Step{"stdout", "warning", e.clean("lines that are not messages: " + noise + "; they belong on standard error")}
	}
	e.steps = slices.Insert(e.steps, at, step)
}

// noSession adds the step that failed when the session could not be opened.
func (e *Exam) noSession(err error, said *tailOf, took time.Duration) {
	var exit *mcp.ExitError
	var status *mcp.HTTPError
	var rpc *mcp.Error
	late := errors.Is(err, context.DeadlineExceeded)
	e.mu.Lock()
	noise := strings.Join(e.noise, ", ")
	e.mu.Unlock()
	e.stderr = said.lines(e)
	switch {
	case errors.As(err, &status):
		e.status(status)
	case errors.As(err, &exit):
		if last := strings.TrimSpace(screen.Visible(exit.Stderr)); last != "" { // of the last of several attempts
			e.stderr = strings.Split(e.clean(screen.LastLines(last, 8)), "\n")
		}
		code, known := process.ExitCode(exit.State)
		if known {
			e.code = &code
		}
		if known && code == 127 {
			e.Fail("start", "cannot start", e.byHand())
			return
		}
		e.OK("start", "")
		if noise != "" {
			e.Warn("stdout", "lines that are not messages: "+noise)
		}
		next := e.byHand()
		if known && code == 0 {
			next = "it ended normally: check that it is a stdio server; " + next
		}
		e.Fail("handshake", fmt.Sprintf("it ended (%s) before it answered, after %s", process.Ending(exit.State), screen.ShortTime(took)), next)
	case e.Server.Command != "" && noise != "":
		e.OK("start", "")
		e.Fail("stdout", "lines that are not messages, and no answer: "+noise, stray.Advice+", or use \"url\" if it prints one")
	case e.Server.Command != "" && late:
		e.OK("start", "")
		e.OK("stdout", "nothing")
		e.Fail("handshake", "no answer in "+screen.ShortTime(took), "check that it is a stdio server; --timeout 3m waits longer; "+e.byHand())
	case errors.As(err, &rpc):
		e.Fail("handshake", fmt.Sprintf("it answered with an error: %s (code %d)", screen.OneLine(rpc.Message), rpc.Code), "patchbay discover -s "+screen.Shell([]string{e.Server.Name})+" -v shows the messages")
	case late:
		e.Fail("handshake", "no answer in "+screen.ShortTime(took), "try again; --timeout 3m waits longer")
	default:
		e.Fail("handshake", screen.OneLine(err.Error()), "patchbay discover -s "+screen.Shell([]string{e.Server.Name})+" -v shows the messages")
	}
}

// byHand returns advice to run the command by hand.
func (e *Exam) byHand() string {
	if e.Server.Command == "" {
		return ""
	}
	return "run it by hand to see its output: " + screen.Shell(secrets.ShownArgs(e.Server.CommandLine()))
}

// tailOf keeps the last bytes of a command's standard error.
type tailOf struct {
	mu  sync.Mutex
	buf []byte // guarded by mu
}

const maxTailOf = 8 << 10

func (t *tailOf) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTailOf; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// lines returns the last lines, without secrets.
func (t *tailOf) lines(e *Exam) []string {
	t.mu.Lock()
	text := strings.ToValidUTF8(string(t.buf), "�")
	t.mu.Unlock()
	if text = strings.TrimSpace(screen.Visible(text)); text == "" {
		return nil
	}
	return strings.Split(e.clean(screen.LastLines(text, 8)), "\n")
}
