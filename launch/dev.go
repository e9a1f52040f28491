package launch

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/follow"
	"github.com/patchbay-dev/patchbay/internal/freeport"
)

const (
	// Build tools write many files: a server is restarted when none has changed for quietTime, or
	// when files change for longer than busyTime.
	quietTime = 400 * time.Millisecond
	busyTime  = 10 * time.Second

	// A server may write to its own sources when it starts: after maxRestarts within restartTime,
	// the next restart waits until that time is over.
	maxRestarts = 5
	restartTime = 30 * time.Second

	// maxFolders bounds the folders that are watched for one server.
	maxFolders = 2000
)

// notSources are folders without sources.
var notSources = []string{".git", "node_modules", "__pycache__"}

// stamp differs when a file has changed.
type stamp struct {
	size int64
	at   time.Time
}

// sources are the files that "dev.watch" of a server names.
type sources struct {
	dev     config.Dev
	files   map[string]stamp // by name, relative to dev.Dir
	folders []string         // absolute
	tooMany bool             // there are more folders than maxFolders
}

// newSources returns the sources as they are now.
func newSources(dev config.Dev) *sources {
	s := &sources{dev: dev}
	s.look()
	return s
}

// look reads the times of all files. It returns a file that has changed since the last look, was
// added or removed; empty: there is none.
func (s *sources) look() (changed string) {
	before := s.files
	s.files, s.folders, s.tooMany = map[string]stamp{}, []string{s.dev.Dir}, false
	for _, pattern := range s.dev.Watch {
		if !strings.HasPrefix(pattern, "!") {
			s.walk(pattern)
		}
	}
	slices.Sort(s.folders)
	s.folders = slices.Compact(s.folders)
	if s.tooMany = s.tooMany || len(s.folders) > maxFolders; s.tooMany {
		s.folders = s.folders[:min(len(s.folders), maxFolders)]
	}
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if was, ok := before[name]; !ok || !was.at.Equal(s.files[name].at) || was.size != s.files[name].size {
			changed = cmp.Or(changed, name)
		}
		delete(before, name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) { // removed files
		changed = cmp.Or(changed, name)
	}
	return changed
}

// walk adds the files of a pattern and the folders that may have some.
func (s *sources) walk(pattern string) {
	base, rest := doublestar.SplitPattern(pattern)
	deep := strings.Contains(rest, "**")
	root := filepath.Join(s.dev.Dir, filepath.FromSlash(base))
	folders := 0
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // faults: files that do not exist yet
		switch {
		case err != nil:
			return nil
		case entry.IsDir():
			below, err := filepath.Rel(root, path)
			depth := strings.Count(filepath.ToSlash(below), "/") + 1
			if err != nil || path != root && (slices.Contains(notSources, entry.Name()) || !deep && depth > strings.Count(rest, "/")) {
				return fs.SkipDir
			}
			if folders++; folders > maxFolders {
				s.tooMany = true
				return fs.SkipAll
			}
			s.folders = append(s.folders, path)
			return nil
		}
		name, err := filepath.Rel(s.dev.Dir, path)
		if name = filepath.ToSlash(name); err != nil || !doublestar.MatchUnvalidated(pattern, name) || s.excludes(name) {
			return nil
		}
		if info, err := os.Stat(path); err == nil && !info.IsDir() { // of the file that a link leads to
			s.files[name] = stamp{info.Size(), info.ModTime()}
		}
		return nil
	})
}

func (s *sources) excludes(name string) bool {
	return slices.ContainsFunc(s.dev.Watch, func(p string) bool {
		p, excludes := strings.CutPrefix(p, "!")
		return excludes && doublestar.MatchUnvalidated(p, name)
	})
}

// changed waits for a change and for its end, and returns the name of a changed file; empty: ctx
// has ended.
func (s *sources) changed(ctx context.Context) string {
	watch := follow.Start(filepath.Join(s.dev.Dir, "any"))
	defer watch.Close()
	for ctx.Err() == nil {
		// A file that changed before its folder was watched is found by this look.
		s.watch(watch)
		if name := s.look(); name != "" {
			for until := time.Now().Add(busyTime); watch.Wait(ctx, quietTime) && time.Now().Before(until); {
			}
			return name
		}
		if s.watch(watch); ctx.Err() == nil {
			watch.Wait(ctx, follow.LookAgain)
		}
	}
	return ""
}

func (s *sources) watch(w *follow.Watch) {
	files := make([]string, len(s.folders))
	for i, folder := range s.folders {
		files[i] = filepath.Join(folder, "any")
	}
	w.Also(files...)
}

// restartOnChange restarts a server when its sources change, until ctx ends.
func (f *Servers) restartOnChange(ctx context.Context, s *server, sources *sources) {
	if sources.tooMany {
		f.note(`%s: "watch" names files in more than %d folders; changes in further ones restart nothing: name fewer folders`, s.Name, maxFolders)
	}
	name := sources.changed(ctx)
	if ctx.Err() != nil {
		return
	}
	recent := slices.DeleteFunc(slices.Clone(s.restarts), func(at time.Time) bool { return time.Since(at) > restartTime })
	if len(recent) >= maxRestarts {
		wait := restartTime - time.Since(recent[0])
		f.note("%s: %s has changed; the next restart is in %v, after %d within %v: does the server write to its own sources?",
			s.Name, name, wait.Round(time.Second), len(recent), restartTime)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.list, s)
	if i < 0 || ctx.Err() != nil { // the configuration has changed
		return
	}
	f.note("%s: restarting, because %s has changed", s.Name, name)
	f.list[i] = f.start(s.Server, s.older, s.fault, append(recent, time.Now()), false)
	<-f.list[i].ready
	s.end()
}

// debugged returns an entry as it is started under the debugger that it names, and the debugger's
// address; empty: none.
func (f *Servers) debugged(s config.Server) (out config.Server, address string, err error) {
	if !f.Dev || s.Command == "" || s.Dev.Debug == "" {
		return s, "", nil
	}
	resolved, err := f.Env.Resolve(s) // arguments move below, and inputs know their places
	if err != nil {
		return s, "", nil // opening s returns the error in the form for others
	}
	s = resolved
	if !s.Dev.Debugs(s.Command) {
		return s, "", fmt.Errorf("%s cannot debug the command %q; correct it, or remove \"debug\"", s.Dev.Debug, s.Command)
	}
	if address, err = freeport.Addr(); err != nil {
		return s, "", err
	}
	if s.Dev.Debug == "node" {
		s.Args = append([]string{"--inspect=" + address}, s.Args...)
	} else {
		n := pythonOptions(s.Args)
		s.Args = slices.Concat(s.Args[:n], []string{"-m", "debugpy", "--listen", address}, s.Args[n:])
	}
	if s.CallTimeout == 0 {
		s.CallTimeout = -1 // a breakpoint may take any time
	}
	return s, address, nil
}

// pythonOptions returns the number of arguments that are options of Python itself.
func pythonOptions(args []string) (n int) {
	for n < len(args) && len(args[n]) > 1 && args[n][0] == '-' && args[n] != "-m" && args[n] != "-c" {
		if args[n] == "-W" || args[n] == "-X" { // the next one is its value
			n++
		}
		n++
	}
	return min(n, len(args))
}

// Debuggers returns the addresses of the debuggers of a server's processes, in order.
func (f *Servers) Debuggers(name string) []string {
	f.mu.Lock()
	i := slices.IndexFunc(f.list, func(s *server) bool { return s.Name == name })
	if i < 0 {
		f.mu.Unlock()
		return nil
	}
	s := f.list[i]
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.debug))
}
