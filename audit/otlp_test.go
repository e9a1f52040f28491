package audit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
)

// collector counts the records of each request, and answers with what answer returns.
func collector(t *testing.T, answer func(w http.ResponseWriter, records int)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer(w, bytes.Count(body, []byte(`"timeUnixNano"`)))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// some returns n lines.
func some(n int) iter.Seq2[*audit.Entry, error] {
	return func(yield func(*audit.Entry, error) bool) {
		for range n {
			if !yield(&audit.Entry{Kind: audit.CallEnd}, nil) {
				return
			}
		}
	}
}

// Lines of Follow arrive while it goes on, and those that still wait when the context ends arrive too.
func TestExportFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, nil)
	got := make(chan int, 100)
	o := &audit.OTLP{URL: collector(t, func(_ http.ResponseWriter, n int) { got <- n })}
	ctx, cancel := context.WithCancel(t.Context())
	type outcome struct {
		sent int
		err  error
	}
	done := make(chan outcome, 1)
	read := make(chan string, 100)
	go func() {
		sent, err := o.Export(ctx, func(yield func(*audit.Entry, error) bool) {
			for e, err := range audit.Follow(ctx, path, 0) {
				if !yield(e, err) {
					return
				}
				read <- e.Call
			}
		})
		done <- outcome{sent, err}
	}()
	arrived := 0
	wait := func(n int) {
		t.Helper()
		for deadline := time.After(time.Minute); arrived < n; {
			select {
			case more := <-got:
				arrived += more
			case <-deadline:
				t.Fatalf("%d lines of %d have arrived", arrived, n)
			}
		}
	}
	wait(1) // start
	write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "a"})
	wait(2)
	write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "b"})
	for call := range read {
		if call == "b" {
			break
		}
	}
	cancel()
	wait(3)
	if end := <-done; end.sent != 3 || !errors.Is(end.err, context.Canceled) {
		t.Errorf("Export returns %d, %v", end.sent, end.err)
	}
}

// A collector that rejects some records gets the others, and the batches after them.
func TestExportPartialSuccess(t *testing.T) {
	batches := 0
	url := collector(t, func(w http.ResponseWriter, n int) {
		if batches++; batches == 1 {
			io.WriteString(w, `{"partialSuccess":{"rejectedLogRecords":"7","errorMessage":"too old"}}`)
		}
	})
	sent, err := (&audit.OTLP{URL: url}).Export(t.Context(), some(1200))
	if sent != 1193 || batches != 3 || err == nil || !strings.Contains(err.Error(), "rejects 7 records") {
		t.Errorf("%d lines are sent in %d batches, %v", sent, batches, err)
	}
}

// An export of many lines ends when its context does.
func TestExportEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := collector(t, func(http.ResponseWriter, int) { cancel() })
	if sent, err := (&audit.OTLP{URL: url}).Export(ctx, some(100_000)); sent > 1024 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d lines are sent, %v", sent, err)
	}
}

func TestExportURL(t *testing.T) {
	for _, url := range []string{"", "localhost:4318", "/v1/logs", "ftp://collector", "http://"} {
		begun := time.Now()
		_, err := (&audit.OTLP{URL: url}).Export(t.Context(), some(1))
		if err == nil || !strings.Contains(err.Error(), "such as http://localhost:4318") || time.Since(begun) > 20*time.Second {
			t.Errorf("URL %q: %v", url, err)
		}
	}
}
