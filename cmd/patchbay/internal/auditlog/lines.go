// Package auditlog is the work of patchbay audit and usage: it selects lines of an audit log, shows
// them to people, exports them, verifies the log, and adds up calls.
//
//	lines := auditlog.Lines{File: "audit.jsonl", Since: "7d", Outcome: "error"} // flags
//	log, err := lines.Open("jira", time.Now())
//	...
//	for e, err := range log.All() {
//
// # Guarantees
//
//   - A log is read without its lock, while other programs write to it. Rotated files beside it
//     belong to it.
//   - Lines that cannot be read, and numbers that are missing, are counted; [Log.Warnings] words
//     them. Only [Verify] finds lines that were changed.
//   - Control characters of a line do not reach the terminal.
//   - A log may be larger than memory.
package auditlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/middleware"
)

// Lines are the flags that select lines. In texts * stands for any text.
type Lines struct {
	File    string `arg:"" optional:"" help:"An audit log; default: the one of this user."`
	Since   string `placeholder:"TIME" help:"From this time on: 7d, 2h, 15:00, 2026-11-22[T15:00]."`
	Until   string `placeholder:"TIME" help:"Before this time."`
	Who     string `placeholder:"ID" help:"Only this principal."`
	Team    string `placeholder:"NAME" help:"Only this team."`
	Client  string `placeholder:"NAME" help:"Only this client program."`
	Tool    string `placeholder:"NAME" help:"Only this tool, prompt or URI; SERVER_TOOL too."`
	Rule    string `placeholder:"NAME" help:"Only decisions of this rule."`
	Outcome string `placeholder:"WORD" help:"Only this outcome, such as ok, error or 'tool error'."`
	Fault   string `placeholder:"WORD" help:"Only deadline, transport, protocol, audit, unsent or unknown."`
	Slower  string `placeholder:"TIME" help:"Only calls that took at least this long."`
	Kind    string `placeholder:"WORD" help:"Only this kind, such as call.end, denied or checkpoint."`
	Call    string `placeholder:"ID" help:"Only this call."`
}

// BadFlag is the error of a flag that cannot be understood.
type BadFlag struct{ error }

// Log is an audit log of which some lines are selected. It is for one goroutine.
type Log struct {
	Path        string
	Files       []string // in the order of their lines; without those that have only earlier lines
	Filter      audit.Filter
	Checkpoints bool // select lines of kinds checkpoint and checkpoint.other too, if the filter does

	Read     int       // lines that were read
	Selected int       // lines of those that were selected
	From, To time.Time // of the earliest and the latest of them
	Bad      int       // lines that cannot be read
	Gaps     int       // in the numbers of the lines

	near     string // a principal whose ID ends in "#" and the one that is asked for
	firstBad error
	last     int64 // number of the last line
}

// Open finds the files of the log, and the lines to select: those of a server too, if that is not
// empty. The error is a [BadFlag] if a flag is wrong, and wraps [io/fs.ErrNotExist] if there is no
// file.
func (c *Lines) Open(server string, now time.Time) (*Log, error) {
	l := &Log{Path: c.File, Checkpoints: c.Kind != "", Filter: audit.Filter{
		Kind: c.Kind, Principal: c.Who, Team: c.Team, Client: c.Client, Server: server, Tool: c.Tool, Rule: c.Rule, Outcome: c.Outcome, Fault: c.Fault, Call: c.Call,
	}}
	for _, f := range []struct {
		name, text string
		to         *time.Time
	}{{"--since", c.Since, &l.Filter.Since}, {"--until", c.Until, &l.Filter.Until}} {
		if f.text == "" {
			continue
		}
		at, ok := TimeOf(f.text, now)
		if !ok {
			return nil, BadFlag{fmt.Errorf("%s cannot be %q: write it like 2h or 7d (ago), 15:00, 2026-11-22, or 2026-11-22T15:00:00Z", f.name, f.text)}
		}
		*f.to = at
	}
	if c.Slower != "" {
		d, err := time.ParseDuration(c.Slower)
		if err != nil || d <= 0 {
			return nil, BadFlag{fmt.Errorf("--slower cannot be %q: write it like 500ms or 2s", c.Slower)}
		}
		l.Filter.Slower = d
	}
	if f := l.Filter; !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return nil, BadFlag{fmt.Errorf("--since %s is not before --until %s", f.Since.Format(stamp), f.Until.Format(stamp))}
	}
	if l.Path == "" {
		var err error
		if l.Path, err = audit.DefaultPath(); err != nil {
			return nil, err
		}
	}
	files, err := audit.Files(l.Path)
	if err != nil {
		return nil, err
	}
	l.Files = recent(files, l.Filter.Since)
	return l, nil
}

// TimeOf reads a time, or a span before now: 10m, 7d, 15:00, 2026-11-22T15:00. It is false if text is
// neither.
func TimeOf(text string, now time.Time) (time.Time, bool) {
	for unit, span := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, ok := strings.CutSuffix(text, unit)
		if n, err := strconv.ParseFloat(number, 64); ok && err == nil && n >= 0 && n < 1e4 {
			return now.Add(-time.Duration(n * float64(span))), true
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), true
	}
	if at, err := time.Parse("15:04", text); err == nil { // the last one
		y, m, d := now.Date()
		if at = time.Date(y, m, d, at.Hour(), at.Minute(), 0, 0, now.Location()); at.After(now) {
			at = at.AddDate(0, 0, -1)
		}
		return at, true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", stamp} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// disorder is how much earlier than the line before it a line may be.
const disorder = time.Minute

// recent returns the files from the one on that has the first line at or after a time.
func recent(files []string, since time.Time) []string {
	for i := len(files) - 1; i > 0 && !since.IsZero(); i-- {
		for e, err := range audit.Read(files[i]) {
			if err == nil && e.Time.Before(since.Add(-disorder)) {
				return files[i:]
			}
			break
		}
	}
	return files
}

// All returns the selected lines in order. An error is the last element.
func (l *Log) All() iter.Seq2[*audit.Entry, error] { return l.selected(audit.Read(l.Files...), nil) }

// Unended returns the begins of calls, as selected, that have no end in the log: it is not known yet, or never, what has become of them. The
// files are read twice.
func (l *Log) Unended() iter.Seq2[*audit.Entry, error] {
	return func(yield func(*audit.Entry, error) bool) {
		open := map[string]bool{}
		for e, err := range audit.Read(l.Files...) {
			switch {
			case err != nil: // is found again below
			case e.Kind == audit.CallBegin:
				open[callID(e)] = true
			case e.Kind == audit.CallEnd, e.Kind == audit.Denied:
				delete(open, callID(e))
			}
		}
		for e, err := range l.selected(audit.Read(l.Files...), func(e *audit.Entry) bool { return e.Kind == audit.CallBegin && open[callID(e)] }) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// callID joins the lines of a call.
func callID(e *audit.Entry) string { return e.Conversation + "\x00" + e.Call }

// Tail returns the last n selected lines, in order.
func (l *Log) Tail(n int) (list []*audit.Entry, err error) {
	for e, err := range l.selected(audit.Backward(l.Files...), nil) {
		if err != nil {
			return nil, err
		}
		if len(list) == n {
			break
		}
		list = append(list, e)
	}
	slices.Reverse(list)
	return list, nil
}

// Follow returns the selected lines that are written after those that Tail has seen, until ctx ends.
// It goes on after an [audit.ErrReplaced].
func (l *Log) Follow(ctx context.Context) iter.Seq2[*audit.Entry, error] {
	return l.selected(audit.Follow(ctx, l.Path, l.last), nil)
}

// selected returns the selected ones of lines, of which more selects some, unless it is nil, and the error that ends them.
func (l *Log) selected(lines iter.Seq2[*audit.Entry, error], more func(*audit.Entry) bool) iter.Seq2[*audit.Entry, error] {
	return func(yield func(*audit.Entry, error) bool) {
		before, bad := int64(0), int64(0) // number of the line before, and bad lines after it
		for e, err := range lines {
			var line *audit.LineError
			switch {
			case errors.Is(err, audit.ErrReplaced):
				before, bad = 0, 0
				if !yield(nil, err) {
					return
				}
				continue
			case errors.As(err, &line):
				l.Bad++
				bad++
				l.firstBad = cmp.Or(l.firstBad, err)
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			if step := max(e.Seq-before, before-e.Seq); before > 0 && step != 1+bad {
				l.Gaps++
			}
			before, bad = e.Seq, 0
			l.last = max(l.last, e.Seq)
			l.Read++
			if l.near == "" && l.Filter.Principal != "" && e.Principal != nil && strings.HasSuffix(e.Principal.ID, "#"+l.Filter.Principal) {
				l.near = e.Principal.ID
			}
			if !l.Filter.Match(e) || (e.Kind == audit.Checkpoint || e.Kind == audit.CheckpointOther) && !l.Checkpoints || more != nil && !more(e) {
				continue
			}
			l.Selected++
			if l.From.IsZero() || e.Time.Before(l.From) {
				l.From = e.Time
			}
			if e.Time.After(l.To) {
				l.To = e.Time
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Warnings returns what a person should know about the lines that were read.
func (l *Log) Warnings() (list []string) {
	verify := "; " + screen.Shell([]string{"patchbay", "audit", "verify", l.Path}) + " says more"
	switch {
	case l.Bad == 1:
		list = append(list, l.firstBad.Error()+verify)
	case l.Bad > 1:
		list = append(list, fmt.Sprintf("%d lines cannot be read, the first is %v%s", l.Bad, l.firstBad, verify))
	}
	if l.Gaps > 0 {
		list = append(list, fmt.Sprintf("the numbers of the lines of %s have %s%s", l.Path, screen.Quantity(l.Gaps, "gap"), verify))
	}
	if l.Selected == 0 && l.Read > 0 {
		none := fmt.Sprintf("none of the %d lines of %s is selected", l.Read, l.Path)
		for _, f := range []struct {
			flag, word string
			known      []string
		}{{"--outcome", l.Filter.Outcome, outcomes}, {"--fault", l.Filter.Fault, faults}, {"--kind", l.Filter.Kind, kinds}} {
			switch {
			case f.word == "" || has(f.known, f.word):
			case f.flag == "--outcome" && has(faults, f.word):
				none += fmt.Sprintf("; --outcome %s is a fault: use --fault %s", f.word, f.word)
			default:
				none += fmt.Sprintf("; %s %q is not known, there are %s", f.flag, f.word, strings.Join(f.known, ", "))
			}
		}
		if l.near != "" {
			none += fmt.Sprintf("; did you mean --who %s?", screen.Shell([]string{l.near}))
		}
		list = append(list, none)
	}
	return list
}

var (
	outcomes = words(middleware.OK, middleware.ToolError, middleware.Question, middleware.Task, middleware.Denied, middleware.Canceled, middleware.Failed)
	faults   = []string{"deadline", "transport", "protocol", "audit", "unsent", "unknown"}
	kinds    = words(audit.CallBegin, audit.CallRetry, audit.CallEnd, audit.TaskEnd, audit.Subscribe, audit.Unsubscribe, audit.List, audit.Denied, audit.Config, audit.Lock, audit.Node, audit.Checkpoint, audit.CheckpointOther,
		audit.Approval+"*", audit.Login+"*")
)

// has reports whether a word, in which * stands for any text, is in a list.
func has(list []string, word string) bool {
	return slices.ContainsFunc(list, func(known string) bool { return wildcard.Match(word, known) || wildcard.Match(known, word) })
}

// words returns constants as text.
func words[T ~string](list ...T) (out []string) {
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}
