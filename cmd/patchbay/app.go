package main

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/recording"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/trace"
)

// run is the whole program: it executes args and returns the exit code. The context ends with
// ctrl-C.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == complete.Verb {
		return suggest(ctx, args[1:], stdout)
	}
	return newApp(ctx, stdin, stdout, stderr).run(args)
}

// app is one run of the program.
type app struct {
	ctx    context.Context // of the run; ends with ctrl-C
	leave  func()          // the program ends: from now on it does not wait for readers of standard error
	stdin  io.Reader
	out    *bufio.Writer  // standard output, flushed before anything is closed
	rawOut io.Writer      // the same, unbuffered, for escape sequences of the terminal
	talk   *terminal.Talk // standard error
	tty    terminals

	toldUnusable map[string]bool // tools that a line has reported as unusable

	*globals
	of      *verb    // the verb that runs
	verb    string   // the first word of its name
	sub     []string // the words after it that name verbs, as in "config add"
	flags   []string // as they were typed, each with its value
	words   []string // the verb's positional arguments
	command []string // the words after "--"
	dashed  bool     // there was a "--"
	timed   bool     // there was a --timeout
	server  *config.Server
	written *config.Server               // server before its inputs were resolved; nil: no server yet
	keys    *terminal.Keyboard           // nil until the first question
	answers *inputs.Answers              // resolves the inputs of mcp.json
	secrets *secrets.Known               // of this run
	eras    mcp.Eras                     // of servers that this run has reached
	env     *launch.Env                  // the environment of the servers that this run opens
	file    *inspected                   // mcp.json, once it has been read
	asked   atomic.Pointer[config.Model] // opened last; nil: none

	modelWire http.RoundTripper // records models, or answers in their place; nil: the usual one
	replayed  bool              // modelWire answers from a recording

	served   bool      // standard input belongs to an MCP client
	wire     io.Writer // standard output, if it belongs to an MCP client
	suggests bool      // a shell completes the command line, which nobody has entered yet

	deployed *deploy.File // gateway.yaml of --gateway; nil: none

	record  deploy.Record     // --record of a verb that serves; without Dir there is none
	tee     *trace.Tee        // of frames, for a page; nil: there is none
	frames  *recording.Frames // nil until recorder is called
	saveDir string            // folder for bytes without --save; empty until it is needed
	atEnd   []func()          // run in reverse order after the output is flushed
}

// terminals says which streams are terminals.
type terminals struct {
	in, out, err bool
	width        int // of standard output, in columns; 0: lines are not cut
	errWidth     int // of standard error
	color        bool
}

func newApp(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) *app {
	tty, known := terminalsOf(stdin, stdout, stderr), secrets.New()
	leaving, leave := context.WithCancel(ctx)
	stderr = terminal.Bounded(leaving, stderr)
	a := &app{
		ctx: ctx, leave: leave, stdin: stdin, out: bufio.NewWriterSize(stdout, 64<<10), rawOut: stdout, tty: tty, secrets: known,
		talk: &terminal.Talk{W: stderr, TTY: tty.err, Width: tty.errWidth, Color: tty.err && tty.color, Clean: known.Text}, globals: new(globals),
	}
	a.answers = &inputs.Answers{Context: func() context.Context { return a.ctx }, Talk: a.talk, Learn: known.Learn, Keys: func() *terminal.Keyboard {
		if !a.tty.in || !a.tty.err {
			return nil
		}
		return a.keyboard()
	}}
	a.env = a.newEnv()
	return a
}

func terminalsOf(stdin, stdout, stderr any) terminals {
	size := func(stream any) (is bool, width int) {
		f, ok := stream.(*os.File)
		if !ok || !term.IsTerminal(int(f.Fd())) {
			return false, 0
		}
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 {
			width = 80
		}
		return true, width
	}
	var t terminals
	t.in, _ = size(stdin)
	t.out, t.width = size(stdout)
	t.err, t.errWidth = size(stderr)
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		t.width = n
	}
	t.color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return t
}

func (a *app) run(args []string) int {
	err := a.dispatch(args)
	// The result comes first, because a server may take seconds to end.
	if flushed := a.out.Flush(); err == nil && flushed != nil {
		err = flushed
	}
	a.talk.EndProgress()
	code := a.report(err)
	for _, f := range slices.Backward(a.atEnd) {
		f()
	}
	a.env.Settle()
	return code
}

// print writes a line of data.
func (a *app) print(s string) {
	a.out.WriteString(s)
	a.out.WriteByte('\n')
}

// printJSON prints a value as JSON on one line.
func (a *app) printJSON(v any) error {
	raw, err := jsonx.Marshal(v)
	if err == nil {
		a.print(a.shown(string(raw)))
	}
	return err
}

// paint colours text for standard output if it is a terminal.
func (a *app) paint(s, style string) string { return paint(s, style, a.tty.out && a.tty.color) }

// shown returns text from a server for printing: unchanged for a file or pipe, with control
// characters made visible for a terminal, which would obey them.
func (a *app) shown(s string) string {
	if a.tty.out {
		return visible(s)
	}
	return s
}

// serverName returns the name of the server for people.
func (a *app) serverName() string {
	if a.server == nil {
		return "the server"
	}
	if a.dashed { // "npx" alone would not distinguish servers
		return cut(shell(append([]string{filepath.Base(a.command[0])}, a.command[1:]...)), 60)
	}
	return cmp.Or(a.server.Name, a.server.URL, "the server")
}

// keyboard returns the keyboard that reads standard input.
func (a *app) keyboard() *terminal.Keyboard {
	if a.keys == nil {
		a.keys = terminal.NewKeyboard(a.stdin)
	}
	return a.keys
}

// logger logs errors that cannot be returned to standard error: at a terminal in the form of the
// program's own lines, else in that of package log/slog, with the time. Lines
// about a call have the ids of its span if there is one.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	if a.Verbose {
		level = slog.LevelDebug
	}
	if a.tty.err {
		return slog.New(telemetry.LogHandler(a.talk.Handler(level)))
	}
	return slog.New(telemetry.LogHandler(slog.NewTextHandler(a.talk, &slog.HandlerOptions{Level: level})))
}
