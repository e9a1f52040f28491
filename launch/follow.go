package launch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/follow"
)

// Following says what happens when a file that is followed has changed. Its functions are called on the
// goroutine of [Servers.Follow]; nil ones are not.
type Following struct {
	// Accept says whether a file is taken that can be read, as others may have changed it. Nil: it is.
	Accept func(ctx context.Context, file *config.File, faults config.Problems) Decision

	Changed func(change string) // as Set tells changes
	Warn    func(text string)   // about a file that is taken
	Fault   func(text string)   // in lines; once, until it is another
	Right   func()              // the file has no fault any more
}

// Decision says whether the servers of a file are taken.
type Decision struct {
	Take  bool
	Fault string          // why not, in lines for people; empty: they know
	Files []string        // that the decision depends on
	Later <-chan struct{} // closed when there is a decision; nil: this is one
}

// Follow reads a configuration at once, and again whenever it or an environment file that it names has
// changed, and makes the servers those of the file, until ctx ends. A file that cannot be read, or with a
// fault about the whole, changes nothing; else servers without faults are taken.
func (f *Servers) Follow(ctx context.Context, path string, o *Following) {
	right := o.Right
	if right == nil {
		right = func() {}
	}
	fault := o.Fault
	if fault == nil {
		fault = func(string) {}
	}
	follow.File(ctx, path, func() follow.Look { return f.reread(ctx, path, o) }, fault, right)
}

// reread makes the servers those of the file. The other files that count are those that the file names as
// an environment, and those of the decision.
func (f *Servers) reread(ctx context.Context, path string, o *Following) follow.Look {
	file, bad, err := config.Inspect(path, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return follow.Look{Fault: path + " is gone; everything stays as it is", Wrong: true}
	case err != nil:
		return follow.Look{Fault: err.Error() + "; everything stays as it is", Wrong: true}
	}
	var also []string
	for _, s := range file.Servers {
		if s.EnvFile != "" {
			also = append(also, s.EnvFile)
		}
	}
	faults := func(list config.Problems, stays string) string {
		text := path + " has faults; " + stays
		for _, p := range list {
			text += "\n  " + p.String()
		}
		return text
	}
	whole := slices.DeleteFunc(slices.Clone(bad), func(p config.Problem) bool { return p.Server != "" || p.Model != "" })
	if len(whole) > 0 {
		return follow.Look{Fault: faults(whole, "everything stays as it is"), Wrong: true, Also: also}
	}
	decision := Decision{Take: true}
	if o.Accept != nil {
		decision = o.Accept(ctx, file, bad)
	}
	look := follow.Look{Fault: decision.Fault, Also: append(decision.Files, also...), Again: decision.Later}
	if !decision.Take {
		return look
	}
	faulty := FaultyServers(bad)
	if len(faulty) > 0 {
		look.Fault, look.Wrong = faults(bad, "the servers that they are about are not started, or stay as they are"), true
	}
	changes := f.Set(Enabled(file), faulty, file.Share)
	if len(changes) > 0 && o.Warn != nil {
		for _, w := range file.Warnings {
			o.Warn(w.String())
		}
	}
	if o.Changed != nil {
		for _, change := range changes {
			o.Changed(change)
		}
	}
	return look
}

// FollowLogins tries servers that need a login again whenever a file in the folder of logins has changed,
// until ctx ends. Dir is that of Env.Vault.
func (f *Servers) FollowLogins(ctx context.Context, dir string) {
	w := follow.Start(filepath.Join(dir, "any"))
	defer w.Close()
	changed := func() (at time.Time) {
		if info, err := os.Stat(dir); err == nil {
			at = info.ModTime() // of a name in it: files are replaced
		}
		return at
	}
	for before := changed(); ctx.Err() == nil; w.Wait(ctx, follow.LookAgain) {
		now := changed()
		if now.Equal(before) {
			continue
		}
		before = now
		for _, s := range f.Gateway.Status() {
			if s.State == gateway.NeedsLogin {
				f.Gateway.Retry(s.Name)
			}
		}
	}
}
