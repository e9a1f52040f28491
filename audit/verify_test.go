package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/long"
)

func testKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	key, err := audit.LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// written writes a closed log of n lines, and returns its lines.
func written(t testing.TB, path string, n int, o audit.Options) [][]byte {
	t.Helper()
	o.Sync = audit.SyncNone
	l, err := audit.Open(path, &o)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	const writers = 16
	if n -= 2; o.Key != nil { // start and stop, each with a checkpoint
		n -= 2
	}
	for w := range writers {
		all.Go(func() {
			for i := w; i < n; i += writers {
				e := audit.Entry{
					Kind: audit.CallBegin, Call: fmt.Sprintf("call-%d", i), Time: time.Date(2026, 11, 22, 15, 0, 0, i*1000, time.UTC),
					Principal: &audit.Principal{ID: "https://idp.example#ada", Issuer: "https://idp.example"}, Team: "dev",
					Client: &audit.Client{Name: "desk", Version: "1.2", Revision: "2026-07-28"}, Server: &audit.Server{Name: "jira", Identity: "https://jira.example/mcp"},
					Tool: "create", Arguments: &audit.Arguments{Value: json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))},
					Decision: &audit.Decision{Effect: "allow", Rule: "devs may write", Policy: audit.Digest(nil)},
				}
				if err := l.Write(context.Background(), e); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(data))
}

func verify(t testing.TB, o *audit.VerifyOptions, files ...string) *audit.Report {
	t.Helper()
	r, err := audit.Verify(files, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// edit changes lines at or after line i (from 0) of a log, and returns the new lines and the kind
// of fault to find at a line from i+1 to i+1+reach.
type edit struct {
	name  string
	reach int
	do    func(lines [][]byte, i int, r *rand.Rand) [][]byte
}

var edits = []edit{
	{"a byte", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		b := bytes.Clone(lines[i])
		at := r.IntN(len(b) - 1)
		for old := b[at]; b[at] == old || b[at] == '\n'; {
			b[at] = byte(r.IntN(256))
		}
		lines[i] = b
		return lines
	}},
	{"a byte more", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		at := r.IntN(len(lines[i]))
		lines[i] = slices.Insert(bytes.Clone(lines[i]), at, byte(' '+r.IntN(90)))
		return lines
	}},
	{"a byte less", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		at := r.IntN(len(lines[i]) - 1)
		lines[i] = slices.Delete(bytes.Clone(lines[i]), at, at+1)
		return lines
	}},
	{"a member twice", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		lines[i] = slices.Concat([]byte(`{"hash":"x",`), lines[i][1:])
		return lines
	}},
	{"a name", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		lines[i] = bytes.Replace(lines[i], []byte(`#ada"`), []byte(`#eve"`), 1)
		if !bytes.Contains(lines[i], []byte("#eve")) {
			lines[i] = bytes.Replace(lines[i], []byte(`"v":1`), []byte(`"v":2`), 1)
		}
		return lines
	}},
	{"delete", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte { return slices.Delete(lines, i, i+1) }},
	{"delete some", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte { return slices.Delete(lines, i, i+2) }},
	{"swap", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		lines[i], lines[i+1] = lines[i+1], lines[i]
		return lines
	}},
	{"swap far", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		lines[i], lines[i+3] = lines[i+3], lines[i]
		return lines
	}},
	{"repeat", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte { return slices.Insert(lines, i+1, lines[i]) }},
	{"move", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		line := lines[i]
		lines = slices.Delete(lines, i, i+1)
		return slices.Insert(lines, i+2, line)
	}},
	{"an empty line", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte { return slices.Insert(lines, i, []byte("\n")) }},
	{"a line of another log", 1, func(lines [][]byte, i int, r *rand.Rand) [][]byte {
		return slices.Insert(lines, i, []byte(`{"hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000","kind":"list","node":"n","prev":"sha256:0000000000000000000000000000000000000000000000000000000000000000","seq":3,"v":1}`+"\n"))
	}},
}

// Many edits at once are all found at their places, and one alone is found without false faults.
func TestEditsAreFound(t *testing.T) {
	long.WithoutRace(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	n, count := long.Or(100_000, 2_000), long.Or(1_000, 300)
	whole := written(t, path, n, audit.Options{Key: key, Node: "n1"})
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	if r := verify(t, o, path); !r.Whole() || len(r.Notes) > 0 || r.Lines != int64(len(whole)) || r.Checkpoints < 2 || r.Unsigned != 0 {
		t.Fatalf("an untouched log: %+v", r)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	store := func(lines [][]byte) {
		t.Helper()
		if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type made struct {
		edit
		line int // where it begins, from 1, in the file as it is
		seq  int64
	}
	// from the end, so that the numbers before stay
	slot := (len(whole) - 4) / count
	lines := slices.Clone(whole)
	var all []made
	for k := count - 1; k >= 0; k-- {
		e := edits[r.IntN(len(edits))]
		i := 1 + k*slot + r.IntN(max(1, slot-5))
		before := len(lines)
		lines = e.do(lines, i, r)
		for j := range all {
			all[j].line += len(lines) - before
		}
		all = append(all, made{e, i + 1, int64(i + 1)})
	}
	store(lines)
	report := verify(t, o, path)
	for _, m := range all {
		near := func(f audit.Fault) bool {
			return f.Line >= m.line-1 && f.Line <= m.line+m.reach+1 || f.Seq >= m.seq-1 && f.Seq <= m.seq+int64(m.reach)
		}
		if !slices.ContainsFunc(report.Faults, near) {
			t.Errorf("%s at line %d (seq %d) is not found", m.name, m.line, m.seq)
		}
	}
	if len(report.Faults) > 4*count {
		t.Errorf("%d edits give %d faults", count, len(report.Faults))
	}

	small := whole[:min(len(whole), 2000)]
	open := &audit.VerifyOptions{} // the small log has no last checkpoint
	if err := os.Remove(path + ".head"); err != nil {
		t.Fatal(err)
	}
	for k := range long.Or(1_000, 100) {
		e := edits[k%len(edits)]
		i := 1 + r.IntN(len(small)-10)
		store(e.do(slices.Clone(small), i, r))
		got := verify(t, open, path).Faults
		bad := len(got) == 0 || len(got) > 3
		for _, f := range got {
			bad = bad || f.Line < i || f.Line > i+6
		}
		if bad {
			t.Errorf("%s at line %d: %v", e.name, i+1, got)
		}
	}
}

// A log that ends too early is found by the checkpoint beside it, by one kept elsewhere, and by the
// line that has no end.
func TestCutsAreFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	whole := written(t, path, 50, audit.Options{Key: key})
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	all := bytes.Join(whole, nil)
	for range 100 {
		size := rand.IntN(len(all))
		if err := os.WriteFile(path, all[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		r := verify(t, o, path)
		at := bytes.Count(all[:size], []byte("\n")) + 1
		if !slices.ContainsFunc(r.Faults, func(f audit.Fault) bool { return f.Kind == audit.Cut && f.Line >= at-1 && f.Line <= at }) {
			t.Errorf("cut at %d of %d bytes, in line %d: %v", size, len(all), at, r.Faults)
		}
	}
	// the checkpoint beside it is gone too
	if err := os.Remove(path + ".head"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Join(whole[:20], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, o, path); !r.Whole() || r.Last != 20 || r.Unsigned == 0 {
		t.Errorf("without any copy of a checkpoint: %+v", r)
	}
	o.Heads = []audit.Head{{Seq: 50, Hash: audit.Digest(nil)}}
	if r := verify(t, o, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Cut || r.Faults[0].Seq != 21 {
		t.Errorf("with a copy of a checkpoint: %+v", r.Faults)
	}
}

// A person who computes the hashes again is found by the signatures, and by a kept checkpoint.
func TestForgery(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	key, other := testKey(t), testKey(t)
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	written(t, path, 50, audit.Options{Key: other})
	r := verify(t, o, path)
	if r.Whole() || r.Faults[0].Kind != audit.Wrong || !strings.Contains(r.Faults[0].Text, "another key") {
		t.Errorf("a log with another key: %v", r.Faults)
	}
	path = filepath.Join(dir, "b.jsonl")
	kept := written(t, path, 50, audit.Options{Key: key})
	hash := func(line []byte) string {
		var e audit.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		return e.Hash
	}
	want := audit.Head{Seq: 50, Hash: hash(kept[49])}
	if err := firstOf(os.Remove(path), os.Remove(path+".head")); err != nil {
		t.Fatal(err)
	}
	written(t, path, 50, audit.Options{Key: key, Node: "x"})
	o.Heads = []audit.Head{want}
	r = verify(t, o, path)
	if r.Whole() || r.Faults[0].Seq != 50 {
		t.Errorf("a log that was written again: %v", r.Faults)
	}
}

// With a key, a log without checkpoints is not whole: its hashes may all be computed again. A log
// without lines is not whole either.
func TestNothingIsSigned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	written(t, path, 50, audit.Options{})
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	if r := verify(t, o, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Unsigned {
		t.Errorf("with a key: %+v", r)
	}
	if r := verify(t, nil, path); !r.Whole() || r.Unsigned != 50 || !r.Signed.IsZero() {
		t.Errorf("without a key: %+v", r)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, nil, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Cut {
		t.Errorf("an empty file: %+v", r)
	}
}

// A checkpoint that signs another line than the one before it is a fault without a key too.
func TestCheckpointOfAnotherLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	lines := written(t, path, 50, audit.Options{Key: testKey(t)})
	last := strings.TrimSuffix(string(lines[len(lines)-1]), "\n")
	at := strings.Index(last, `"checkpoint":{"hash":"sha256:`) + len(`"checkpoint":{"hash":"sha256:`)
	own := strings.LastIndex(last, `"hash":"`)
	end := own + len(`"hash":"sha256:",`) + 64
	if at < 30 || own < at {
		t.Fatalf("the last line is %s", last)
	}
	last = last[:at] + strings.Repeat("0", 64) + last[at+64:]
	_, prev, _ := strings.Cut(last, `"prev":"`)
	sum := sha256.Sum256([]byte(prev[:71] + last[:own] + last[end:]))
	lines[len(lines)-1] = []byte(last[:own] + `"hash":"sha256:` + hex.EncodeToString(sum[:]) + `",` + last[end:])
	if err := firstOf(os.WriteFile(path, append(bytes.Join(lines, nil), '\n'), 0o600), os.Remove(path+".head")); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, nil, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Wrong || !strings.Contains(r.Faults[0].Text, "another line") {
		t.Errorf("%+v", r)
	}
}

// Rotated files can be moved away: verifying begins at the first file that is there, and the log
// goes on. Together with the files that were moved, it is whole.
func TestMovedFiles(t *testing.T) {
	dir, archive := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	key := testKey(t)
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}
	var moved []string
	for range 3 {
		l := open(t, path, &audit.Options{Key: key, MaxBytes: 3000, Sync: audit.SyncNone})
		for range 30 {
			write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "x"})
		}
		files, err := audit.Files(path)
		if err != nil || len(files) < 3 {
			t.Fatalf("files %v, %v; want several", files, err)
		}
		for _, name := range files[:len(files)-1] { // while the log is open
			to := filepath.Join(archive, filepath.Base(name))
			if err := os.Rename(name, to); err != nil {
				t.Fatal(err)
			}
			moved = append(moved, to)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		r := verify(t, o, path)
		if !r.Whole() || len(r.Notes) != 1 || r.Notes[0].Kind != audit.Incomplete || r.First == 1 {
			t.Errorf("%+v", r)
		}
		if r := verify(t, o, append(slices.Clone(moved), path)...); !r.Whole() || len(r.Notes) != 0 || r.First != 1 {
			t.Errorf("with the moved files: %+v", r)
		}
	}
}

func firstOf(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
