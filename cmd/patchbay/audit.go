package main

import (
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/auditlog"
)

var auditVerb = verb{
	name: "audit", summary: "Read, verify and export audit logs.",
	examples: []string{"patchbay audit tail -f", "patchbay audit query --since 7d --outcome denied", "patchbay audit verify audit.jsonl --key audit.key.pub"},
	minor:    true,
	details: `An audit log has a line for each call, before it is made and after it has
ended, in a chain of hashes that shows later changes. up, serve, bridge and mock
write one with --audit FILE. run and chat write the log of this user, which is
the default for FILE. Rotated files beside a log belong to it.`,
	verbs: []*verb{&auditTailVerb, &auditQueryVerb, &auditVerifyVerb, &auditExportVerb},
}

// auditSelection explains the flags that select lines.
const auditSelection = `-s SERVER selects a server; * stands for any text. Checkpoints are shown
only with --kind.`

// auditLog finds the log of the flags. Its warnings are printed at the end.
func (a *app) auditLog(lines *auditlog.Lines) (*auditlog.Log, error) {
	l, err := lines.Open(a.Server, time.Now())
	if err != nil {
		return nil, auditFault(err)
	}
	a.atEnd = append(a.atEnd, func() {
		for _, w := range l.Warnings() {
			a.talk.Note("warning: %s", w)
		}
	})
	return l, nil
}

// auditFault gives an error its exit code and a next step.
func auditFault(err error) error {
	var bad auditlog.BadFlag
	switch {
	case errors.As(err, &bad):
		return usagef("%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return (&fault{Err: err}).Hint("patchbay help audit")
	}
	return err
}

// auditPrinter prints lines, with --json as they stand in the log. The first ones are known.
func (a *app) auditPrinter(first []*audit.Entry) func(e *audit.Entry) error {
	v := &auditlog.View{Width: a.tty.width, Paint: a.paint}
	for _, e := range first {
		v.Line(e) // widens the columns
	}
	return func(e *audit.Entry) error {
		if a.JSON {
			a.print(a.shown(string(e.Line())))
		} else {
			a.print(v.Line(e))
		}
		return a.ctx.Err()
	}
}

var auditTailVerb = verb{
	name: "tail", summary: "Show the last lines of an audit log.", usage: "[FILE] [-f]",
	examples: []string{"patchbay audit tail -f", "patchbay audit tail audit.jsonl -n 100 --outcome error"},
	server:   namedServer,
	details:  "Prints a line per fact: time, principal, team, server/tool, outcome, duration,\nbytes, rule, reason, call.\n" + auditSelection,
	command:  func() command { return new(auditTailCmd) },
}

type auditTailCmd struct {
	auditlog.Lines
	Follow bool `short:"f" help:"Go on with lines as they are written, until ctrl-C."`
	N      int  `name:"lines" short:"n" default:"10" placeholder:"N" help:"Number of lines."`
}

// Run prints the last lines, and with --follow those after them.
func (c *auditTailCmd) Run(a *app) error {
	if c.N < 0 {
		return usagef("--lines must not be negative")
	}
	l, err := a.auditLog(&c.Lines)
	if err != nil {
		return err
	}
	list, err := l.Tail(c.N)
	if err != nil {
		return err
	}
	show := a.auditPrinter(list)
	for _, e := range list {
		if err := show(e); err != nil {
			return err
		}
	}
	if !c.Follow {
		return nil
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	for e, err := range l.Follow(a.ctx) {
		if errors.Is(err, audit.ErrReplaced) {
			a.talk.Note("warning: %v", err)
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(show(e), a.out.Flush()); err != nil {
			return err
		}
	}
	return a.ctx.Err()
}

var auditQueryVerb = verb{
	name: "query", summary: "Show selected lines of an audit log.", usage: "[FILE] [FLAGS]",
	examples: []string{"patchbay audit query --since 7d --who '*#ada' --outcome denied", "patchbay audit query audit.jsonl -s jira --tool 'create*' --json"},
	server:   namedServer,
	details:  auditSelection + " --json prints the lines as they stand in the log.",
	command:  func() command { return new(auditQueryCmd) },
}

type auditQueryCmd struct {
	auditlog.Lines
	Unended bool `help:"Only calls without an end: they run, or their process died."`
}

// Run prints the selected lines.
func (c *auditQueryCmd) Run(a *app) error {
	l, err := a.auditLog(&c.Lines)
	if err != nil {
		return err
	}
	lines := l.All()
	if c.Unended {
		lines = l.Unended()
	}
	show := a.auditPrinter(nil)
	for e, err := range lines {
		if err != nil {
			return err
		}
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}

var auditVerifyVerb = verb{
	name: "verify", summary: "Find changes of an audit log.", usage: "[FILE ...] [--key FILE]",
	examples: []string{"patchbay audit verify audit.jsonl --key audit.key.pub", "patchbay audit verify audit.jsonl --key audit.key.pub --kept heads.jsonl", "patchbay audit verify n1.jsonl n2.jsonl n3.jsonl"},
	details: `Names lines that are edited, missing, moved, repeated or cut off. Without --key,
a person who has computed all hashes again is not found; without --kept, one who
has cut off the end of the log together with FILE.head. Logs of the nodes of a
cluster, which note each other's checkpoints, are verified together.
Exit code 0: whole; 6: changed; 1: a file cannot be read.`,
	command: func() command { return new(auditVerifyCmd) },
}

type auditVerifyCmd struct{ auditlog.Check }

// Run verifies a log.
func (c *auditVerifyCmd) Run(a *app) error {
	v, err := c.Verify()
	if err != nil {
		return auditFault(err)
	}
	if a.JSON {
		if err := a.printJSON(v.JSON()); err != nil {
			return err
		}
	} else {
		for _, line := range v.Lines(a.paint) {
			a.print(a.shown(line))
		}
	}
	if !v.Whole() {
		return &fault{Code: exitRefused, Err: errors.New("the audit log is not what was written")}
	}
	return nil
}

var auditExportVerb = verb{
	name: "export", summary: "Copy lines of an audit log to a file or a collector.", usage: "[FILE] --to FILE | --otlp URL",
	examples: []string{"patchbay audit export --since 2026-11-22 --to day.jsonl", "patchbay audit export --otlp http://collector:4318 --header 'X-Key: K'"},
	server:   namedServer,
	details: `Copies lines as they stand in the log; a copy of all lines can be verified.
--otlp sends a log record per line to a collector of OpenTelemetry.
-s SERVER selects a server; * stands for any text.`,
	command: func() command { return new(auditExportCmd) },
}

type auditExportCmd struct{ auditlog.Copy }

// Run copies the selected lines.
func (c *auditExportCmd) Run(a *app) error {
	header := http.Header{}
	if err := errors.Join(c.Check(), a.addHeaders(header)); err != nil {
		return auditFault(err)
	}
	l, err := a.auditLog(&c.Lines)
	if err != nil {
		return err
	}
	n, err := c.Copy.Run(a.ctx, l, header, a.out)
	switch {
	case err != nil:
		return auditFault(err)
	case a.JSON && c.To != "-":
		return a.printJSON(map[string]int{"lines": n})
	}
	a.talk.Note("%s copied", quantity(n, "line"))
	return nil
}

var usageVerb = verb{
	name: "usage", summary: "Add up the calls of an audit log.", usage: "[FILE] [--by COLUMNS] [--since TIME]",
	examples: []string{"patchbay usage --since 7d", "patchbay usage audit.jsonl --by team,tool,server --since 2026-11-01 --json"},
	minor:    true,
	server:   namedServer,
	details: `Computed from the lines of the log, as the last line says. ERRORS are those of
tools and servers; DENIED are calls that a policy, a limit or a person refused.
-s SERVER selects a server; * stands for any text.`,
	command: func() command { return new(usageCmd) },
}

type usageCmd struct {
	auditlog.Lines
	By []string `placeholder:"COLUMNS" help:"Of team, tool, server, principal, client [server,tool]."`
}

// Run prints a table of the calls.
func (c *usageCmd) Run(a *app) error {
	l, err := a.auditLog(&c.Lines)
	if err != nil {
		return err
	}
	if c.By == nil {
		c.By = []string{"server", "tool"}
	}
	u, err := l.Usage(c.By)
	if err != nil {
		return auditFault(err)
	}
	if a.JSON {
		return a.printJSON(u)
	}
	a.printGrid(u.Grid())
	a.print(a.paint(a.shown(u.Source()), "2"))
	return nil
}
