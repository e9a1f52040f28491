package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
)

const (
	// Editors write in several steps.
	settleTime = 150 * time.Millisecond

	// A file with faults may be one that is half written, if it changes again in so long.
	halfWritten = time.Second

	// What the system does not tell, as on some network folders, is seen so late.
	lookAgain = 10 * time.Second
)

// follow reads the configuration again whenever it has changed, and changes the
// servers to what it says, until ctx ends. A file with faults, or none, changes nothing.
func (h *hub) follow(ctx context.Context, path string) {
	defer func() { h.withdraw() }()
	h.a.follow(ctx, path, func() news { return h.reread(ctx, path) })
}

// news are what a look at a file has shown.
type news struct {
	fault string          // in lines for people; empty: there is none
	wrong bool            // the fault is one of the file, and not of those who may use it
	also  []string        // other files that count
	again <-chan struct{} // closed when it is time for another look; nil: only files say that
}

// follow calls reread at once, and whenever a file may have changed, until ctx ends. It tells
// people of a fault that is new, and when the file has none any more.
func (a *app) follow(ctx context.Context, path string, reread func() news) {
	w := watchFile(path)
	defer w.close()
	var told news // what was said of the file
	for ctx.Err() == nil {
		n := reread()
		w.also, w.again = n.also, n.again
		switch {
		case n.fault != "" && n.fault != told.fault:
			if w.wait(ctx, halfWritten) {
				continue
			}
			a.talk.always(n.fault)
		case n.fault == "" && n.again == nil && told.wrong:
			a.talk.note("%s is right again", path)
		}
		if n.again == nil {
			told = n
		} else { // the person has yet to say whether there is a fault, and is told of it then
			told.fault = ""
		}
		w.wait(ctx, lookAgain)
	}
}

// reread makes the servers those of the file, and tells what that changed. If there is a fault about
// the file as a whole, or nobody has said yes to the file, nothing was changed, and else the servers
// that it is not about were. The other files that count are those that the file names as an
// environment, and what is trusted.
func (h *hub) reread(ctx context.Context, path string) news {
	file, bad, err := config.Inspect(path, nil)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return news{fault: "patchbay: " + path + " is gone; everything stays as it is", wrong: true}
	case err != nil:
		return news{fault: "patchbay: " + visible(err.Error()) + "; everything stays as it is", wrong: true}
	}
	var also []string
	for _, s := range file.Servers {
		if s.EnvFile != "" {
			also = append(also, s.EnvFile)
		}
	}
	faults := func(list config.Problems, stays string) string {
		text := "patchbay: " + path + " has faults; " + stays
		for _, p := range list {
			text += "\n  " + visible(p.String())
		}
		return text
	}
	whole := slices.DeleteFunc(slices.Clone(bad), func(p config.Problem) bool { return p.Server != "" || p.Model != "" })
	if len(whole) > 0 {
		return news{fault: faults(whole, "everything stays as it is"), wrong: true, also: also}
	}
	taken, n := h.takes(ctx, file, bad)
	n.also = append(n.also, also...)
	if !taken {
		return n
	}
	faulty := faultyServers(bad)
	if len(faulty) > 0 {
		n.fault, n.wrong = faults(bad, "the servers that they are about are not started, or stay as they are"), true
	}
	changes := h.fleet.set(enabledServers(file), faulty, file.Share)
	if len(changes) > 0 {
		for _, w := range file.Warnings {
			h.a.talk.note("warning: %s", w)
		}
	}
	for _, change := range changes {
		h.a.talk.note("%s", change)
		if name, gone := strings.CutPrefix(change, "- "); gone {
			h.board.forget(name)
		}
	}
	return n
}

// followLogins has servers that need a login tried again when another process has changed what
// the vault keeps, until ctx ends.
func (h *hub) followLogins(ctx context.Context) {
	v, err := vault.Open("", nil)
	if err != nil {
		return // nobody can log in
	}
	w := watchFile(filepath.Join(v.Dir(), "any"))
	defer w.close()
	changed := func() (at time.Time) {
		if info, err := os.Stat(v.Dir()); err == nil {
			at = info.ModTime() // of a name in it: files are replaced
		}
		return at
	}
	for before := changed(); ctx.Err() == nil; w.wait(ctx, lookAgain) {
		now := changed()
		if now.Equal(before) {
			continue
		}
		before = now
		for _, s := range h.gateway.Status() {
			if s.State == gateway.NeedsLogin {
				h.gateway.Retry(s.Name)
			}
		}
	}
}

// fileWatch tells that a file may have changed: itself, what it links to, or its name; or one
// of others. Folders that were looked at once still are.
type fileWatch struct {
	path    string
	also    []string
	again   <-chan struct{}   // closed: the wait is over; nil: it never is for that
	watcher *fsnotify.Watcher // nil if the system does not tell
}

func watchFile(path string) *fileWatch {
	w := &fileWatch{path: path}
	w.watcher, _ = fsnotify.NewWatcher() // without one there is lookAgain
	return w
}

func (w *fileWatch) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// wait waits until something has happened in the folder of the file, and that has
// settled, but not for longer than d; false if nothing has.
func (w *fileWatch) wait(ctx context.Context, d time.Duration) bool {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.watcher != nil {
		events, faults = w.watcher.Events, w.watcher.Errors
		// Folders, since a file may be replaced. They may have come anew.
		for _, path := range append([]string{w.path}, w.also...) {
			w.watcher.Add(filepath.Dir(path))
			if target, err := filepath.EvalSymlinks(path); err == nil {
				w.watcher.Add(filepath.Dir(target))
			}
		}
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-events:
	case <-faults: // some events were lost
	case <-w.again:
		return true
	case <-late.C:
		return false
	case <-ctx.Done():
		return false
	}
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	for {
		select {
		case <-events:
		case <-faults:
		case <-settled.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
