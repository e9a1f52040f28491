package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
)

// filled writes a log of some calls.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{Sync: audit.SyncNone})
	at := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	for i, e := range []audit.Entry{
		{Kind: audit.CallBegin, Call: "1", Tool: "create", Team: "dev", Principal: &audit.Principal{ID: "idp#ada"}, Client: &audit.Client{Name: "desk"}, Server: &audit.Server{Name: "jira"}, Decision: &audit.Decision{Effect: "allow", Rule: "devs"}},
		{Kind: audit.CallEnd, Call: "1", Tool: "create", Outcome: "ok", Millis: 12.5, Server: &audit.Server{Name: "jira"}, Trace: "4bf92f3577b34da6a3ce929d0e0e4736"},
		{Kind: audit.Denied, Call: "2", Tool: "delete", Outcome: "denied", Principal: &audit.Principal{ID: "idp#bob"}, Server: &audit.Server{Name: "jira"}, Decision: &audit.Decision{Effect: "deny", Rule: "no bulk"}},
		{Kind: audit.CallEnd, Call: "3", Method: "resources/read", Name: "file:///a", Outcome: "error", Code: -32603},
	} {
		e.Time = at.Add(time.Duration(i) * time.Hour)
		write(t, l, e)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFilter(t *testing.T) {
	path := filled(t)
	at := time.Date(2026, 11, 22, 15, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		filter audit.Filter
		want   string // calls
	}{
		{audit.Filter{Call: "*"}, ",1,1,2,3,"},
		{audit.Filter{Call: "1"}, "1,1"},
		{audit.Filter{Tool: "cre*"}, "1,1"},
		{audit.Filter{Tool: "file:*"}, "3"},
		{audit.Filter{Principal: "*#bob"}, "2"},
		{audit.Filter{Team: "dev"}, "1"},
		{audit.Filter{Client: "desk"}, "1"},
		{audit.Filter{Server: "jira", Outcome: "ok"}, "1"},
		{audit.Filter{Rule: "no *"}, "2"},
		{audit.Filter{Kind: "call.*", Since: at.Add(time.Hour), Until: at.Add(3 * time.Hour)}, "1"},
	} {
		var got []string
		for e, err := range tt.filter.Select(audit.Read(path)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Call)
		}
		if s := strings.Join(got, ","); s != tt.want {
			t.Errorf("%+v selects %s, want %s", tt.filter, s, tt.want)
		}
	}
}

// A line that does not decode is an error with its place, and the next lines follow.
func TestReadBadLines(t *testing.T) {
	path := filled(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	text := lines[0] + "no JSON\n" + lines[1] + strings.Repeat("x", 2<<20) + "\n{}\n" + lines[2] + `{"half`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []int
	whole := 0
	for _, err := range audit.Read(path) {
		var line *audit.LineError
		switch {
		case errors.As(err, &line):
			got = append(got, line.Line)
		case err != nil:
			t.Fatal(err)
		default:
			whole++
		}
	}
	if want := []int{2, 4, 5}; !slices.Equal(got, want) || whole != 3 {
		t.Errorf("bad lines %v, want %v; %d others", got, want, whole)
	}
	for _, err := range audit.Read(path + ".none") {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
	}
	for _, none := range []string{path + ".none", filepath.Join(path+".none", "audit.jsonl")} {
		if _, err := audit.Files(none); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), none) {
			t.Errorf("the files of a missing log: %v", err)
		}
	}
}

// Backward gives what Read gives, from the end, whatever the lengths of lines.
func TestBackward(t *testing.T) {
	path := filled(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	long := func(n int) string { return `{"seq":7,"tool":"` + strings.Repeat("x", n) + "\"}\n" }
	for _, text := range []string{
		string(data), string(data) + `{"half`, "", "\n", "\n\n" + lines[0], "half", long(200_000) + lines[0] + long(100_000),
		lines[0] + long(1<<20) + lines[1], lines[0] + long(3<<20), long(1<<20 - 20), long(1<<20 - 19), long(1<<20 - 18),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list := func(lines iter.Seq2[*audit.Entry, error]) (out []string) {
			for e, err := range lines {
				if err != nil {
					out = append(out, errors.Unwrap(err).Error())
				} else {
					out = append(out, string(e.Line()))
				}
			}
			return out
		}
		got, want := list(audit.Backward(path, path)), list(audit.Read(path, path))
		if slices.Reverse(got); !slices.Equal(got, want) {
			t.Errorf("%.100q: %d lines, want %d", text, len(got), len(want))
		}
	}
	for _, err := range audit.Backward(path + ".none") {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
	}
}

// Follow sees each line once, across rotations, and none before its start.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := open(t, path, &audit.Options{MaxBytes: 2000, Sync: audit.SyncNone})
	write(t, l, audit.Entry{Kind: audit.CallEnd, Call: "before"})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := 2000
	if runtime.GOOS == "windows" {
		n = 300 // renaming takes long under Wine
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < n && err == nil; i++ {
			err = l.Write(ctx, audit.Entry{Kind: audit.CallEnd, Call: "x", Reason: strings.Repeat("y", 300)})
		}
		written <- err
	}()
	seen, last := 0, int64(2)
	for e, err := range audit.Follow(ctx, path, last) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != last+1 {
			t.Fatalf("line %d after %d", e.Seq, last)
		}
		if last = e.Seq; e.Call == "x" {
			seen++
		}
		if seen == n {
			break
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if files, err := audit.Files(path); err != nil || len(files) < 3 || seen != n {
		t.Errorf("saw %d lines of %d in %d files, %v", seen, n, len(files), err)
	}
}

func TestOTLP(t *testing.T) {
	path := filled(t)
	var tries atomic.Int64
	var body []byte
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Team") != "dev" {
			http.Error(w, "what is this?", http.StatusNotFound)
			return
		}
		if tries.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ = io.ReadAll(r.Body)
		w.Write([]byte(`{"partialSuccess":{}}`))
	}))
	defer collector.Close()
	o := &audit.OTLP{URL: collector.URL, Header: http.Header{"X-Team": {"dev"}}}
	calls := audit.Filter{Call: "*", Kind: "*e*"}
	n, err := o.Export(t.Context(), calls.Select(audit.Read(path)))
	if err != nil || n == 0 {
		t.Fatalf("%d lines, %v", n, err)
	}
	var got struct {
		ResourceLogs []struct {
			ScopeLogs []struct {
				LogRecords []struct {
					TimeUnixNano   string
					SeverityText   string
					SeverityNumber int
					TraceID        string `json:"traceId"`
					Body           struct{ StringValue string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	records := got.ResourceLogs[0].ScopeLogs[0].LogRecords
	at := slices.IndexFunc(records, func(r struct {
		TimeUnixNano   string
		SeverityText   string
		SeverityNumber int
		TraceID        string `json:"traceId"`
		Body           struct{ StringValue string }
	}) bool {
		return r.TraceID != ""
	})
	if len(records) != n || at < 0 || records[at].TimeUnixNano != "1795363200000000000" || records[at].SeverityText != "INFO" || !strings.Contains(records[at].Body.StringValue, `"tool":"create"`) {
		t.Errorf("%d records: %s", len(records), body)
	}

	o.Header = nil
	if n, err := o.Export(t.Context(), audit.Read(path)); n != 0 || err == nil || !strings.Contains(err.Error(), "4318") {
		t.Errorf("an address of something else: %d, %v", n, err)
	}
	rejecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}`))
	}))
	defer rejecting.Close()
	all := 0
	for range audit.Read(path) {
		all++
	}
	if n, err := (&audit.OTLP{URL: rejecting.URL}).Export(t.Context(), audit.Read(path)); n != all-3 || err == nil || !strings.Contains(err.Error(), "rejects 3 records") || !strings.Contains(err.Error(), "too old") {
		t.Errorf("a collector that rejects 3 of %d: %d, %v", all, n, err)
	}
}
