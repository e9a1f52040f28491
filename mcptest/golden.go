package mcptest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/trace"
)

var rewrite = flag.Bool("mcptest.update", false, "rewrite the golden wire traces of mcptest.Golden")

// updating reports whether files are to be rewritten.
func updating() bool {
	own := flag.Lookup("update") // of the test's package
	return *rewrite || own != nil && own.Value.String() == "true"
}

// Golden opens a session in memory, like [Connect], runs body with it, and compares the frames on
// the wire, as the server saw them, with those in file. Ids, states and times are normalised with
// [trace.Normalise]. The flag -mcptest.update rewrites the file, and so does a
// flag -update of the test's own.
//
// The file is an archive: a comment that describes the case, and then a section "-- trace.jsonl
// --" with one frame per line. Other sections, and the comment, are kept when the file is
// rewritten.
func Golden(t testing.TB, file string, s *mcp.Server, c *mcp.Client, rev mcp.Revision, body func(s *mcp.Session)) {
	t.Helper()
	var rec recorder
	onFrame := c.OnFrame
	c.OnFrame = rec.frame
	session := Connect(t, s, c, rev)
	c.OnFrame = onFrame
	body(session)
	session.Close()
	got := rec.lines()

	old, err := os.ReadFile(file)
	if err != nil && !(updating() && os.IsNotExist(err)) {
		t.Fatalf("golden trace: %v (run the test with -mcptest.update to write it)", err)
	}
	before, want, after := splitArchive(string(old))
	if want == got {
		return
	}
	if !updating() {
		t.Errorf("the wire trace differs from %s (run the test with -mcptest.update to rewrite it):\n%s", file, diffLines(want, got))
		return
	}
	if before == "" {
		before = "# " + t.Name() + ".\n"
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(before+traceSection+got+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// recorder keeps the frames of a session of a client.
type recorder struct {
	mu     sync.Mutex
	frames []trace.Frame // guarded by mu
}

func (r *recorder) frame(f trace.Frame) {
	if !f.Message() {
		return
	}
	dir := trace.Out // of the server
	if f.Dir == trace.Out {
		dir = trace.In
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = append(r.frames, trace.Frame{Dir: dir, Msg: bytes.Clone(f.Msg)})
}

func (r *recorder) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []byte
	for _, f := range trace.Normalise(r.frames, &trace.NormaliseOptions{IDs: true}) {
		out = append(f.Append(out), '\n')
	}
	return string(out)
}

const traceSection = "-- trace.jsonl --\n"

// splitArchive returns the trace in an archive, and the text before and after it.
func splitArchive(s string) (before, body, after string) {
	before, rest, ok := strings.Cut(s, traceSection)
	if !ok {
		return s, "", ""
	}
	if i := strings.Index("\n"+rest, "\n-- "); i >= 0 {
		return before, rest[:i], rest[i:]
	}
	return before, rest, ""
}

// diffLines returns the first line in which two texts differ.
func diffLines(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d:\n got  %s\n want %s", i+1, b, a)
		}
	}
	return ""
}
