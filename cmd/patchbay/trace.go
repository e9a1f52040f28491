package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/timeline"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace"
)

var traceVerb = verb{
	name: "trace", summary: "Show a recording of --trace.", usage: "TRACE",
	examples: []string{"patchbay trace t.jsonl", "patchbay trace t.jsonl --method 'tools/*' --full", "patchbay call everything/echo message=hi --trace t.jsonl"},
	details: `Prints a line per frame: seconds since the first, connection, direction,
content. Any verb records its frames with --trace FILE, without secrets.`,
	command: func() command { return new(traceCmd) },
}

// traceCmd shows a recording to people, one line per frame.
type traceCmd struct {
	File   string `arg:"" name:"trace" help:"A recording of --trace; -: standard input."`
	Full   bool   `help:"Show whole messages and headers."`
	Method string `placeholder:"PATTERN" help:"Only these methods and their answers, such as 'tools/*'."`
	Conn   string `placeholder:"PATTERN" help:"Only connections with such names; * matches any text."`
}

func (c *traceCmd) Run(a *app) error {
	for _, p := range []string{c.Method, c.Conn} {
		if _, err := path.Match(p, ""); err != nil {
			return usagef("%q is not a pattern: %w", p, err)
		}
	}
	in := a.stdin
	if c.File != "-" {
		f, err := ownfile.Open(a.ctx, c.File)
		if err != nil {
			return usagef("%w", err)
		}
		defer f.Close()
		in = f
	}
	v := &timeline.View{Method: c.Method, Conn: c.Conn, Full: c.Full, Width: a.tty.width, Faint: func(s string) string { return a.paint(s, "2") }}
	frames, shown, bad := 0, 0, 0
	for f, err := range trace.Read(in) {
		var line *trace.LineError
		switch {
		case errors.As(err, &line):
			bad++
			a.talk.Note("warning: %s: %v", c.File, err)
		case err != nil:
			return err
		default:
			frames++
			lines, ok := v.Lines(&f)
			if !ok {
				break
			}
			shown++
			if a.JSON {
				a.print(a.shown(string(f.Append(nil))))
			} else {
				a.print(strings.Join(lines, "\n"))
			}
		}
		if a.ctx.Err() != nil {
			return a.ctx.Err()
		}
	}
	if frames == 0 && bad > 0 {
		return &fault{code: exitLocal, err: fmt.Errorf("%s is not a recording: it has no frames", c.File)}
	}
	if shown == 0 && frames > 0 {
		a.talk.Note("none of the %d frames fits %s", frames, strings.Join(a.flags, " "))
	}
	return nil
}
