package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

func open(t testing.TB, path string, o *audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// calls returns the lines of a log that are not about the log itself.
func calls(t testing.TB, path string) (list []*audit.Entry) {
	t.Helper()
	for _, e := range entries(t, path) {
		if e.Kind != audit.Node && e.Kind != audit.Checkpoint {
			list = append(list, e)
		}
	}
	return list
}

func entries(t testing.TB, path string) (list []*audit.Entry) {
	t.Helper()
	files, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range audit.Read(files...) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func write(t testing.TB, l *audit.Log, e audit.Entry) {
	t.Helper()
	if err := l.Write(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	mcptest.LeakCheck(t)
	path := filepath.Join(t.TempDir(), "new", "audit.jsonl")
	l := open(t, path, &audit.Options{Node: "n1", Key: testKey(t)})
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	write(t, l, audit.Entry{Kind: audit.CallBegin, Time: at, Call: "c1", Server: &audit.Server{Name: "shop", Identity: "https://shop"}, Tool: "buy", Arguments: &audit.Arguments{Value: json.RawMessage(`{"what": "planted", "n":2}`)}})
	l.Add(audit.Entry{Kind: audit.CallEnd, Call: "c1", Outcome: "ok", Millis: 1.5, Reason: strings.Repeat("é", 2000)})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallEnd}); err != audit.ErrClosed {
		t.Errorf("Write after Close: %v", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if got := jsonx.Canonical(line); !bytes.Equal(got, line) {
			t.Errorf("not canonical:\n%s\n%s", line, got)
		}
	}
	if bytes.Contains(data, []byte("planted")) {
		t.Errorf("arguments are written though nobody asked for them: %s", data)
	}
	list := calls(t, path)
	if len(list) != 2 || !list[0].Time.Equal(at.Truncate(time.Microsecond)) || list[0].Node != "n1" || list[0].Seq != 3 || list[0].Arguments.Digest != audit.Digest(json.RawMessage(`{"n":2,"what":"planted"}`)) {
		t.Fatalf("the log has %s", data)
	}
	if end := list[1]; end.Millis != 1.5 || end.Prev != list[0].Hash || len(end.Reason) > 1030 {
		t.Errorf("the end is %+v", end)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	redactor := trace.NewRedactor(&trace.RedactorOptions{Values: []string{"planted-value"}})
	none := filepath.Join(t.TempDir(), "audit.jsonl")
	bare := open(t, none, &audit.Options{Arguments: audit.ContentNone})
	write(t, bare, audit.Entry{Kind: audit.CallBegin, Arguments: &audit.Arguments{Value: json.RawMessage(`{"q":1}`)}})
	if got := calls(t, none); len(got) != 1 || got[0].Arguments != nil {
		t.Errorf("a log without arguments has %+v", got)
	}
	l := open(t, path, &audit.Options{Arguments: audit.ContentRedacted, Redactor: redactor})
	for _, args := range []string{
		`{"password":"planted-1","q":"a planted-value b\n"}`,
		`{"password":"planted-2"`,
		"",
		`{"long":"` + strings.Repeat("x", 100_000) + `"}`,
		"{\n\"b\":2,\"a\":\n1,\"hash\":\"x\",\"kind\":\"node\"}",
	} {
		write(t, l, audit.Entry{Kind: audit.CallBegin, Tool: "t", Arguments: &audit.Arguments{Value: json.RawMessage(args)}})
	}
	want := []string{`{"password":"[redacted]","q":"a [redacted] b\n"}`, `"{\"password\":[redacted]"`, "", "", `{"a":1,"b":2,"hash":"x","kind":"node"}`}
	list := calls(t, path)
	for i, e := range list {
		if got := string(e.Arguments.Value); got != want[i] {
			t.Errorf("arguments of line %d are %s, want %s", i+1, got, want[i])
		}
	}
	if list[3].Arguments.Bytes != 100_011 {
		t.Errorf("of long arguments the log says %v bytes", list[3].Arguments.Bytes)
	}
	if r := verify(t, nil, path); !r.Whole() {
		t.Error(r.Faults)
	}
}

func TestManyAtOnce(t *testing.T) {
	mcptest.LeakCheck(t)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	var heads []audit.Head
	l := open(t, path, &audit.Options{Key: key, MaxBytes: 40_000, Interval: 5 * time.Millisecond, OnCheckpoint: func(h audit.Head) { heads = append(heads, h) }})
	var all sync.WaitGroup
	const writers, each = 8, 100
	for range writers {
		all.Go(func() {
			for i := range each {
				if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallBegin, Tool: "t"}); err != nil {
					t.Error(err)
				}
				l.Add(audit.Entry{Kind: audit.CallEnd, Tool: "t", Millis: float64(i)})
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := audit.Files(path)
	if err != nil || len(files) < 5 {
		t.Fatalf("files %v, %v; want several", files, err)
	}
	if n := len(calls(t, path)); n != 2*writers*each {
		t.Errorf("there are %d lines, want %d", n, 2*writers*each)
	}
	o := &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey), Heads: heads}
	if r := verify(t, o, files...); !r.Whole() || len(r.Notes) > 0 || len(heads) == 0 {
		t.Errorf("%d checkpoints, %+v", len(heads), r)
	}
	// the chain crosses files: one of them missing is found, but for the first, which is a note
	if r := verify(t, o, append(append([]string(nil), files[:2]...), files[3:]...)...); r.Whole() || r.Faults[0].Kind != audit.Missing {
		t.Errorf("without the third file: %v", r.Faults)
	}
	if r := verify(t, o, files[1:]...); !r.Whole() || len(r.Notes) != 1 {
		t.Errorf("without the first file: %+v", r)
	}
	if s := l.Stats(); s.Lines != 2*writers*each || s.Dropped != 0 || s.Err != nil {
		t.Errorf("%+v", s)
	}
}

// A process that is killed in the middle of a line leaves a fragment. The next one removes it and
// says so.
func TestFragment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	write(t, l, audit.Entry{Kind: audit.CallBegin, Call: "a"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"call":"b`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if r := verify(t, nil, path); len(r.Faults) != 1 || r.Faults[0].Kind != audit.Cut {
		t.Errorf("before: %v", r.Faults)
	}
	l = open(t, path, nil)
	write(t, l, audit.Entry{Kind: audit.CallBegin, Call: "c"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, nil, path); !r.Whole() || len(r.Notes) != 1 || r.Notes[0].Kind != audit.Recovered || !strings.Contains(r.Notes[0].Text, "10 bytes") {
		t.Errorf("after: %+v", r)
	}
}

// A log that was cut while it was closed goes on, and the cut shows in every later check.
func TestCutBeforeOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	key := testKey(t)
	whole := written(t, path, 30, audit.Options{Key: key})
	if err := os.WriteFile(path, bytes.Join(whole[:20], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := open(t, path, &audit.Options{Key: key}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := verify(t, &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)}, path)
	if len(r.Faults) != 1 || r.Faults[0].Kind != audit.Cut || r.Faults[0].Line != 21 || !strings.Contains(r.Faults[0].Text, "had line 30") {
		t.Errorf("%v", r.Faults)
	}
}

func TestOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	if _, err := audit.Open(path, nil); err == nil || !strings.Contains(err.Error(), "another process writes to "+path) {
		t.Errorf("the second Open: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, nil)
}

// A line of a shared log takes little memory, however long the log is.
func TestMemoryOfSharedLog(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"), &audit.Options{Shared: true, Sync: audit.SyncNone})
	write := func(size int) {
		t.Helper()
		if err := l.Write(t.Context(), audit.Entry{Kind: audit.CallBegin, Tool: "t", Detail: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size))}); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 { // more than 4 MB
		write(15_000)
	}
	write(10)
	const lines = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range lines {
		write(10)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / lines; each > 100<<10 {
		t.Errorf("a line takes %d bytes", each)
	}
}

// Shared logs have one chain, and rotate.
func TestShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	const logs, each = 4, 50
	for range logs {
		l := open(t, path, &audit.Options{Shared: true, MaxBytes: 10_000, Sync: audit.SyncNone})
		all.Go(func() {
			for range each {
				if err := l.Write(context.Background(), audit.Entry{Kind: audit.CallBegin, Tool: "t"}); err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(calls(t, path)); n != logs*each {
		t.Errorf("there are %d lines, want %d", n, logs*each)
	}
	files, err := audit.Files(path)
	if r := verify(t, nil, files...); err != nil || !r.Whole() || len(files) < 3 {
		t.Errorf("%d files, %+v", len(files), r)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"text":     "hello\n",
		"old.json": `{"time":"2026-03-01T12:00:00Z","server":"shop","tool":"buy","digest":"ac"}` + "\n",
		"long":     strings.Repeat("x", 3<<20),
		"one line": `{"mcpServers":{}}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Open(path, nil); err == nil || !strings.Contains(err.Error(), path+" is not an audit log") {
			t.Errorf("Open of %s: %v", name, err)
		}
		if err := audit.Check(path); err == nil || !strings.Contains(err.Error(), path+" is not an audit log") {
			t.Errorf("Check of %s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("Open has changed %s", name)
		}
	}
	for _, content := range []string{"x", "{}"} { // the copy of the last checkpoint
		path := filepath.Join(dir, "new.jsonl")
		if err := os.WriteFile(path+".head", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := audit.Check(path); err == nil || !strings.Contains(err.Error(), path+".head is not a checkpoint") {
			t.Errorf("Check with a bad head: %v", err)
		}
		if _, err := audit.Open(path, nil); err == nil || !strings.Contains(err.Error(), path+".head is not a checkpoint") {
			t.Errorf("Open with a bad head: %v", err)
		}
	}
	if _, err := audit.Open(dir, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open of a folder: %v", err)
	}
	wine.Skip(t, "it has other devices")
	if _, err := os.Stat("/dev/full"); err == nil {
		if _, err := audit.Open("/dev/full", nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Open of a device: %v", err)
		}
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "key")
	key, err := audit.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := audit.LoadKey(path)
	if err != nil || !key.Equal(again) {
		t.Errorf("the second load: %v", err)
	}
	if public, err := audit.LoadPublicKey(path + ".pub"); err != nil || !public.Equal(key.Public()) {
		t.Errorf("the public key: %v", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if _, err := audit.LoadPublicKey(path); err == nil || !strings.Contains(err.Error(), ".pub") {
		t.Errorf("a private key as a public one: %v", err)
	}
	bad := filepath.Join(dir, "bad")
	for _, content := range []string{"x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.LoadKey(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("LoadKey of %q: %v", content, err)
		}
	}
}

func TestDigest(t *testing.T) {
	for _, same := range [][2]string{{`{"a":1,"b":[1,2]}`, ` {"b":[1, 2], "a":1}`}, {"", "{}"}, {`{"a":`, `{"a":`}} {
		if audit.Digest(json.RawMessage(same[0])) != audit.Digest(json.RawMessage(same[1])) {
			t.Errorf("%s and %s have different digests", same[0], same[1])
		}
	}
	if audit.Digest(json.RawMessage(`{"a":1}`)) == audit.Digest(json.RawMessage(`{"a":2}`)) {
		t.Error("other arguments have the same digest")
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "audit.jsonl")
	key, err := audit.LoadKey(filepath.Join(dir, "audit.key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := audit.Open(path, &audit.Options{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The line is on disk before the call is made.
	err = log.Write(context.Background(), audit.Entry{Kind: audit.CallBegin, Call: "1", Tool: "buy", Arguments: &audit.Arguments{Value: json.RawMessage(`{"fruit":"banana"}`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Add(audit.Entry{Kind: audit.CallEnd, Call: "1", Tool: "buy", Outcome: "ok"})
	if err := log.Close(); err != nil {
		fmt.Println(err)
		return
	}

	report, err := audit.Verify([]string{path}, &audit.VerifyOptions{Key: key.Public().(ed25519.PublicKey)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Lines, "lines, whole:", report.Whole())
	// Output: 6 lines, whole: true
}
