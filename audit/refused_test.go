package audit_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// Write refuses entries of which it would lose a part, and those that only the log writes. Add drops
// them, and the logger gets the error.
func TestRefusedEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var log bytes.Buffer
	l := open(t, path, &audit.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	long := json.RawMessage(`{"a":"` + strings.Repeat("x", 16<<10) + `"}`)
	for want, e := range map[string]audit.Entry{
		"no Kind":                     {},
		`of kind \"node\"`:            {Kind: audit.Node, Event: audit.EventDropped, Detail: json.RawMessage(`{"lines":5}`)},
		`of kind \"checkpoint\"`:      {Kind: audit.Checkpoint, Checkpoint: &audit.Signed{}},
		"the maximum is 16 KiB":       {Kind: audit.Config, Detail: long},
		"Detail is not a JSON object": {Kind: audit.Config, Detail: json.RawMessage(`{"a":`)},
		"not a JSON object":           {Kind: "own", Detail: json.RawMessage(`[1]`)},
	} {
		text := strings.ReplaceAll(want, `\`, "")
		if err := l.Write(t.Context(), e); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("Write: %v; want %s", err, text)
		}
		log.Reset()
		l.Add(e)
		if !strings.Contains(log.String(), want) {
			t.Errorf("Add logs %s; want %s", log.String(), want)
		}
	}
	if s := l.Stats(); s.Dropped != 6 || s.Lines != 0 {
		t.Errorf("%+v", s)
	}
	spaces := json.RawMessage(`{"a":1` + strings.Repeat(" ", 20<<10) + `}`)
	write(t, l, audit.Entry{Kind: "own", Detail: spaces})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, nil, path); !r.Whole() || r.Lines != 4 { // start, dropped, own, stop
		t.Errorf("%+v", r)
	}
}

// LoadKey does not replace the public key that verifies earlier checkpoints.
func TestLoadKeyKeepsPublicKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := audit.LoadKey(path); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.LoadKey(path); err == nil || !strings.Contains(err.Error(), path+" is missing") || !strings.Contains(err.Error(), "restore") {
		t.Errorf("LoadKey without the private key: %v", err)
	}
	if now, err := os.ReadFile(path + ".pub"); err != nil || !bytes.Equal(now, public) {
		t.Errorf("the public key has changed, %v", err)
	}
	if err := audit.CheckKey(path); err == nil || !strings.Contains(err.Error(), path+" is missing") {
		t.Errorf("CheckKey without the private key: %v", err)
	}
	if err := audit.CheckKey(path + "2"); err != nil {
		t.Errorf("CheckKey without a key: %v", err)
	}
	t.Chdir(t.TempDir())
	if _, err := audit.LoadKey(""); err == nil || !strings.Contains(err.Error(), "path is empty") {
		t.Errorf("LoadKey without a path: %v", err)
	}
	if list, err := os.ReadDir("."); err != nil || len(list) != 0 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}

func TestOpenWithShortKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := audit.Open(path, &audit.Options{Key: ed25519.PrivateKey("short")}); err == nil || !strings.Contains(err.Error(), "5 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made")
	}
}

// A panic of OnCheckpoint ends neither the program nor the log.
func TestOnCheckpointPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var log bytes.Buffer
	l := open(t, path, &audit.Options{Key: testKey(t), OnCheckpoint: func(audit.Head) { panic("mine") }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "a"})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := calls(t, path); len(got) != 1 || !strings.Contains(log.String(), "mine") {
		t.Errorf("%v, %s", got, log.String())
	}
}

// A log that another key signs from some line on says so, and verifies with both keys.
func TestAnotherKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	first, second := testKey(t), testKey(t)
	var log bytes.Buffer
	add := func(key ed25519.PrivateKey) {
		t.Helper()
		l := open(t, path, &audit.Options{Key: key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "a"})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	add(first)
	add(first)
	if log.Len() > 0 {
		t.Errorf("the same key: %s", log.String())
	}
	public := func(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }
	if r := verify(t, &audit.VerifyOptions{Key: public(second), Earlier: []ed25519.PublicKey{public(first)}}, path); r.Whole() {
		t.Error("a log that only the earlier key has signed is whole")
	}
	add(second)
	if !strings.Contains(log.String(), "another key") {
		t.Errorf("another key: %s", log.String())
	}
	said := ""
	for _, e := range entries(t, path) {
		if before, ok := strings.CutPrefix(string(e.Detail), `{"key":"`+audit.KeyID(public(second))+`","keyBefore":"`); ok && e.Event == audit.EventStart {
			said = before
		}
	}
	if said != audit.KeyID(public(first))+`"}` {
		t.Errorf("the line of the start has the key before %q", said)
	}
	if r := verify(t, &audit.VerifyOptions{Key: public(second), Earlier: []ed25519.PublicKey{public(first)}}, path); !r.Whole() {
		t.Errorf("with both keys: %v", r.Faults)
	}
	if r := verify(t, &audit.VerifyOptions{Key: public(second)}, path); r.Whole() {
		t.Error("the log is whole without the first key")
	}
	add(first)
	if r := verify(t, &audit.VerifyOptions{Key: public(second), Earlier: []ed25519.PublicKey{public(first)}}, path); r.Whole() || !strings.Contains(r.Faults[len(r.Faults)-1].Text, "earlier key") {
		t.Errorf("the first key signs again: %v", r.Faults)
	}
}

// After a Close that fails, a line is dropped, not queued too, and nobody waits for one.
func TestFailedClose(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("open files are not removed on Windows")
	}
	dir := filepath.Join(t.TempDir(), "logs")
	l, err := audit.Open(filepath.Join(dir, "audit.jsonl"), &audit.Options{Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Add(audit.Entry{Kind: audit.CallEnd})
	if err := l.Close(); err == nil {
		t.Error("Close has no error")
	}
	if s := l.Stats(); s.Queued != 0 || s.Dropped != 1 || s.Lines != 0 {
		t.Errorf("%+v", s)
	}
	if err := l.Write(context.Background(), audit.Entry{Kind: audit.CallEnd}); err == nil {
		t.Error("Write after Close has no error")
	}
}
