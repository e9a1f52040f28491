package files

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long changes are collected before subscribers are notified.
	settle = 50 * time.Millisecond

	// patrol is the interval at which resources are checked without an event: for file
	// systems without events, and folders that come back.
	patrol = 5 * time.Second

	// maxWatched bounds the watched resources.
	maxWatched = 1000
)

// watcher watches the subscribed resources. It has one goroutine while there are any.
// It gets the system's events for the folders of the files, not for the files, so
// that a file may be replaced by another, and then looks at the file below its root.
type watcher struct {
	s      *server
	patrol time.Duration // between two checks of all resources
	warned sync.Once     // about a folder that is not watched

	mu      sync.Mutex
	by      map[string]*watched // by URI; guarded by mu
	running *patrolling         // nil while by is empty; guarded by mu
}

// watched is one resource.
type watched struct {
	uri    string
	target target
	folder string // of the file, as the system writes it
	users  int    // subscriptions; guarded by mu of the watcher

	// Used only by the goroutine.
	state   fs.FileInfo // nil: the file does not exist
	due     bool        // it must be checked
	touched bool        // the system reported a write
}

// patrolling is the goroutine of a watcher.
type patrolling struct {
	cancel context.CancelFunc
	news   chan struct{} // capacity 1; the set of resources has changed
	done   chan struct{}
}

func newWatcher(s *server) *watcher { return &watcher{s: s, patrol: patrol, by: map[string]*watched{}} }

// add watches a resource until release is called. It returns false if it cannot.
func (w *watcher) add(uri string) (release func(), ok bool) {
	fresh, ok := w.s.watch(uri)
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.by[uri]
	if r == nil {
		if !ok || len(w.by) >= maxWatched {
			return nil, false
		}
		r = fresh
		w.by[uri] = r
	}
	r.users++
	if w.running == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w.running = &patrolling{cancel, make(chan struct{}, 1), make(chan struct{})}
		go w.run(ctx, w.running)
	}
	w.running.tell()
	return sync.OnceFunc(func() { w.release(r) }), true
}

// release ends one subscription. With the last one it waits for the goroutine to end.
func (w *watcher) release(r *watched) {
	w.mu.Lock()
	if r.users--; r.users == 0 {
		delete(w.by, r.uri)
	}
	p := w.running
	if len(w.by) == 0 {
		w.running = nil
		w.mu.Unlock()
		p.cancel()
		<-p.done
		return
	}
	p.tell()
	w.mu.Unlock()
}

func (p *patrolling) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// watch starts watching the resource of a URI, if it is below a root of the server.
func (s *server) watch(uri string) (*watched, bool) {
	if len(uri) > 3*maxPath || !isFileURI(uri) {
		return nil, false
	}
	t, err := s.whole().find(uri)
	if err != nil || t.rel == "." {
		return nil, false
	}
	r := &watched{uri: uri, target: t, folder: filepath.Dir(filepath.Join(filepath.FromSlash(t.place.spellings[0]), t.name()))}
	r.state = r.look()
	return r, true
}

// look returns the state of the file, or nil if it does not exist.
func (r *watched) look() fs.FileInfo {
	info, err := r.target.place.dir.Stat(r.target.name())
	if err != nil {
		return nil
	}
	return info
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context, p *patrolling) {
	defer close(p.done)
	folders := w.listen()
	events := make(chan fsnotify.Event, maxEvents)
	lost := make(chan struct{}, 1)
	if folders != nil {
		var heard sync.WaitGroup
		heard.Go(func() { hear(folders, events, lost) })
		defer heard.Wait()
		defer folders.Close()
	}
	var mine map[string]*watched
	ticker := time.NewTicker(w.patrol)
	defer ticker.Stop()
	settled := time.NewTimer(settle)
	settled.Stop()
	defer settled.Stop()
	waiting := false
	gather := func() {
		if !waiting {
			waiting = true
			settled.Reset(settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.news:
			mine = w.current()
			w.follow(folders, mine)
			suspect(mine) // they may have changed before their folders were watched
			gather()
		case e := <-events:
			if mark(mine, e) {
				gather()
			}
		case <-lost:
			suspect(mine)
			gather()
		case <-settled.C:
			waiting = false
			w.check(ctx, mine)
		case <-ticker.C:
			for uri, r := range mine {
				if again, ok := w.s.watch(uri); ok {
					r.target = again.target // the root may have been created again
				}
			}
			w.follow(folders, mine)
			suspect(mine)
			w.check(ctx, mine)
		}
	}
}

// maxEvents is how many events may wait. Of more, each may have been about any resource.
const maxEvents = 1000

// hear passes on the events until folders is closed. On Windows no folder can be added while an
// event waits to be taken from there.
func hear(folders *fsnotify.Watcher, events chan<- fsnotify.Event, lost chan<- struct{}) {
	for {
		select {
		case e, ok := <-folders.Events:
			if !ok {
				return
			}
			select {
			case events <- e:
				continue
			default:
			}
		case _, ok := <-folders.Errors: // most say that events were lost
			if !ok {
				return
			}
		}
		select {
		case lost <- struct{}{}:
		default:
		}
	}
}

// listen subscribes to the system's events. It returns nil if there are none; patrols
// then find changes.
func (w *watcher) listen() *fsnotify.Watcher {
	folders, err := fsnotify.NewWatcher()
	if err != nil {
		w.s.log.Warn("the system does not report changes; resources are polled", "err", err)
		return nil
	}
	return folders
}

// suspect marks all resources as due.
func suspect(mine map[string]*watched) {
	for _, r := range mine {
		r.due = true
	}
}

// current returns the resources to watch.
func (w *watcher) current() map[string]*watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := make(map[string]*watched, len(w.by))
	for uri, r := range w.by {
		mine[uri] = r
	}
	return mine
}

// follow subscribes to events of the folders of the resources, and only those.
func (w *watcher) follow(folders *fsnotify.Watcher, mine map[string]*watched) {
	if folders == nil {
		return
	}
	wanted := map[string]bool{}
	for _, r := range mine {
		if r.inside() {
			wanted[r.folder] = true
		}
	}
	for _, have := range folders.WatchList() {
		if !wanted[have] {
			folders.Remove(have) // it may not exist any more
		}
		delete(wanted, have)
	}
	for folder := range wanted {
		if err := folders.Add(folder); err != nil {
			w.warned.Do(func() {
				w.s.log.Warn("folder not watched; it is polled", "folder", folder, "err", err)
			})
		}
	}
}

// inside reports whether the folder exists below its root.
func (r *watched) inside() bool {
	info, err := r.target.place.dir.Stat(filepath.Dir(r.target.name()))
	return err == nil && info.IsDir()
}

// mark marks the resources of an event, and reports whether there are any.
func mark(mine map[string]*watched, e fsnotify.Event) bool {
	marked := false
	for _, r := range mine {
		file := filepath.Join(r.folder, filepath.Base(r.target.name()))
		switch {
		case strings.EqualFold(e.Name, file): // spurious where case matters, and harmless
			r.touched = r.touched || e.Has(fsnotify.Write) || e.Has(fsnotify.Create)
		case e.Name == r.folder: // it is removed or replaced
		default:
			continue
		}
		r.due, marked = true, true
	}
	return marked
}

// check checks the resources that are due and notifies subscribers of changed ones.
func (w *watcher) check(ctx context.Context, mine map[string]*watched) {
	for _, r := range mine {
		if !r.due {
			continue
		}
		if ctx.Err() != nil {
			return
		}
		was, now := r.state, r.look()
		changed := (was == nil) != (now == nil) ||
			now != nil && (r.touched || !unchanged(was, now) || was.Mode() != now.Mode())
		r.state, r.due, r.touched = now, false, false
		if changed {
			w.s.mcp.ResourceUpdated(r.uri)
		}
	}
}
