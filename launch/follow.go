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

// Following holds the callbacks of [Servers.Follow]. They are called on its goroutine; nil ones are
// not called.
type Following struct {
	// Accept decides whether to use a file that can be read, because others may have changed it.
	// Nil: yes.
	Accept func(ctx context.Context, file *config.File, faults config.Problems) Decision

	Changed func(change string) // a change as Set describes it
	Warn    func(text string)   // about a file that is used
	Fault   func(text string)   // in lines; once, until the fault changes
	Right   func()              // the file is free of faults again

	// State gets the fault of a file that is not, or not all, in use, and an empty text when it is.
	// Fault and Right get what a person should read; this is for the state of the program.
	State func(fault string)
}

// Decision says whether the servers of a file are used.
type Decision struct {
	Take  bool
	Fault string          // the reason why not, in lines for people; empty: they know it
	Files []string        // other files that the decision depends on
	Later <-chan struct{} // closed when the decision is made; nil: it is made
}

// Follow reads a configuration at once, and again whenever it or an environment file that it names
// has changed, and applies its servers, until ctx ends. A file that cannot be read, or with a fault
// in the file as a whole, changes nothing; otherwise the servers without faults are used.
func (f *Servers) Follow(ctx context.Context, path string, o *Following) {
	right := o.Right
	if right == nil {
		right = func() {}
	}
	fault := o.Fault
	if fault == nil {
		fault = func(string) {}
	}
	state := o.State
	if state == nil {
		state = func(string) {}
	}
	follow.File(ctx, path, func() follow.Look {
		look := f.reread(ctx, path, o)
		if look.Fault == "" {
			state("")
		}
		return look
	}, func(text string) {
		state(text)
		fault(text)
	}, right)
}

// reread applies the servers of the file. It also returns the files to watch: the environment files
// that the file names, and those of the decision.
func (f *Servers) reread(ctx context.Context, path string, o *Following) follow.Look {
	file, bad, err := config.Inspect(path, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return follow.Look{Fault: path + " is gone; the servers are unchanged", Wrong: true}
	case err != nil:
		return follow.Look{Fault: err.Error() + "; the servers are unchanged", Wrong: true}
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
		return follow.Look{Fault: faults(whole, "the servers are unchanged"), Wrong: true, Also: also}
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
		look.Fault, look.Wrong = faults(bad, "the servers concerned are not started, or stay as they are"), true
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

// FollowLogins retries servers that need a login whenever a file in the folder of logins has
// changed, until ctx ends. Pass it the folder of Env.Vault.
func (f *Servers) FollowLogins(ctx context.Context, dir string) {
	w := follow.Start(filepath.Join(dir, "any"))
	defer w.Close()
	changed := func() (at time.Time) {
		if info, err := os.Stat(dir); err == nil {
			at = info.ModTime() // changes of names in it: files are replaced
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
