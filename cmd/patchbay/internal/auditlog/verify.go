package auditlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Check says which log to verify, or which logs of nodes together. Its fields are flags.
type Check struct {
	Files   []string `arg:"" optional:"" name:"file" help:"A log, all its files, or the logs of several nodes; default: the log of this user."`
	Key     []string `sep:"none" placeholder:"FILE" help:"Check with this public key (PEM); of several logs one each."`
	Earlier []string `sep:"none" placeholder:"FILE" help:"Public keys that signed before that of --key (repeatable)."`
	Kept    []string `sep:"none" placeholder:"FILE" help:"Lines kept elsewhere, which the log must have (repeatable)."`
	Without []string `sep:"none" placeholder:"NODE" help:"A node, or a log by its id, that is left out (repeatable)."`
	Copied  string   `placeholder:"TIME" help:"When copying of the logs began: later lines may be missing."`
}

// Verdict is the outcome for each log.
type Verdict []Verified

// Verified is the outcome for one log.
type Verified struct {
	File  string `json:"file"` // of the log
	Whole bool   `json:"whole"`
	*audit.Report

	signed bool // its checkpoints were checked
}

// Whole reports whether no log has a fault.
func (v Verdict) Whole() bool {
	return !slices.ContainsFunc(v, func(one Verified) bool { return !one.Whole })
}

// JSON returns the form for programs.
func (v Verdict) JSON() any {
	if len(v) > 1 {
		return struct {
			Whole bool    `json:"whole"`
			Logs  Verdict `json:"logs"`
		}{v.Whole(), v}
	}
	return struct {
		Whole bool `json:"whole"`
		*audit.Report
	}{v.Whole(), v[0].Report}
}

// Verify verifies the logs. One file stands for a log with its rotated files; several of one log are all that
// is verified of it. Files of several logs are verified together. The error is a [BadFlag] if the flags do not fit.
func (c *Check) Verify() (Verdict, error) {
	logs, err := c.logs()
	if err != nil {
		return nil, err
	}
	several := len(logs) > 1
	switch {
	case len(c.Key) == 0 && len(c.Earlier) > 0:
		return nil, BadFlag{errors.New("--earlier needs --key: the public key that signs now")}
	case len(c.Key) > 1 && len(c.Key) != len(logs):
		return nil, BadFlag{fmt.Errorf("there are %d --key for %s: give one for all, or one for each in their order; keys that signed before are --earlier", len(c.Key), screen.Quantity(len(logs), "log"))}
	case several && len(c.Kept) > 0:
		return nil, BadFlag{errors.New("--kept is for one log: verify that one alone")}
	case !several && len(c.Without) > 0 || !several && c.Copied != "":
		return nil, BadFlag{errors.New("--without and --copied are for several logs: name the logs of the other nodes too")}
	}
	together := &audit.TogetherOptions{Without: c.Without}
	if c.Copied != "" {
		at, ok := TimeOf(c.Copied, time.Now())
		if !ok {
			return nil, BadFlag{fmt.Errorf("--copied cannot be %q: write it like 2h (ago), 15:00, or 2026-11-22T15:00:00Z", c.Copied)}
		}
		together.Copied = at
	}
	var list []audit.NodeLog
	for i, files := range logs {
		o, err := c.options(i)
		if err != nil {
			return nil, err
		}
		list = append(list, audit.NodeLog{Files: files, Options: o})
	}
	var reports []*audit.Report
	if several {
		reports, err = audit.VerifyTogether(list, together)
	} else {
		reports = make([]*audit.Report, 1)
		reports[0], err = audit.Verify(logs[0], list[0].Options)
	}
	if err != nil {
		return nil, err
	}
	var out Verdict
	for i, r := range reports {
		path := logs[i][len(logs[i])-1]
		if len(c.Files) == 1 {
			path = c.Files[0] // which may be missing
		}
		if r.Lines > 0 && !readable(logs[i]) {
			return nil, fmt.Errorf("%s is not an audit log: none of its %d lines is one; the first: %s", path, r.Lines, r.Faults[0].Text)
		}
		out = append(out, Verified{path, r.Whole(), r, list[i].Options.Key != nil})
	}
	return out, nil
}

// options returns how to verify a log.
func (c *Check) options(i int) (o *audit.VerifyOptions, err error) {
	o = &audit.VerifyOptions{}
	if len(c.Key) > 0 {
		if o.Key, err = audit.LoadPublicKey(c.Key[min(i, len(c.Key)-1)]); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Earlier {
		key, err := audit.LoadPublicKey(name)
		if err != nil {
			return nil, err
		}
		o.Earlier = append(o.Earlier, key)
	}
	for e, err := range audit.Read(c.Kept...) {
		if err != nil {
			return nil, fmt.Errorf("--kept: %w", err)
		}
		o.Heads = append(o.Heads, audit.Head{Seq: e.Seq, Hash: e.Hash})
	}
	if len(c.Kept) > 0 && o.Heads == nil {
		return nil, BadFlag{fmt.Errorf("--kept: %s has no lines of an audit log", strings.Join(c.Kept, " "))}
	}
	return o, nil
}

// readable reports whether a line of the files can be read.
func readable(files []string) bool {
	for _, err := range audit.Backward(files...) {
		if err == nil {
			return true
		}
	}
	return false
}

// logs returns the files of each log in the order of their lines.
func (c *Check) logs() ([][]string, error) {
	if len(c.Files) < 2 {
		path := strings.Join(c.Files, "")
		if path == "" {
			var err error
			if path, err = audit.DefaultPath(); err != nil {
				return nil, err
			}
		}
		files, err := audit.Files(path)
		return [][]string{files}, err
	}
	first := map[string]int64{} // number of the first line of a file
	var ids []string            // of logs
	of := map[string][]string{} // files by the id of their log
	for _, name := range c.Files {
		id := ""
		for e, err := range audit.Read(name) {
			var line *audit.LineError
			if err != nil && !errors.As(err, &line) {
				return nil, err
			}
			if err == nil {
				first[name], id = e.Seq, idOf(e)
			}
			break
		}
		if id == "" { // it is older than ids, or was changed: see below
			id = "\x00" + name
		}
		if of[id] == nil {
			ids = append(ids, id)
		}
		of[id] = append(of[id], name)
	}
	known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id[0] == 0 })
	if len(known) < 2 {
		files, err := sorted(c.Files, first)
		return [][]string{files}, err
	}
	var logs [][]string
	for _, id := range ids {
		files, err := sorted(of[id], first)
		if err == nil && len(files) == 1 {
			files, err = audit.Files(files[0])
		}
		if err != nil {
			return nil, err
		}
		logs = append(logs, files)
	}
	return logs, nil
}

// idOf returns the id of a log, as the first line of a file has it; empty: it has none.
func idOf(e *audit.Entry) string {
	var d struct{ Log string }
	if e.Kind == audit.Node && e.Detail != nil {
		_ = json.Unmarshal(e.Detail, &d) // without one it has none
	}
	return d.Log
}

// sorted returns files of one log in the order of their lines.
func sorted(files []string, first map[string]int64) ([]string, error) {
	files = slices.Clone(files)
	if !slices.ContainsFunc(files, func(name string) bool { return first[name] == 0 }) { // else somebody changed them, and Verify says more in the order given
		slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(first[a], first[b]) })
	}
	if len(files) > 1 && first[files[0]] == 1 && first[files[1]] == 1 {
		return nil, BadFlag{fmt.Errorf("%s and %s are two logs, since each has a line 1: verify them one by one", files[0], files[1])}
	}
	return files, nil
}

// maxShown is the number of faults for people; --json has all.
const maxShown = 50

// Lines words the outcome for people. The function paint colours text.
func (v Verdict) Lines(paint func(s, style string) string) (out []string) {
	var absent, cut bool
	for _, one := range v {
		out = append(out, one.lines(paint)...)
		absent = absent || slices.ContainsFunc(one.Faults, func(f audit.Fault) bool {
			return f.Kind == audit.NotGiven || f.Kind == audit.Replaced && f.Seq == one.First
		})
		cut = cut || slices.ContainsFunc(one.Faults, func(f audit.Fault) bool { return f.Kind == audit.Cut })
	}
	if absent {
		out = append(out, "a log that is left out on purpose is named with --without: its node or its id")
	}
	if cut && len(v) > 1 {
		out = append(out, "if the logs were copied one after another while they were written, say when that began: --copied TIME")
	}
	return out
}

func (v *Verified) lines(paint func(s, style string) string) (out []string) {
	r := v.Report
	add := func(list []audit.Fault, label, style string) {
		for i, f := range list {
			if i == maxShown {
				out = append(out, fmt.Sprintf("… %d more; --json lists them", len(list)-maxShown+r.More))
				break
			}
			where := fmt.Sprintf("%s:%d: ", f.File, f.Line)
			if f.Seq > 0 {
				where += fmt.Sprintf("line %d of the log: ", f.Seq)
			}
			out = append(out, where+paint(label+string(f.Kind), style)+": "+f.Text)
		}
	}
	add(r.Faults, "", "31")
	add(r.Notes, "note: ", "33")
	state := paint("is whole", "32")
	if !r.Whole() {
		state = paint("has "+screen.Quantity(len(r.Faults)+r.More, "fault"), "31")
	}
	text := fmt.Sprintf("%s %s: %d lines in %s", v.File, state, r.Lines, screen.Quantity(r.Files, "file"))
	if r.Last > 0 {
		text += fmt.Sprintf(", numbers %d to %d", r.First, r.Last)
	}
	switch checkpoints := screen.Quantity(r.Checkpoints, "checkpoint"); {
	case r.Checkpoints == 0 && !v.signed:
		text += ", not signed"
	case !v.signed:
		text += ", " + checkpoints + " not checked (--key FILE)"
	default:
		text += ", " + checkpoints
	}
	if r.Agreed > 0 {
		text += fmt.Sprintf(", %d as other logs have noted them", r.Agreed)
	}
	if r.Log != "" {
		text += ", log " + screen.OneLine(r.Log)
	}
	out = append(out, text)
	if r.Checkpoints > 0 && r.Unsigned > 0 {
		out = append(out, fmt.Sprintf("not signed: %s after the last checkpoint (%s)", screen.Quantity(int(r.Unsigned), "line"), r.Signed.Local().Format(stamp)))
	}
	return out
}
