package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/audit"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/trace"
)

func open(t *testing.T, path string, o *audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// read returns the lines of a log.
func read(t *testing.T, path string) (lines []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(data) {
		if string(text) == "\n" {
			continue
		}
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		lines = append(lines, line)
	}
	return lines
}

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "audit.jsonl")
	l := open(t, path, nil)
	r := audit.Record{Time: at, Conversation: "abcd", Call: "c1", Server: "shop", Identity: "https://shop", Tool: "buy",
		Arguments: json.RawMessage(`{"what": "planted", "n":2}`), Allowed: true, By: "person"}
	if err := l.Write(r); err != nil {
		t.Fatal(err)
	}
	r.Outcome, r.Reason, r.Took, r.Time = "failed", "sold out", 1500*time.Millisecond, time.Time{}
	if err := l.Write(r); err != nil {
		t.Fatal(err)
	}
	lines := read(t, path)
	if len(lines) != 2 || lines[0]["time"] != "2026-03-01T12:00:00Z" || lines[0]["by"] != "person" || lines[0]["allowed"] != true || lines[1]["outcome"] != "failed" || lines[1]["reason"] != "sold out" || lines[1]["tookMs"] != 1500.0 {
		t.Errorf("the log has %v", lines)
	}
	if got, want := lines[0]["digest"], audit.Digest(json.RawMessage(`{"n":2,"what":"planted"}`)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("planted")) {
		t.Errorf("arguments are written though nobody asked for them: %s, %v", data, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestArguments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	redactor := trace.NewRedactor(&trace.RedactorOptions{Values: []string{"planted-value"}})
	l := open(t, path, &audit.Options{Arguments: true, Redactor: redactor})
	for _, args := range []string{
		`{"password":"planted-1","q":"a planted-value b\n"}`,
		`{"password":"planted-2"`,
		"",
		`{"long":"` + strings.Repeat("x", 100_000) + `"}`,
		"{\n\"a\":\n1}",
	} {
		if err := l.Write(audit.Record{Tool: "t", Arguments: json.RawMessage(args)}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{`map[password:[redacted] q:a [redacted] b` + "\n" + `]`, `{"password":[redacted]`, "<nil>", "<nil>", "map[a:1]"}
	lines := read(t, path)
	for i, line := range lines {
		if got := fmt.Sprint(line["arguments"]); got != want[i] {
			t.Errorf("arguments of line %d are %q, want %q", i+1, got, want[i])
		}
	}
	if lines[3]["argumentsBytes"] != 100_011.0 {
		t.Errorf("of long arguments the log says %v bytes", lines[3]["argumentsBytes"])
	}
}

func TestManyAtOnce(t *testing.T) {
	wine.Skip(t, "files that append to one file at once overwrite each other")
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var all sync.WaitGroup
	const writers, each = 4, 100
	for range writers {
		l := open(t, path, &audit.Options{Arguments: true})
		for range 2 {
			all.Go(func() {
				for range each {
					if err := l.Write(audit.Record{Tool: "t", Arguments: json.RawMessage(`"` + strings.Repeat("y", 5000) + `"`)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if lines := read(t, path); len(lines) != writers*2*each {
		t.Errorf("there are %d lines, want %d", len(lines), writers*2*each)
	}
}

// An incomplete line, written before the log was opened or since, does not damage the next line.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	tear := func() {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"tool":"b`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tear()
	l := open(t, path, nil)
	for i := range 3 {
		if i == 2 {
			tear()
		}
		if err := l.Write(audit.Record{Tool: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var whole []bool
	for _, line := range lines {
		whole = append(whole, json.Valid([]byte(line)))
	}
	if want := []bool{false, true, true, false, true}; !slices.Equal(whole, want) {
		t.Errorf("lines that are whole: %v, want %v:\n%s", whole, want, data)
	}
}

// A record that cannot be written is an error: the disk is full, or the log closed.
func TestWriteFails(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "audit.jsonl"), nil)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(audit.Record{}); err == nil {
		t.Error("Write to a closed log succeeds")
	}
	wine.Skip(t, "it has /dev/full, and the error of Windows")
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	if err := open(t, "/dev/full", nil).Write(audit.Record{}); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("Write to a full disk: %v", err)
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
	log, err := audit.Open(path, &audit.Options{Arguments: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer log.Close()
	day := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	err = log.Write(audit.Record{Time: day, Server: "shop", Tool: "buy", Arguments: json.RawMessage(`{"fruit":"banana"}`), Allowed: true, By: "person"})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _ := os.ReadFile(path)
	fmt.Print(string(data))
	// Output: {"time":"2026-03-01T12:00:00Z","server":"shop","tool":"buy","digest":"acadea24bb9fa6e35e6633cd9e97a8eb152366719b7e3e468c7dc296cf690053","arguments":{"fruit":"banana"},"allowed":true,"by":"person"}
}
