package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/trace"
)

var traceVerb = verb{
	name: "trace", summary: "Show a recording of --trace.", usage: "TRACE",
	examples: []string{"patchbay trace t.jsonl", "patchbay trace t.jsonl --method 'tools/*' --full", "patchbay call everything/echo message=hi --trace t.jsonl"},
	details: `A line per frame: seconds since the first, connection, direction, content. Every
verb records its frames to a file with --trace FILE, without secrets.`,
	command: func() command { return new(traceCmd) },
}

// traceCmd shows a recording to people, a line per frame.
type traceCmd struct {
	File   string `arg:"" name:"trace" help:"A recording of --trace; -: standard input."`
	Full   bool   `help:"Show messages and headers whole."`
	Method string `placeholder:"PATTERN" help:"Only these methods and their answers, such as 'tools/*'."`
	Conn   string `placeholder:"PATTERN" help:"Only connections with such names; * is any text."`
}

func (c *traceCmd) Run(a *app) error {
	for _, p := range []string{c.Method, c.Conn} {
		if _, err := path.Match(p, ""); err != nil {
			return usagef("%q is not a pattern: %w", p, err)
		}
	}
	in := a.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return usagef("%w", err)
		}
		defer f.Close()
		in = f
	}
	v := &traceView{a: a, c: c, wide: len("session-01234567"), methods: map[string]string{}}
	bad := 0
	for f, err := range trace.Read(in) {
		var line *trace.LineError
		switch {
		case errors.As(err, &line):
			bad++
			a.talk.Note("warning: %s: %v", c.File, err)
		case err != nil:
			return err
		default:
			v.frame(&f)
		}
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
	}
	if v.frames == 0 && bad > 0 {
		return &fault{code: exitLocal, err: fmt.Errorf("%s is no recording: none of its lines is a frame", c.File)}
	}
	return nil
}

// traceView remembers what the lines of a recording have to do with each other.
type traceView struct {
	a       *app
	c       *traceCmd
	start   time.Time
	frames  int
	wide    int               // columns of the names of connections
	methods map[string]string // of requests, by connection, direction and id
}

func (v *traceView) frame(f *trace.Frame) {
	v.frames++
	if v.start.IsZero() {
		v.start = f.Time
	}
	if v.c.Conn != "" && !matches(v.c.Conn, f.Conn) {
		return
	}
	about, method := v.about(f)
	if v.c.Method != "" && !matches(v.c.Method, method) {
		return
	}
	a := v.a
	if a.JSON {
		a.print(a.shown(string(f.Append(nil))))
		return
	}
	arrow := "←"
	if f.Dir == trace.Out {
		arrow = "→"
	}
	at := ""
	if !f.Time.IsZero() {
		at = fmt.Sprintf("%8.3f ", f.Time.Sub(v.start).Seconds())
	}
	if f.Lost > 0 {
		a.print(fmt.Sprintf("         %d frames are missing here", f.Lost))
	}
	conn := oneLine(f.Conn)
	v.wide = min(max(v.wide, columns(conn)), 40)
	head := at + conn + strings.Repeat(" ", max(0, v.wide-columns(conn))) + " " + arrow + " "
	room := 0
	if a.tty.width > 0 {
		room = max(20, a.tty.width-columns(head))
	}
	a.print(a.paint(head, "2") + cut(oneLine(about), room))
	if v.c.Full {
		v.full(f)
	}
}

// about says what a frame is, and which method it has to do with.
func (v *traceView) about(f *trace.Frame) (about, method string) {
	var parts []string
	if h := f.HTTP; h != nil {
		if h.Method != "" {
			parts = append(parts, h.Method, h.Path)
		}
		if h.Status != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", h.Status, http.StatusText(h.Status)))
		}
	}
	switch f.Kind {
	case trace.KindMessage:
	case trace.KindStderr:
		return "stderr: " + string(f.Raw), ""
	default:
		parts = append(parts, string(f.Kind)+":", f.Note, shell(f.Args), string(f.Raw)+string(f.Msg))
		return strings.Join(strings.Fields(strings.Join(parts, " ")), " "), ""
	}
	size := ""
	if f.Size > 0 {
		size = fmt.Sprintf("(%d bytes)", f.Size)
	}
	if f.Cut > 0 {
		size += fmt.Sprintf(", %d cut", f.Cut)
	}
	switch {
	case len(f.Msg) > 0 && jsonx.KindOf(f.Msg) == '{':
		var text string
		text, method = v.message(f)
		parts = append(parts, text)
	case len(f.Msg) > 0 && jsonx.KindOf(f.Msg) == '[':
		n := 0
		for range jsonx.Elements(f.Msg) {
			n++
		}
		parts = append(parts, fmt.Sprintf("batch of %d", n))
	case len(f.Msg)+len(f.Raw) > 0:
		parts = append(parts, "no message: "+clip(string(f.Msg)+string(f.Raw)))
	}
	return strings.TrimSpace(strings.Join(parts, " ") + " " + size), method
}

// message words one message.
func (v *traceView) message(f *trace.Frame) (text, method string) {
	get := func(at ...string) string {
		raw, ok := jsonx.LookupPath(f.Msg, at...)
		if !ok {
			return ""
		}
		if s, err := jsonx.Unquote(raw); err == nil {
			return s
		}
		return string(jsonx.Compact(nil, raw))
	}
	id := get("id")
	method = get("method")
	if method != "" {
		words := []string{method}
		if id != "" {
			words = []string{"#" + id, method}
			v.methods[f.Conn+" "+string(f.Dir)+" "+id] = method
		}
		for _, at := range [][]string{{"params", "name"}, {"params", "uri"}, {"params", "message"}, {"params", "data"}} {
			if s := get(at...); s != "" {
				words = append(words, clip(s))
				break
			}
		}
		if s := get("params", "arguments"); s != "" {
			words = append(words, brief(s))
		}
		return strings.Join(words, " "), method
	}
	back := trace.In
	if f.Dir == trace.In {
		back = trace.Out
	}
	method = v.methods[f.Conn+" "+string(back)+" "+id]
	words := []string{"#" + id, method}
	if code := get("error", "code"); code != "" {
		words = append(words, "error "+code+": "+clip(get("error", "message")))
	} else {
		words = append(words, "answered")
		if kind := get("result", "resultType"); kind != "" && kind != "complete" {
			words = append(words, kind)
		}
		if get("result", "isError") == "true" {
			words = append(words, "with an error of the tool")
		}
		for _, at := range [][]string{{"result", "structuredContent"}, {"result", "content"}, {"result", "contents"}} {
			if s := get(at...); s != "" {
				words = append(words, brief(s))
				break
			}
		}
	}
	return strings.Join(words, " "), method
}

// brief is the beginning of JSON, for a line; --full shows all of it.
func brief(s string) string { return cut(oneLine(s), 200) }

// full shows what a line leaves out.
func (v *traceView) full(f *trace.Frame) {
	if f.HTTP != nil {
		var names []string
		for name := range f.HTTP.Headers {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			v.a.print("    " + visible(name+": "+strings.Join(f.HTTP.Headers[name], ", ")))
		}
	}
	text := string(f.Msg)
	if text == "" {
		text = string(f.Raw)
	} else {
		text = indented(f.Msg)
	}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if line != "" {
			v.a.print("    " + visible(line))
		}
	}
}

// matches matches a name in which "/" is like any character.
func matches(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}
