package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// sample returns the bytes of a log with lines of several kinds, and the key of its checkpoints.
func sample(t testing.TB) ([]byte, ed25519.PublicKey) {
	t.Helper()
	dir := t.TempDir()
	key, err := LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "audit.jsonl")
	l, err := Open(path, &Options{Key: key, Node: "n1", Sync: SyncNone, Arguments: ContentRedacted})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{
		{Kind: CallBegin, Call: "1", Tool: "buy", Principal: &Principal{ID: "https://idp#ada"}, Arguments: &Arguments{Value: json.RawMessage(`{"n":1,"hash":"x","t":"é\n\""}`)}},
		{Kind: CallEnd, Call: "1", Tool: "buy", Outcome: "ok", Millis: 1.5},
		{Kind: Config, Detail: json.RawMessage(`{"a":[1,{"b":null}]}`)},
	} {
		if err := l.Write(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, publicKey(key)
}

// input is the buffer of verified, which takes most of its time to make.
var input = bufio.NewReaderSize(nil, maxLine)

// verified verifies the bytes of a log.
func verified(t testing.TB, data []byte, key ed25519.PublicKey) *Report {
	t.Helper()
	v := newVerifier(&VerifyOptions{Key: key})
	input.Reset(bytes.NewReader(data))
	if err := v.lines("audit.jsonl", input); err != nil {
		t.Fatal(err)
	}
	v.finish()
	return &v.report
}

// Each change of one byte is found in its line or in the next one. The long form changes each byte to
// all others, the short one to one of them.
func TestEveryByte(t *testing.T) {
	data, key := sample(t)
	if r := verified(t, data, key); !r.Whole() || len(r.Notes) > 0 || r.Checkpoints != 2 {
		t.Fatalf("an untouched log: %+v", r)
	}
	line := 1
	for at, was := range data {
		likely := []byte("\" ,:{}0x\n\x00\xff" + string([]byte{was ^ 1, was ^ 32, byte(rand.IntN(256))}))
		for _, b := range long.Or(slices.Collect(everyByte), likely[rand.IntN(len(likely)):][:1]) {
			if b == was {
				continue
			}
			data[at] = b
			r := verified(t, data, nil)
			if len(r.Faults) == 0 || !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Line >= line-1 && f.Line <= line+1 }) {
				t.Errorf("byte %d, in line %d, %q instead of %q: %v", at, line, b, was, r.Faults)
			}
		}
		if data[at] = was; was == '\n' {
			line++
		}
	}
}

func everyByte(yield func(byte) bool) {
	for b := range 256 {
		if !yield(byte(b)) {
			return
		}
	}
}

// Verify does not panic, whatever the lines are, and finds each change of one byte, with and without
// the key.
func FuzzVerify(f *testing.F) {
	whole, key := sample(f)
	f.Add([]byte(nil), uint16(0), byte(0))
	f.Add(whole, uint16(10), byte('x'))
	for i := range 20 {
		f.Add(whole[:len(whole)*i/20], uint16(i*len(whole)/20), byte('"'))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, b byte) {
		r := verified(t, data, key)
		if n := bytes.Count(data, []byte("\n")); r.Lines > int64(n) || r.Whole() && !bytes.HasPrefix(data, []byte("{")) {
			t.Errorf("%d lines of %d: %+v", r.Lines, n, r)
		}
		edited := bytes.Clone(whole)
		if i := int(at) % len(whole); edited[i] != b {
			edited[i] = b
			for _, k := range []ed25519.PublicKey{nil, key} {
				if verified(t, edited, k).Whole() {
					t.Errorf("byte %d, %q instead of %q, is not found", i, b, whole[i])
				}
			}
		}
	})
}

// Reading forward and backward gives the same lines, and opening a file for writing finds the number
// of its last line or an error.
func FuzzRead(f *testing.F) {
	whole, _ := sample(f)
	f.Add(whole)
	f.Add([]byte("\n\n{}\n{\"seq\":1}\nhalf"))
	path := filepath.Join(f.TempDir(), "audit.jsonl")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var forward, backward []string
		text := func(e *Entry, err error) string {
			var line *LineError
			if err != nil && !errors.As(err, &line) {
				t.Fatal(err)
			}
			if err != nil {
				return line.Err.Error()
			}
			return string(e.Line())
		}
		for e, err := range Read(path) {
			forward = append(forward, text(e, err))
		}
		for e, err := range Backward(path) {
			backward = append(backward, text(e, err))
		}
		if slices.Reverse(backward); !slices.Equal(forward, backward) {
			t.Errorf("forward %q, backward %q", forward, backward)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if e, err := endOf(file); err == nil && (e.size > int64(len(data)) || e.size > 0 && e.Seq <= 0) {
			t.Errorf("the end is %+v", e)
		}
	})
}
