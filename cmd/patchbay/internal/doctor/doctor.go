// Package doctor finds out why a server or a language model does not work. It goes the way that every
// session goes, step by step, up to the first that fails, and says what to do about that.
//
// The steps of a command are config, command, start, stdout, handshake, era and tools; those of a URL
// have proxy, dns, tcp, tls and auth or http in place of the first ones; those of a model key, network and
// the list of models.
//
// # Guarantees
//
//   - An [Exam] leaves nothing behind: sessions are closed, processes ended.
//   - No tool is called, and questions of a server are declined.
//   - What is found holds no secret that [launch.Env.Redact] knows.
package doctor

import (
	"bytes"
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
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

// Exam is the examination of one server or model. Its exported fields are read when work starts. Ok and Fail
// may be called before Run, and nothing while it runs.
type Exam struct {
	Env    *launch.Env   // required
	Server config.Server // resolved
	Model  *config.Model // resolved; nil: it is of a server, else Server is its address

	// Client makes the client of the session. Required for a server.
	Client func(s config.Server) (*mcp.Client, error)

	// Bound bounds the whole. Nil: the context of Run does.
	Bound func(ctx context.Context, s config.Server) (context.Context, context.CancelFunc)

	// TLS is how connections to a model are secured; nil: as usual.
	TLS func() (*tls.Config, error)

	Config string // the file that is examined, if another one may be named too; empty: there is none

	steps  []Step
	next   string   // what to do about the step that failed
	code   *int     // the exit code of the command
	stderr []string // its last lines
	lacks  []string // variables that it may need

	mu    sync.Mutex
	noise []string // lines of its standard output that are no messages; guarded by mu
	exits []string // how its processes ended; guarded by mu
}

// Step is a step of an examination.
type Step struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "warning" or "failed"
	Detail string `json:"detail,omitempty"`
}

// Report is the outcome of an examination.
type Report struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Model    string   `json:"model,omitempty"` // PROVIDER/NAME; empty: it is a server
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
func (e *Exam) OK(name, detail string)   { e.step(name, "ok", detail) }
func (e *Exam) warn(name, detail string) { e.step(name, "warning", detail) }

// Fail adds a step that failed, and what to do about it.
func (e *Exam) Fail(name, detail, next string) {
	e.step(name, "failed", detail)
	e.next = e.clean(next)
}

// clean takes the secrets that the server was given out of a text.
func (e *Exam) clean(text string) string {
	if e.Env != nil && e.Env.Redact != nil {
		text = e.Env.Redact.Text(text)
	}
	return screen.Clip(text)
}

// Failed returns the step that failed, nil if none did.
func (e *Exam) Failed() *Step {
	if n := len(e.steps); n > 0 && e.steps[n-1].State == "failed" {
		return &e.steps[n-1]
	}
	return nil
}

// Report returns what was found so far.
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

// where shows what is started or reached, "" if the file does not say it rightly.
func (e *Exam) where() string {
	if e.Server.Command == "" && e.Server.URL == "" && e.Server.Builtin == "" {
		return ""
	}
	return entry.Where(&e.Server)
}

// Run goes the whole way, up to the first step that fails. It leaves nothing behind and takes no longer
// than the opening of a session may take, twice, and a few seconds.
func (e *Exam) Run(ctx context.Context) {
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

// command finds the program.
func (e *Exam) command() bool {
	s := e.Server
	if err := launch.CheckSelf(s.CommandLine()); err != nil {
		e.Fail("command", err.Error(), "change the entry in "+e.Server.Source)
		return false
	}
	if err := launch.CheckCommand(s); err != nil {
		next := "install it, or write its whole path as \"command\""
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

// session opens a session, asks for the tools, and ends it.
func (e *Exam) session(ctx context.Context) {
	client, err := e.Client(e.Server)
	if err != nil {
		e.Fail("handshake", err.Error(), "")
		return
	}
	also := client.OnFrame
	client.OnFrame = func(f trace.Frame) {
		e.frame(f)
		if also != nil {
			also(f)
		}
	}
	client.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	var said tailOf
	start := time.Now()
	p, err := e.Env.Open(ctx, e.Server, client, &said)
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
		defer func() { e.heard(before + 1) }() // what it said until then
	}
	info := p.Server()
	era := "modern"
	if p.Revision().Sessions() {
		era = "legacy"
	}
	e.OK("handshake", screen.OneLine(strings.TrimSpace(info.Name+" "+info.Version))+", in "+screen.ShortTime(took))
	e.OK("era", fmt.Sprintf("%s: revision %s, found by %s", era, p.Revision(), screen.OneLine(p.How())))
	if !info.Capabilities.Has("tools") {
		e.OK("tools", "it offers none")
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

// frame listens for what a server should not write, and how its process ends.
func (e *Exam) frame(f trace.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case f.Kind == trace.KindExit:
		e.exits = append(e.exits, f.Note)
	case f.Kind == trace.KindMessage && f.Dir == trace.In && f.HTTP == nil:
		line := bytes.TrimSpace(append(bytes.Clone(f.Msg), f.Raw...))
		if kind := jsonx.KindOf(line); kind == '{' || kind == '[' {
			if jsonx.Valid(line, 0) == nil {
				return
			}
		}
		const most = 3
		if text := strconv.Quote(screen.Cut(screen.OneLine(string(line)), 200)); len(line) > 0 && len(e.noise) < most && !slices.Contains(e.noise, text) {
			e.noise = append(e.noise, text)
		}
	}
}

// heard tells at a place among the steps of lines on standard output that are no
// messages.
func (e *Exam) heard(at int) {
	e.mu.Lock()
	noise := strings.Join(e.noise, ", ")
	e.mu.Unlock()
	step := Step{"stdout", "ok", "messages alone"}
	if noise != "" {
		step = Step{"stdout", "warning", e.clean("lines that are not messages: " + noise + "; they belong on standard error")}
	}
	e.steps = slices.Insert(e.steps, at, step)
}

// noSession finds the step that failed when no session was opened.
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
		if last := strings.TrimSpace(screen.Visible(exit.Stderr)); last != "" { // of the last of several tries
			e.stderr = strings.Split(e.clean(screen.LastLines(last, 8)), "\n")
		}
		code, known := launch.ExitCode(exit.State)
		if known {
			e.code = &code
		}
		if known && code == 127 {
			e.Fail("start", "it cannot be started", e.byHand())
			return
		}
		e.OK("start", "")
		if noise != "" {
			e.warn("stdout", "lines that are not messages: "+noise)
		}
		next := e.byHand()
		if known && code == 0 {
			next = "it ended as if it was done: is it a server over stdio? " + next
		}
		e.Fail("handshake", fmt.Sprintf("it ended (%s) before it answered, after %s", launch.Ending(exit.State), screen.ShortTime(took)), next)
	case e.Server.Command != "" && noise != "":
		e.OK("start", "")
		e.Fail("stdout", "lines that are not messages, and no answer: "+noise, "standard output is for messages alone: have it log to standard error, or reach it by its \"url\" if it says one")
	case e.Server.Command != "" && late:
		e.OK("start", "")
		e.OK("stdout", "nothing")
		e.Fail("handshake", "no answer in "+screen.ShortTime(took), "is it a server over stdio? if it only needs longer, --timeout 3m; "+e.byHand())
	case errors.As(err, &rpc):
		e.Fail("handshake", fmt.Sprintf("it answered with an error: %s (code %d)", screen.OneLine(rpc.Message), rpc.Code), "patchbay discover -s "+screen.Shell([]string{e.Server.Name})+" -v shows what was said")
	case late:
		e.Fail("handshake", "no answer in "+screen.ShortTime(took), "try again; --timeout 3m waits longer")
	default:
		e.Fail("handshake", screen.OneLine(err.Error()), "patchbay discover -s "+screen.Shell([]string{e.Server.Name})+" -v shows what was said")
	}
}

// byHand words the command to run by hand.
func (e *Exam) byHand() string {
	if e.Server.Command == "" {
		return ""
	}
	return "run it by hand to see what it says: " + screen.Shell(secrets.ShownArgs(e.Server.CommandLine()))
}

// tailOf keeps the last of what a command says on standard error.
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
