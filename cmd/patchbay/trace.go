package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/auditlog"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/timeline"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
	"github.com/patchbay-dev/patchbay/trace/record"
)

var traceVerb = verb{
	name: "trace", summary: "Show a recording of --trace or --record.", usage: "TRACE",
	examples: []string{"patchbay trace t.jsonl", "patchbay trace t.jsonl --method 'tools/*' --full", "patchbay trace frames --since 10m --call 'http-4 #7'", "patchbay call everything/echo message=hi --trace t.jsonl"},
	details: `Prints a line per frame: seconds since the first, connection, direction,
content. Any verb records its frames with --trace FILE, without secrets. A
folder of --record is shown file by file.`,
	command: func() command { return new(traceCmd) },
}

// traceCmd shows a recording to people, one line per frame.
type traceCmd struct {
	File   string `arg:"" name:"trace" help:"A recording of --trace or folder of --record; -: standard input."`
	Full   bool   `help:"Show whole messages and headers."`
	Method string `placeholder:"PATTERN" help:"Only these methods and their answers, such as 'tools/*'."`
	Conn   string `placeholder:"PATTERN" help:"Only connections with such names; * matches any text."`
	Since  string `placeholder:"TIME" help:"From this time on: 10m, 2h, 15:00, 2026-11-22[T15:00]."`
	Call   string `placeholder:"ID" help:"Only this request and what was done for it: 'http-4 #7'."`
}

func (c *traceCmd) Run(a *app) error {
	for _, p := range []string{c.Method, c.Conn} {
		if _, err := path.Match(p, ""); err != nil {
			return usagef("%q is not a pattern: %w", p, err)
		}
	}
	since, call := time.Time{}, ""
	if c.Since != "" {
		var ok bool
		if since, ok = auditlog.TimeOf(c.Since, time.Now()); !ok {
			return usagef("--since cannot be %q: write it like 10m or 2h (ago), 15:00, 2026-11-22, or 2026-11-22T15:00:00Z", c.Since)
		}
	}
	if c.Call != "" {
		var ok bool
		if call, ok = timeline.CallOf(c.Call); !ok {
			return usagef("--call cannot be %q: write it like 'http-4 #7', the connection and the id of a request, as the lines of trace name it", c.Call)
		}
	}
	files, err := recordings(c.File, since)
	if err != nil {
		return err
	}
	r := &traceRun{View: timeline.View{Method: c.Method, Conn: c.Conn, Since: since, Call: call, Full: c.Full, Width: a.tty.width, Faint: func(s string) string { return a.paint(s, "2") }}}
	for _, file := range files {
		if err := r.show(a, file, len(files) > 1); err != nil {
			return err
		}
	}
	if r.frames == 0 && r.bad > 0 {
		return &fault{Code: exitLocal, Err: fmt.Errorf("%s is not a recording: it has no frames", c.File)}
	}
	switch {
	case len(files) == 0:
		a.talk.Note("%s has nothing since %s", c.File, since.Format(time.DateTime))
	case r.shown == 0 && r.frames > 0:
		a.talk.Note("none of the %d frames fits %s", r.frames, strings.Join(a.flags, " "))
	}
	return nil
}

// recordings returns the files of a folder of --record that were written to since a time, or the file
// itself.
func recordings(path string, since time.Time) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, nil
	}
	files, err := record.Files(path)
	switch {
	case err != nil:
		return nil, usagef("%w", err)
	case len(files) == 0:
		return nil, usagef("the folder %s has no recordings", path).Hint(shell([]string{"patchbay", "up", "--record", path}))
	}
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.ModTime().Before(since)
	}), nil
}

// traceRun shows the frames of one file after another.
type traceRun struct {
	timeline.View
	frames, shown, bad int
}

// show prints the frames of a file that are selected; the first one, if the file is one of several,
// below its name.
func (r *traceRun) show(a *app, file string, named bool) error {
	in := a.stdin
	if file != "-" {
		f, err := ownfile.Open(a.ctx, file)
		if err != nil {
			return usagef("%w", err)
		}
		defer f.Close()
		in = f
	}
	for f, err := range trace.Read(in) {
		var line *trace.LineError
		switch {
		case errors.As(err, &line):
			r.bad++
			a.talk.Note("warning: %s: %v", file, err)
		case err != nil:
			return err
		default:
			r.frames++
			lines, ok := r.Lines(&f)
			if !ok {
				break
			}
			r.shown++
			if a.JSON {
				a.print(a.shown(string(f.Append(nil))))
				break
			}
			if named {
				a.print(a.paint(a.shown(file), "2"))
				named = false
			}
			a.print(strings.Join(lines, "\n"))
		}
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
	}
	return nil
}
