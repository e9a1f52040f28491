package main

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers"
	"github.com/patchbay-dev/patchbay/trace"
)

var configDoctorVerb = verb{
	name: "doctor", summary: "Find out why a server or a model does not work.", usage: "[NAME ... | -- COMMAND]",
	examples: []string{"patchbay config doctor", "patchbay config doctor memory --json", "patchbay config doctor openai/gpt-5-mini"},
	server:   wordsBehindDashes,
	details: `Starts or reaches each server, step by step, and ends it again. Of a failed one
it shows the step, the command, its exit code and last lines, and a remedy.
Models are asked for their description, with their keys. Only commands of
mcp.json are started: look at it first if it is not yours. Exit code 1:
something failed.`,
	command: func() command { return new(configDoctorCmd) },
}

// configDoctorCmd finds out why servers and models do not work. It goes the way that every verb
// goes to a server, step by step, up to the first that fails.
type configDoctorCmd struct {
	Names []string `arg:"" optional:"" help:"Only these servers and models."`
}

func (*configDoctorCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return append(a.configServers(), a.modelNames()...)
}

// doctorAtOnce is how many servers are examined at the same time.
const doctorAtOnce = 4

func (c *configDoctorCmd) Run(a *app) error {
	exams, err := c.exams(a)
	if err != nil {
		return err
	}
	if !a.JSON && a.file.path != "" && slices.ContainsFunc(exams, func(e *exam) bool { return e.model == nil }) {
		a.talk.note("the servers of %s are started", here(a.file.path))
	}
	if _, err := a.recorder(); err != nil { // one recording of all
		return err
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, doctorAtOnce)
	for _, e := range exams {
		all.Go(func() {
			defer close(e.done)
			slots <- struct{}{}
			defer func() { <-slots }()
			if e.failed() == nil {
				e.run(a.ctx)
			}
		})
	}
	failed := 0
	for _, e := range exams {
		<-e.done
		if e.failed() != nil {
			failed++
		}
		if !a.JSON {
			a.printExam(e)
			a.out.Flush()
		}
	}
	all.Wait()
	if a.JSON {
		reports := []examReport{}
		for _, e := range exams {
			reports = append(reports, e.report())
		}
		raw, err := jsonx.Marshal(reports)
		if err != nil {
			return err
		}
		a.print(string(raw))
	}
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if failed > 0 {
		what := "server"
		if slices.ContainsFunc(exams, func(e *exam) bool { return e.model != nil }) {
			what = "check"
		}
		return fmt.Errorf("%s of %d failed", quantity(failed, what), len(exams))
	}
	return nil
}

// exams makes the examinations. What a person is asked for comes before all of them.
func (c *configDoctorCmd) exams(a *app) ([]*exam, error) {
	if a.dashed {
		s, err := a.target()
		a.file = new(inspected)
		return []*exam{{a: a, server: s, done: make(chan struct{})}}, err
	}
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	if whole := read.about(""); len(whole) > 0 {
		return nil, whole
	}
	names := slices.Clone(c.Names)
	if len(c.Names) == 0 {
		if names = read.names(); len(names) > 0 && read.file != nil {
			if err := a.mayUse(read.file); err != nil { // it starts all of them
				return nil, err
			}
		}
	}
	// Of a server and a model of one name, it is the server that is meant.
	known := append(read.names(), servers.Names()...)
	models, err := c.modelExams(a, func(name string) bool {
		return len(c.Names) == 0 || slices.Contains(c.Names, name) && !slices.Contains(known, name)
	})
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return len(c.Names) > 0 && slices.ContainsFunc(models, func(e *exam) bool { return e.model.Name == name })
	})
	if len(names)+len(models) == 0 {
		return nil, usagef("there is no server to look at").hint("patchbay config add NAME -- COMMAND")
	}
	var out []*exam
	for _, name := range names {
		e := &exam{a: a, server: config.Server{Name: name}, done: make(chan struct{})}
		out = append(out, e)
		if faults := read.about(name); len(faults) > 0 {
			e.fail("config", faults.Error(), "correct the file; patchbay config explain "+shell([]string{name})+" shows where it is")
			continue
		}
		var s config.Server
		if i := slices.IndexFunc(read.servers, func(s config.Server) bool { return s.Name == name }); i >= 0 {
			s = read.servers[i] // also one that is disabled: it is why it was asked for
		} else if s, err = a.named(name); err != nil {
			return nil, err
		}
		e.server = s
		e.ok("config", cmp.Or(hereLine(s.Source), "built in"))
		if s, err = a.env.Resolve(s); err != nil {
			e.fail("inputs", err.Error(), "")
			continue
		}
		e.server = s
	}
	return append(out, models...), nil
}

// exam is the examination of one server or model.
type exam struct {
	a      *app
	server config.Server
	model  *config.Model // nil: it is of a server; else server is its address
	done   chan struct{} // closed when it is over

	steps  []examStep
	next   string   // what to do about the step that failed
	code   *int     // the exit code of the command
	stderr []string // its last lines
	lacks  []string // variables that it may need

	mu    sync.Mutex
	noise []string // lines of its standard output that are no messages; guarded by mu
	exits []string // how its processes ended; guarded by mu
}

type examStep struct {
	Name   string `json:"name"`
	State  string `json:"state"` // "ok", "warning" or "failed"
	Detail string `json:"detail,omitempty"`
}

// examReport is an examination as JSON.
type examReport struct {
	Name     string     `json:"name"`
	OK       bool       `json:"ok"`
	Model    string     `json:"model,omitempty"` // PROVIDER/NAME; empty: it is a server
	Where    string     `json:"where,omitempty"`
	Steps    []examStep `json:"steps"`
	Failed   string     `json:"failed,omitempty"`
	ExitCode *int       `json:"exitCode,omitempty"`
	Stderr   []string   `json:"stderr,omitempty"`
	Next     string     `json:"next,omitempty"`
	Wanted   []string   `json:"wanted,omitempty"` // variables that are set here and not passed on
}

func (e *exam) step(name, state, detail string) {
	e.steps = append(e.steps, examStep{name, state, e.clean(detail)})
}

func (e *exam) ok(name, detail string)   { e.step(name, "ok", detail) }
func (e *exam) warn(name, detail string) { e.step(name, "warning", detail) }

func (e *exam) fail(name, detail, next string) {
	e.step(name, "failed", detail)
	e.next = e.clean(next)
}

// clean takes the secrets that the server was given out of a text.
func (e *exam) clean(text string) string {
	return clip(e.a.secrets.Text(text))
}

// failed returns the step that failed, nil if none did.
func (e *exam) failed() *examStep {
	if n := len(e.steps); n > 0 && e.steps[n-1].State == "failed" {
		return &e.steps[n-1]
	}
	return nil
}

func (e *exam) report() examReport {
	r := examReport{Name: e.server.Name, OK: e.failed() == nil, Where: e.where(), Steps: e.steps, ExitCode: e.code, Stderr: e.stderr, Next: e.next, Wanted: e.lacks}
	if f := e.failed(); f != nil {
		r.Failed = f.Name
	}
	if e.model != nil {
		r.Model = e.model.Provider + "/" + e.model.Model
	}
	return r
}

// where shows what is started or reached, "" if the file does not say it rightly.
func (e *exam) where() string {
	if e.server.Command == "" && e.server.URL == "" && e.server.Builtin == "" {
		return ""
	}
	return where(&e.server)
}

// run goes the whole way. It leaves nothing behind and takes no longer than the
// opening of a session may take, twice, and a few seconds.
func (e *exam) run(ctx context.Context) {
	ctx, cancel := e.a.startContext(ctx, e.server)
	defer cancel()
	switch {
	case e.model != nil:
		e.runModel(ctx)
		return
	case e.server.Builtin != "":
	case e.server.URL != "":
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
func (e *exam) command() bool {
	s := e.server
	if err := launch.CheckSelf(s.CommandLine()); err != nil {
		e.fail("command", err.Error(), "change the entry in "+e.server.Source)
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
		e.fail("command", detail, next)
		return false
	}
	found := s.Command
	if path, err := exec.LookPath(s.Command); err == nil {
		found = path
	}
	e.ok("command", found)
	return true
}

// session opens a session, asks for the tools, and ends it.
func (e *exam) session(ctx context.Context) {
	client, err := e.a.newClient(e.server)
	if err != nil {
		e.fail("handshake", err.Error(), "")
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
	p, err := e.a.env.Open(ctx, e.server, client, &said)
	took := time.Since(start).Round(time.Millisecond)
	if err != nil {
		e.noSession(err, &said, took)
		e.lacks = e.wanted()
		return
	}
	defer p.Close()
	if e.server.Command != "" {
		before := len(e.steps)
		e.ok("start", "")
		defer func() { e.heard(before + 1) }() // what it said until then
	}
	info := p.Server()
	era := "modern"
	if p.Revision().Sessions() {
		era = "legacy"
	}
	e.ok("handshake", oneLine(strings.TrimSpace(info.Name+" "+info.Version))+", in "+shortTime(took))
	e.ok("era", fmt.Sprintf("%s: revision %s, found by %s", era, p.Revision(), oneLine(p.How())))
	if !info.Capabilities.Has("tools") {
		e.ok("tools", "it offers none")
		return
	}
	n := 0
	for _, err := range p.Tools(ctx) {
		if err != nil {
			e.stderr = said.lines(e)
			e.fail("tools", "tools/list: "+oneLine(err.Error()), e.byHand())
			e.lacks = e.wanted()
			return
		}
		n++
	}
	e.ok("tools", quantity(n, "tool"))
}

// frame listens for what a server should not write, and how its process ends.
func (e *exam) frame(f trace.Frame) {
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
		if text := strconv.Quote(cut(oneLine(string(line)), 200)); len(line) > 0 && len(e.noise) < most && !slices.Contains(e.noise, text) {
			e.noise = append(e.noise, text)
		}
	}
}

// heard tells at a place among the steps of lines on standard output that are no
// messages.
func (e *exam) heard(at int) {
	e.mu.Lock()
	noise := strings.Join(e.noise, ", ")
	e.mu.Unlock()
	step := examStep{"stdout", "ok", "messages alone"}
	if noise != "" {
		step = examStep{"stdout", "warning", e.clean("lines that are no messages: " + noise + "; they belong on standard error")}
	}
	e.steps = slices.Insert(e.steps, at, step)
}

// noSession finds the step that failed when no session was opened.
func (e *exam) noSession(err error, said *tailOf, took time.Duration) {
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
		if last := strings.TrimSpace(visible(exit.Stderr)); last != "" { // of the last of several tries
			e.stderr = strings.Split(e.clean(lastLines(last, 8)), "\n")
		}
		code, known := launch.ExitCode(exit.State)
		if known {
			e.code = &code
		}
		if known && code == 127 {
			e.fail("start", "it cannot be started", e.byHand())
			return
		}
		e.ok("start", "")
		if noise != "" {
			e.warn("stdout", "lines that are no messages: "+noise)
		}
		next := e.byHand()
		if known && code == 0 {
			next = "it ended as if it was done: is it a server over stdio? " + next
		}
		e.fail("handshake", fmt.Sprintf("it ended (%s) before it answered, after %s", launch.Ending(exit.State), shortTime(took)), next)
	case e.server.Command != "" && noise != "":
		e.ok("start", "")
		e.fail("stdout", "lines that are no messages, and no answer: "+noise, "standard output is for messages alone: have it log to standard error, or reach it by its \"url\" if it says one")
	case e.server.Command != "" && late:
		e.ok("start", "")
		e.ok("stdout", "nothing")
		e.fail("handshake", "no answer in "+shortTime(took), "is it a server over stdio? if it only needs longer, --timeout 3m; "+e.byHand())
	case errors.As(err, &rpc):
		e.fail("handshake", fmt.Sprintf("it answered with an error: %s (code %d)", oneLine(rpc.Message), rpc.Code), "patchbay discover -s "+shell([]string{e.server.Name})+" -v shows what was said")
	case late:
		e.fail("handshake", "no answer in "+shortTime(took), "try again; --timeout 3m waits longer")
	default:
		e.fail("handshake", oneLine(err.Error()), "patchbay discover -s "+shell([]string{e.server.Name})+" -v shows what was said")
	}
}

// byHand words the command to run by hand.
func (e *exam) byHand() string {
	if e.server.Command == "" {
		return ""
	}
	return "run it by hand to see what it says: " + shell(secrets.ShownArgs(e.server.CommandLine()))
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
func (t *tailOf) lines(e *exam) []string {
	t.mu.Lock()
	text := strings.ToValidUTF8(string(t.buf), "�")
	t.mu.Unlock()
	if text = strings.TrimSpace(visible(text)); text == "" {
		return nil
	}
	return strings.Split(e.clean(lastLines(text, 8)), "\n")
}

// printExam prints an examination for people.
func (a *app) printExam(e *exam) {
	title := a.paint(oneLine(e.server.Name), "1") + "  "
	if e.model != nil && e.model.Model != "" {
		title += oneLine(e.model.Provider+"/"+e.model.Model) + " at "
	}
	a.print(title + a.shown(oneLine(e.where())))
	styles := map[string]string{"ok": "32", "warning": "33", "failed": "31"}
	const indent = 23
	line := func(label, text, style string) {
		room := 0
		if a.tty.width > 0 {
			room = max(30, a.tty.width-indent)
		}
		text = strings.ReplaceAll(wrap(visible(text), room), "\n", "\n"+strings.Repeat(" ", indent))
		a.print(strings.TrimRight(a.paint(label, style)+strings.Repeat(" ", max(0, indent-columns(label)))+text, " "))
	}
	for _, s := range e.steps {
		line("  "+pad(s.State, 8)+" "+s.Name, s.Detail, styles[s.State])
	}
	if e.code != nil {
		line("           exit code", strconv.Itoa(*e.code), "")
	}
	for i, l := range e.stderr {
		if e.failed() == nil {
			break
		}
		label := ""
		if i == 0 {
			label = "           stderr"
		}
		line(label, l, "")
	}
	if len(e.lacks) > 0 {
		line("           environment", passOn(e.lacks, e.server.Name, e.server.Source), "33")
	}
	if e.next != "" {
		line("           next", e.next, "36")
	}
}
