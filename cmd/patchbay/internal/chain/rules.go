package chain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/follow"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// ruleFile is a policy that follows its file.
type ruleFile struct {
	path    string
	set     atomic.Pointer[rules.Set]
	content []byte // the text of set; only used by the goroutine that rereads the file

	counters *metrics.Counters // of decisions; nil: none

	asked func(set *rules.Set, a *policy.Access) // of Config; nil: none
}

const helpPolicy = "patchbay help policy"

// openRules reads the file of a policy.
func openRules(path string) (*ruleFile, error) {
	f := &ruleFile{path: path}
	var bad rules.Problems
	if _, err := f.read(); err != nil && !errors.As(err, &bad) {
		return nil, &Error{Err: fmt.Errorf("--policy: %w", err), Next: helpPolicy}
	} else if err != nil {
		return nil, &Error{Err: err, Next: helpPolicy}
	}
	return f, nil
}

// read rereads the file, and reports whether it has changed.
func (f *ruleFile) read() (changed bool, err error) {
	content, err := ownfile.ReadNow(f.path, yamlfile.MaxBytes)
	if err != nil || f.set.Load() != nil && string(content) == string(f.content) {
		return false, err
	}
	set, err := rules.Parse(f.path, content)
	if err != nil {
		return false, err
	}
	f.content = content
	f.set.Store(set)
	return true, nil
}

// Admits reports whether a rule of the policy lets the caller of ctx open the page of this program.
func (c *Chain) Admits(ctx context.Context) bool {
	return c.rules != nil && c.rules.set.Load().Page(ctx, auth.From(ctx))
}

// Decide decides by the current rules.
func (f *ruleFile) Decide(ctx context.Context, a *policy.Access) policy.Decision {
	set := f.set.Load()
	if f.asked != nil {
		f.asked(set, a)
	}
	return set.Decide(ctx, a)
}

// Version identifies the current rules.
func (f *ruleFile) Version() any { return f.set.Load() }

// Decided counts a decision about a request.
func (f *ruleFile) Decided(d policy.Decision) {
	if f.counters != nil {
		f.counters.Decided(d.Allow, d.Rule)
	}
}

// Digest identifies the current rules in logs.
func (f *ruleFile) Digest() string { return f.set.Load().Digest() }

// followRules follows the file of the rules until ctx ends, and calls changed when the rules have changed.
// A faulty or missing file changes nothing.
func (c *Chain) followRules(ctx context.Context, changed func()) {
	f := c.rules
	c.follow(ctx, f.path, func() follow.Look {
		other, err := f.read()
		if err != nil {
			return faulty(f.path, "the policy is unchanged", err)
		}
		if other {
			c.program.Talk.Note("%s: now %s", f.path, screen.Quantity(f.set.Load().Len(), "rule"))
			changed()
		}
		return follow.Look{}
	})
}

// faulty returns the look at a file that cannot be used.
func faulty(path, unchanged string, err error) follow.Look {
	text := "patchbay: "
	var bad yamlfile.Problems
	switch {
	case errors.As(err, &bad):
		text += path + " has faults; " + unchanged
		for _, p := range bad {
			text += "\n  " + screen.Visible(p.String())
		}
	case errors.Is(err, fs.ErrNotExist):
		text += path + " is gone; " + unchanged
	default:
		text += screen.Visible(err.Error()) + "; " + unchanged
	}
	return follow.Look{Fault: text, Wrong: true}
}

// Rules returns the policy that is in use, and its file; nil: there is none.
func (c *Chain) Rules() (set *rules.Set, file string) {
	if c.rules == nil {
		return nil, ""
	}
	return c.rules.set.Load(), c.rules.path
}
