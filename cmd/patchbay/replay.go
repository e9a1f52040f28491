package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/netfault"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/replay"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

var replayVerb = verb{
	name: "replay", summary: "Send recorded requests to a server, and compare its answers.", usage: "TRACE [SERVER]",
	examples: []string{"patchbay replay t.jsonl -s everything", "patchbay replay t.jsonl --revision 2025-06-18 --ignore version -- ./my-server"},
	minor:    true,
	server:   oneServer,
	details: `Sends the recorded requests one after the other, as a client with the recorded
name, capabilities and revision, and answers questions as recorded. Ids, times,
states and cursors may differ. Exit code 1: answers differ.`,
	command: func() command { return new(replayCmd) },
}

// replayCmd plays the client's side of a recording against a live server.
type replayCmd struct {
	File   string   `arg:"" name:"trace" help:"A recording of --trace or folder of --record; -: standard input."`
	Ignore []string `placeholder:"MEMBER" help:"Ignore differences in this member (repeatable)."`
	Logs   bool     `help:"Compare log messages too."`
	Conn   string   `placeholder:"PATTERN" help:"Only connections with such names; * matches any text."`
}

func (c *replayCmd) Run(a *app) error {
	rec, err := a.readRecording(c.File, c.Conn)
	if err != nil {
		return err
	}
	if rec.Redacted > 0 {
		a.talk.Note("warning: %d requests were recorded without their secrets, and are sent with %s instead", rec.Redacted, trace.Redacted)
	}
	opened := func(ctx context.Context, like *mcp.Client) (*mcp.Session, error) {
		p, err := a.openLike(like, mcp.Revision(rec.Revision))
		if err != nil {
			return nil, err
		}
		return p.Session, nil
	}
	played := 0
	report, err := replay.Run(a.ctx, rec, &replay.Options{
		Open: opened, Ignore: c.Ignore, Logs: c.Logs,
		Each: func(*replay.Outcome) {
			if played++; !a.tty.err {
				return // the result comes soon enough
			}
			a.talk.Progress(float64(played), float64(len(rec.Exchanges)), "")
		},
	})
	a.talk.EndProgress()
	if err != nil {
		return err
	}
	if a.JSON {
		raw, err := report.Document(c.File, rec)
		if err != nil {
			return err
		}
		a.print(string(raw))
	} else {
		a.printReport(c.File, rec, report)
	}
	if report.Differ > 0 {
		return &fault{Code: exitLocal, Err: fmt.Errorf("%d of %d exchanges differ from the recording", report.Differ, report.Same+report.Differ)}
	}
	return nil
}

// readRecording reads a recording and reports the parts that cannot be used.
func (a *app) readRecording(file, conns string) (*replay.Recording, error) {
	in := a.stdin
	if file != "-" {
		f, err := ownfile.Open(a.ctx, file)
		if err != nil {
			return nil, usagef("%w", err)
		}
		defer f.Close()
		if old, err := f.Stat(); err == nil {
			if old.IsDir() {
				return a.readFolder(file, conns)
			}
			if now, err := os.Stat(a.Trace); err == nil && os.SameFile(old, now) {
				return nil, usagef("--trace %s would overwrite the recording", a.Trace)
			}
		}
		in = f
	}
	return a.read(in, file, conns)
}

// readFolder reads what the last program has written to a folder of --record.
func (a *app) readFolder(dir, conns string) (*replay.Recording, error) {
	files, err := recordings(dir, time.Time{})
	if err != nil {
		return nil, err
	}
	in, older, err := replay.OpenLast(files)
	if err != nil {
		return nil, usagef("%w", err)
	}
	defer in.Close()
	if older > 0 {
		a.talk.Note("%s: the last recording is used; for one of the %d older files, such as %s, name it", dir, older, files[0])
	}
	return a.read(in, dir, conns)
}

// read reads a recording, of a name.
func (a *app) read(in io.Reader, file, conns string) (*replay.Recording, error) {
	rec, err := replay.Read(in, conns)
	if err != nil {
		return nil, &fault{Code: exitUsage, Err: fmt.Errorf("%s: %w", file, err), Next: "patchbay trace " + shell([]string{file})}
	}
	for _, f := range rec.Faults {
		a.talk.Note("warning: %s: %s", file, f)
	}
	return rec, nil
}

// openLike opens the session that the command line names with the name, capabilities, answers and
// revision of the recorded client. If the server does not support the revision, the session uses
// the server's own.
func (a *app) openLike(like *mcp.Client, rev mcp.Revision) (*launch.Session, error) {
	change := func(c *mcp.Client) {
		on := c.OnFrame
		c.OnFrame = like.OnFrame
		if on != nil {
			c.OnFrame = func(f trace.Frame) {
				on(f)
				like.OnFrame(f)
			}
		}
		if like.Name != "" {
			c.Name, c.Title, c.Version = like.Name, like.Title, like.Version
		}
		c.Limits.Cache = like.Limits.Cache
		c.OnElicit, c.OnSample, c.Roots, c.LogLevel, c.OnEvent = like.OnElicit, like.OnSample, like.Roots, like.LogLevel, nil
	}
	if a.Revision != "" || rev == "" {
		return a.openWith(change)
	}
	p, err := a.openWith(func(c *mcp.Client) {
		change(c)
		c.Revisions = []mcp.Revision{rev}
	})
	if err == nil || a.ctx.Err() != nil || a.explain(err).Code == exitUsage || netfault.Is(err) {
		return p, err
	}
	a.talk.Note("the server does not support the recorded revision %s: %v", rev, err)
	return a.openWith(change)
}

func (a *app) printReport(file string, rec *replay.Recording, r *replay.Report) {
	for _, o := range r.Outcomes {
		where := "     "
		if o.Line > 0 {
			where = fmt.Sprintf("%5d", o.Line)
		}
		switch label := oneLine(a.shown(o.Label)); {
		case o.Skipped != "":
			a.print(a.paint("skipped", "2") + " " + where + "  " + label + ": " + o.Skipped)
		case len(o.Differences) == 0:
			a.print(a.paint("same   ", "32") + " " + where + "  " + label)
		default:
			a.print(a.paint("differs", "31") + " " + where + "  " + label)
			for _, d := range o.Differences {
				a.print("                 " + a.shown(oneLine(d.Path)))
				a.print("                   recorded " + a.shown(orNothing(d.Recorded)))
				a.print("                   now      " + a.shown(orNothing(d.Now)))
			}
			if o.More > 0 {
				a.print(fmt.Sprintf("                 and %d more", o.More))
			}
		}
	}
	from := strings.Join(append([]string{orName(rec.Revision, "an unknown revision")}, rec.Transports...), ", ")
	a.print(fmt.Sprintf("%s (%s) and %s (%s): %d same, %d differ, %d skipped",
		file, from, oneLine(a.shown(strings.TrimSpace(r.Server.Name+" "+r.Server.Version))), r.Revision, r.Same, r.Differ, r.Skipped))
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}
