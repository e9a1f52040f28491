package inspector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/trace/record"
)

// Bounds of the files of [Page.Files]. The frames of one of them are in memory at a time, until nobody has looked for a while.
const (
	fileFrames = 200_000
	fileBytes  = 64 << 20
	fileTime   = 10 * time.Minute
	maxFiles   = 1000 // in a list
)

const (
	maxPolicy = 256 << 10        // bytes of the body of /ui/judge
	judgeTime = 30 * time.Second // for the calls of a recording
)

// Answer is an answer that the page shows as a table.
type Answer struct {
	Summary string     `json:"summary"`         // a sentence
	Notes   []string   `json:"notes,omitempty"` // what makes it uncertain, or is missing
	Columns []string   `json:"columns"`         // the name of one with numbers begins with #
	Rows    [][]string `json:"rows"`            // a cell that begins with ! stands out
}

// library has the frames of the file that somebody looks at.
type library struct {
	mu     sync.Mutex
	path   string  // guarded by mu
	size   int64   // of the file when it was read; guarded by mu
	frames *Frames // nil: none; guarded by mu
	ends   *time.Timer
}

// recordingFile is a file of the folder, as the page gets it.
type recordingFile struct {
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"`             // of the last frame, about
	Mock  string    `json:"mock,omitempty"` // the command that serves it
}

func (p *Page) routeRecordings() {
	p.mux.Handle("GET /ui/recordings", p.adminOnly(answered(p.recordings)))
	for pattern, of := range map[string]func(w http.ResponseWriter, r *http.Request) (any, error){"POST /ui/judge": p.judge, "POST /ui/replay": p.replay} {
		p.mux.Handle(pattern, p.adminOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answered(func(r *http.Request) (any, error) { return of(w, r) }).ServeHTTP(w, r)
		})))
	}
}

// recordings answers with the files of the folder, the newest first.
func (p *Page) recordings(*http.Request) (any, error) {
	out := struct {
		Folder string          `json:"folder,omitempty"` // empty: nothing is recorded
		Mock   string          `json:"mock,omitempty"`   // serves the recording that the page shows
		Files  []recordingFile `json:"files"`
		Left   int             `json:"left,omitempty"` // older files
	}{Mock: mockCommand(p.Recording), Files: []recordingFile{}}
	if p.Files == "" {
		return out, nil
	}
	paths, err := record.Files(p.Files)
	if err != nil {
		return nil, fail(http.StatusConflict, "the folder of the recordings cannot be read: %v", err)
	}
	out.Folder = shown(p.Files)
	slices.Reverse(paths)
	if over := len(paths) - maxFiles; over > 0 {
		paths, out.Left = paths[:maxFiles], over
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			out.Files = append(out.Files, recordingFile{filepath.Base(path), info.Size(), info.ModTime(), mockCommand(path)})
		}
	}
	return out, nil
}

// mockCommand returns the command that serves a recording; empty: its path cannot be typed.
func mockCommand(path string) string {
	if abs, err := filepath.Abs(path); path == "" || err != nil || !typable(abs) {
		return ""
	} else {
		return "patchbay mock " + shellWord(abs)
	}
}

// pathOf returns the path of a file of the folder. Only names in the list of the folder have one.
func (p *Page) pathOf(name string) (string, error) {
	if p.Files != "" {
		paths, err := record.Files(p.Files)
		if err != nil {
			return "", fail(http.StatusConflict, "the folder of the recordings cannot be read: %v", err)
		}
		for _, path := range paths {
			if info, err := os.Lstat(path); filepath.Base(path) == name && err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	return "", fail(http.StatusNotFound, "no recording of this program has the name %q", shown(name))
}

// framesFor returns the frames that a request is about: those of the recording in the parameter file, or those on the wire.
func (p *Page) framesFor(ctx context.Context, query url.Values) (*Frames, error) {
	name := query.Get("file")
	if name == "" {
		return p.Frames, nil
	}
	path, err := p.pathOf(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fail(http.StatusNotFound, "the recording %s cannot be read: %v", name, err)
	}
	l := &p.library
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = time.AfterFunc(fileTime, l.forget)
	}
	l.ends.Reset(fileTime)
	if l.frames != nil && l.path == path && (l.size == info.Size() || query.Get("after") != "0") {
		return l.frames, nil // a file that grows is read again when somebody looks from its beginning
	}
	f := &Frames{Redactor: p.Frames.Redactor, Max: fileFrames, MaxBytes: fileBytes}
	if err := f.openFiles(ctx, name, path); err != nil {
		return nil, fail(http.StatusConflict, "%v", err)
	}
	l.path, l.size, l.frames = path, info.Size(), f
	return f, nil
}

// forget drops the frames.
func (l *library) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames, l.path = nil, ""
}

// source returns a recording as it is in its file, or what is on the wire as a file would have it.
func (p *Page) source(ctx context.Context, name string) (io.ReadCloser, error) {
	if name != "" {
		path, err := p.pathOf(name)
		if err != nil {
			return nil, err
		}
		return ownfile.Open(ctx, path)
	}
	out, in := io.Pipe()
	go func() { // ends when out is read or closed
		in.CloseWithError(p.Frames.write(nil, func(line []byte) error {
			_, err := in.Write(line)
			return err
		}))
	}()
	return out, nil
}

// judge answers what other rules do with the calls of a recording.
func (p *Page) judge(w http.ResponseWriter, r *http.Request) (any, error) {
	if p.Judge == nil {
		return nil, fail(http.StatusNotFound, "this program does not try policies")
	}
	var asked struct {
		Access
		File   string `json:"file"`
		Policy string `json:"policy"`
	}
	if err := readBody(w, r, maxPolicy, &asked, "file", "policy", "principal", "roles", "scopes", "server"); err != nil {
		return nil, err
	}
	if asked.Policy == "" {
		return nil, fail(http.StatusBadRequest, "the policy is empty")
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), judgeTime, fmt.Errorf("the decisions take longer than %v", judgeTime))
	defer cancel()
	in, err := p.source(ctx, asked.File)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, err := p.Judge(ctx, []byte(asked.Policy), &asked.Access, in)
	if err != nil {
		if ctx.Err() != nil && !errors.Is(err, context.Canceled) {
			err = context.Cause(ctx)
		}
		return nil, fail(http.StatusBadRequest, "%v", err)
	}
	return out, nil
}
