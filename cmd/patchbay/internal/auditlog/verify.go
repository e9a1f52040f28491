package auditlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Check says which log to verify. Its fields are flags.
type Check struct {
	Files   []string `arg:"" optional:"" name:"file" help:"A log, or all its files; default: the log of this user."`
	Key     string   `placeholder:"FILE" help:"Check the checkpoints with this public key (PEM)."`
	Earlier []string `sep:"none" placeholder:"FILE" help:"Public keys that signed before that of --key (repeatable)."`
	Kept    []string `sep:"none" placeholder:"FILE" help:"Lines kept elsewhere, which the log must have (repeatable)."`

	path string // of the log
}

// Verify verifies the log. One file stands for the log with its rotated files; several are all that
// is verified. The error is a [BadFlag] if the files belong to several logs.
func (c *Check) Verify() (*audit.Report, error) {
	files, err := c.files()
	if err != nil {
		return nil, err
	}
	o := &audit.VerifyOptions{}
	if c.Key != "" {
		if o.Key, err = audit.LoadPublicKey(c.Key); err != nil {
			return nil, err
		}
	} else if len(c.Earlier) > 0 {
		return nil, BadFlag{errors.New("--earlier needs --key: the public key that signs now")}
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
	if c.path = files[len(files)-1]; len(c.Files) == 1 {
		c.path = c.Files[0] // which may be missing
	}
	r, err := audit.Verify(files, o)
	if err == nil && r.Lines > 0 && !c.readable(files) {
		return nil, fmt.Errorf("%s is not an audit log: none of its %d lines is one; the first: %s", c.path, r.Lines, r.Faults[0].Text)
	}
	return r, err
}

// readable reports whether a line of the files can be read.
func (c *Check) readable(files []string) bool {
	for _, err := range audit.Backward(files...) {
		if err == nil {
			return true
		}
	}
	return false
}

// files returns the files of the log in the order of their lines.
func (c *Check) files() ([]string, error) {
	switch len(c.Files) {
	case 0:
		path, err := audit.DefaultPath()
		if err != nil {
			return nil, err
		}
		return audit.Files(path)
	case 1:
		return audit.Files(c.Files[0])
	}
	first := map[string]int64{} // number of the first line of a file
	for _, name := range c.Files {
		for e, err := range audit.Read(name) {
			var line *audit.LineError
			if err != nil && !errors.As(err, &line) {
				return nil, err
			}
			if err == nil {
				first[name] = e.Seq
			}
			break
		}
	}
	files := slices.Clone(c.Files)
	if len(first) == len(files) { // else somebody changed them, and Verify says more in the order given
		slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(first[a], first[b]) })
	}
	if a, b := files[0], files[1]; first[a] == 1 && first[b] == 1 {
		return nil, BadFlag{fmt.Errorf("%s and %s are two logs, since each has a line 1: verify them one by one", a, b)}
	}
	return files, nil
}

// maxShown is the number of faults for people; --json has all.
const maxShown = 50

// Lines words a report for people. The function paint colours text.
func (c *Check) Lines(r *audit.Report, paint func(s, style string) string) (out []string) {
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
	text := fmt.Sprintf("%s %s: %d lines in %s", c.path, state, r.Lines, screen.Quantity(r.Files, "file"))
	if r.Last > 0 {
		text += fmt.Sprintf(", numbers %d to %d", r.First, r.Last)
	}
	switch checkpoints := screen.Quantity(r.Checkpoints, "checkpoint"); {
	case r.Checkpoints == 0 && c.Key == "":
		text += ", not signed"
	case c.Key == "":
		text += ", " + checkpoints + " not checked (--key FILE)"
	default:
		text += ", " + checkpoints
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
