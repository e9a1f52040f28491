package auditlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/auditlog"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// filled writes a log of some calls, an hour each from noon on.
func filled(t *testing.T, o *audit.Options, list ...audit.Entry) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.jsonl")
	o.Sync = audit.SyncNone
	l, err := audit.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range list {
		e.Time = noon.Add(time.Duration(i) * time.Hour)
		if err := l.Write(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func end(call, server, tool, outcome string, ms float64) audit.Entry {
	return audit.Entry{Kind: audit.CallEnd, Call: call, Team: "dev", Server: &audit.Server{Name: server}, Tool: tool, Outcome: outcome, Millis: ms, Bytes: 100}
}

// opened opens a log with flags.
func opened(t *testing.T, lines auditlog.Lines) *auditlog.Log {
	t.Helper()
	l, err := lines.Open("", noon.Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func calls(t *testing.T, l *auditlog.Log) string {
	t.Helper()
	var got []string
	for e, err := range l.All() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Call != "" {
			got = append(got, e.Call)
		}
	}
	return strings.Join(got, "")
}

func TestTimes(t *testing.T) {
	path := filled(t, &audit.Options{}, end("a", "s", "t", "ok", 1), end("b", "s", "t", "ok", 1), end("c", "s", "t", "ok", 1))
	for _, tt := range []struct{ since, until, want string }{
		{"1d", "", "abc"}, {"23h", "", "bc"}, {"22.5h", "", "c"}, {"", "23h", "a"}, {"1w", "0.95d", "ab"}, {"13:30", "", "c"}, {"12:30", "13:30", "b"}, {"23h", "1380m", ""},
		{"2026-11-22", "", "abc"}, {"2026-11-22T13:00", "2026-11-22T14:00", "b"}, {"2026-11-22 13:30:00", "", "c"}, {"2026-11-22T15:00:00+02:00", "", "bc"},
	} {
		if tt.want == "" {
			continue
		}
		l := opened(t, auditlog.Lines{File: path, Since: tt.since, Until: tt.until})
		if got := calls(t, l); got != tt.want {
			t.Errorf("--since %s --until %s selects %s, want %s", tt.since, tt.until, got, tt.want)
		}
	}
	for _, tt := range []struct{ since, until, want string }{
		{"yesterday", "", "--since"}, {"", "7", "--until"}, {"-1h", "", "--since"}, {"1e9d", "", "--since"}, {"NaNd", "", "--since"}, {"d", "", "--since"},
		{"2026-13-01", "", "write it like"}, {"1h", "2h", "is not before"}, {"1h", "1h", "is not before"},
	} {
		var bad auditlog.BadFlag
		lines := auditlog.Lines{File: path, Since: tt.since, Until: tt.until}
		if _, err := lines.Open("", noon); !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--since %q --until %q: %v, want %q", tt.since, tt.until, err, tt.want)
		}
	}
	if _, err := (&auditlog.Lines{File: path + ".none"}).Open("", noon); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// Calls are selected by their fault, their duration, the name of their tool at a gateway, and either
// spelling of "canceled".
func TestSelections(t *testing.T) {
	late := end("a", "shop", "buy", "error", 1500)
	late.Fault = "deadline"
	path := filled(t, &audit.Options{}, late, end("b", "shop", "buy", "canceled", 20), end("c", "shop", "sell", "cancelled", 1000), end("d", "shop_buy", "now", "ok", 999.9))
	for _, tt := range []struct {
		lines auditlog.Lines
		want  string
	}{
		{auditlog.Lines{Fault: "deadline"}, "a"}, {auditlog.Lines{Fault: "d*"}, "a"}, {auditlog.Lines{Slower: "1s"}, "ac"}, {auditlog.Lines{Slower: "900ms"}, "acd"},
		{auditlog.Lines{Tool: "shop_buy"}, "ab"}, {auditlog.Lines{Tool: "shop_*"}, "abcd"}, {auditlog.Lines{Tool: "buy"}, "ab"}, {auditlog.Lines{Tool: "op_buy"}, ""},
		{auditlog.Lines{Outcome: "canceled"}, "bc"}, {auditlog.Lines{Outcome: "cancelled"}, "bc"}, {auditlog.Lines{Outcome: "cancel*"}, "bc"},
	} {
		tt.lines.File = path
		if got := calls(t, opened(t, tt.lines)); got != tt.want {
			t.Errorf("%+v selects %q, want %q", tt.lines, got, tt.want)
		}
	}
	for flag, want := range map[*auditlog.Lines]string{
		{Outcome: "deadline"}: "--outcome deadline is a fault: use --fault deadline", {Fault: "server"}: `--fault "server" is not known, there are deadline, transport, protocol, audit, unsent, unknown`,
	} {
		flag.File = path
		l := opened(t, *flag)
		if calls(t, l); len(l.Warnings()) != 1 || !strings.HasSuffix(l.Warnings()[0], want) {
			t.Errorf("warnings %q, want %q", l.Warnings(), want)
		}
	}
	for _, text := range []string{"0s", "-1s", "1", "soon"} {
		var bad auditlog.BadFlag
		if _, err := (&auditlog.Lines{File: path, Slower: text}).Open("", noon); !errors.As(err, &bad) || !strings.Contains(err.Error(), "--slower") {
			t.Errorf("--slower %s: %v", text, err)
		}
	}
	if u, err := opened(t, auditlog.Lines{File: path}).Usage([]string{"who"}); err != nil || u.By[0] != "principal" {
		t.Errorf("usage by who: %+v, %v", u, err)
	}
}

// Of many files only those are read that can have lines of the time asked for.
func TestRecentFiles(t *testing.T) {
	var list []audit.Entry
	for i := range 50 {
		list = append(list, end(fmt.Sprint(i%10), "s", "t", "ok", 1))
	}
	path := filled(t, &audit.Options{MaxBytes: 1}, list...)
	if files, err := audit.Files(path); err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	// lines about the log itself have the time of this run, which is later
	lines := auditlog.Lines{File: path, Since: "2099-01-01"}
	l, err := lines.Open("", noon)
	if err != nil || len(l.Files) != 1 {
		t.Errorf("files %v, %v", l.Files, err)
	}
	if all := opened(t, auditlog.Lines{File: path}); len(all.Files) < 40 || calls(t, all) != strings.Repeat("0123456789", 5) || all.Warnings() != nil {
		t.Errorf("%d files, warnings %q", len(all.Files), all.Warnings())
	}
}

// Tail gives the last selected lines, and Follow those after them.
func TestTailAndFollow(t *testing.T) {
	path := filled(t, &audit.Options{}, end("a", "s", "t", "ok", 1), end("b", "s", "t", "error", 1), end("c", "s", "t", "ok", 1), end("d", "s", "t", "error", 1))
	for n, want := range map[int]string{0: "", 1: "d", 2: "bd", 9: "bd"} {
		l := opened(t, auditlog.Lines{File: path, Outcome: "err*"})
		list, err := l.Tail(n)
		got := ""
		for _, e := range list {
			got += e.Call
		}
		if err != nil || got != want {
			t.Errorf("the last %d are %s, %v; want %s", n, got, err, want)
		}
	}
	l := opened(t, auditlog.Lines{File: path, Tool: "t"})
	if _, err := l.Tail(0); err != nil {
		t.Fatal(err)
	}
	w, err := audit.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(t.Context(), end("e", "s", "t", "ok", 1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for e, err := range l.Follow(ctx) {
		if err != nil || e.Call != "e" {
			t.Fatalf("%+v, %v", e, err)
		}
		break
	}
}

// Lines that cannot be read, gaps, and an empty selection are warnings.
func TestWarnings(t *testing.T) {
	path := filled(t, &audit.Options{}, end("a", "s", "t", "ok", 1), end("b", "s", "t", "ok", 1), end("c", "s", "t", "ok", 1), end("d", "s", "t", "ok", 1))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, tt := range []struct{ text, want string }{
		{lines[0] + lines[1] + lines[3], "the numbers of the lines of " + path + " have 1 gap; patchbay audit verify"},
		{lines[0] + "x\n" + lines[2] + "\n" + lines[4], "2 lines cannot be read, the first is " + path + ":2: "},
		{lines[0] + "x\n" + lines[2], path + ":2: "},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := opened(t, auditlog.Lines{File: path})
		calls(t, l)
		if w := l.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], tt.want) {
			t.Errorf("warnings %q, want %q", w, tt.want)
		}
		back := opened(t, auditlog.Lines{File: path})
		if _, err := back.Tail(10); err != nil || len(back.Warnings()) != 1 {
			t.Errorf("backward: %q, %v", back.Warnings(), err)
		}
	}
	none := opened(t, auditlog.Lines{File: path, Who: "nobody"})
	if calls(t, none); len(none.Warnings()) != 2 || !strings.HasPrefix(none.Warnings()[1], "none of the 2 lines") {
		t.Errorf("%q", none.Warnings())
	}
}

func TestView(t *testing.T) {
	v := &auditlog.View{Zone: time.UTC, Paint: func(s, style string) string { return style + "|" + s }}
	ada := &audit.Principal{ID: "idp#ada"}
	for _, tt := range []struct {
		entry audit.Entry
		want  string
	}{
		{audit.Entry{Kind: audit.CallBegin, Principal: ada, Team: "dev", Server: &audit.Server{Name: "jira"}, Tool: "create", Call: "1", Decision: &audit.Decision{Rule: "devs may write"}},
			`2|2026-11-22 12:00:00.000  idp#ada  dev  jira/create  begin  rule "devs may write", call 1`},
		{audit.Entry{Kind: audit.CallEnd, Outcome: "tool error", Tool: "a\x1b[31m\nb", Millis: 12.3, Bytes: 1500, Code: -32000},
			`31|2026-11-22 12:00:00.000                a␛[31m b     tool error  12 ms, 1.5 kB, code -32000`},
		{audit.Entry{Kind: audit.Denied, Principal: ada, Outcome: "denied", Reason: "no"},
			`33|2026-11-22 12:00:00.000  idp#ada                    denied      no`},
		{audit.Entry{Kind: audit.Node, Event: audit.EventDropped, Detail: json.RawMessage(`{"lines": 5}`)},
			`31|2026-11-22 12:00:00.000                log          dropped     {"lines":5}`},
		{audit.Entry{Kind: "login.done", Principal: ada}, `|2026-11-22 12:00:00.000  idp#ada                    login.done`},
		{audit.Entry{Kind: audit.CallRetry, Attempt: 2, Method: "resources/read", Name: "file:///a", Cached: true, Decision: &audit.Decision{By: "person"}},
			`2|2026-11-22 12:00:00.000                resources/read file:///a  attempt 2   from the cache, by person`},
		{audit.Entry{Kind: audit.Checkpoint, Checkpoint: &audit.Signed{Seq: 7, Key: "ab"}}, `|2026-11-22 12:00:00.000                                          checkpoint  line 7, key ab`},
	} {
		tt.entry.Time = noon
		if got := v.Line(&tt.entry); got != tt.want {
			t.Errorf("%+v\n  is %q\nwant %q", tt.entry, got, tt.want)
		}
	}
	v.Width = 40
	if got := v.Line(&audit.Entry{Kind: audit.List, Method: "tools/list", Principal: ada, Time: noon}); got != "|2026-11-22 12:00:00.000  idp#ada       …" && len([]rune(got)) > 41 {
		t.Errorf("cut to 40 columns: %q", got)
	}
}

func TestUsage(t *testing.T) {
	list := []audit.Entry{
		{Kind: audit.CallBegin, Call: "lost", Tool: "buy"}, {Kind: audit.CallBegin, Call: "x", Tool: "buy"},
		end("x", "shop", "buy", "tool error", 2000), end("q", "shop", "buy", "question", 1), end("z", "shop", "buy", "canceled", 1000),
		{Kind: audit.Denied, Call: "d", Team: "ops", Server: &audit.Server{Name: "shop"}, Tool: "sell", Outcome: "denied", Principal: &audit.Principal{ID: "bob"}, Client: &audit.Client{Name: "desk"}},
		{Kind: audit.CallEnd, Call: "r", Method: "resources/read", Name: "file:///secret", Outcome: "ok", Millis: 0},
		{Kind: audit.List, Method: "tools/list", Outcome: "ok"},
	}
	for i := range 98 {
		list = append(list, end(fmt.Sprint(i), "shop", "buy", "ok", float64(i+1)))
	}
	path := filled(t, &audit.Options{}, list...)
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	written = fmt.Appendf(written, `{"detail":{"lines":5},"event":"dropped","hash":"","kind":"node","node":"n","prev":"","seq":%d,"time":"2026-11-22T13:00:00Z","v":1}`+"\n", bytes.Count(written, []byte("\n"))+1)
	if err := os.WriteFile(path, written, 0o600); err != nil {
		t.Fatal(err)
	}
	u, err := opened(t, auditlog.Lines{File: path}).Usage([]string{"team", "tool"})
	if err != nil {
		t.Fatal(err)
	}
	if len(u.Rows) != 3 || u.Total.Calls != 102 || u.Total.Errors != 1 || u.Total.Denied != 1 || u.Open != 1 || u.Dropped != 5 || u.Total.Bytes != 10_000 {
		t.Errorf("%+v", u)
	}
	buy := u.Rows[0]
	if buy.Team != "dev" || buy.Tool != "buy" || buy.Server != "" || buy.Calls != 100 || buy.Errors != 1 || buy.P50 < 49 || buy.P50 > 51 || buy.P95 < 93 || buy.P95 > 97 {
		t.Errorf("the first row is %+v", buy)
	}
	if read := u.Rows[1]; read.Tool != "resources/read" || read.P50 != 0.001 || u.Rows[2].P50 != 0 {
		t.Errorf("the others are %+v", u.Rows[1:])
	}
	var out strings.Builder
	u.Grid().Print(0, func(s string) string { return s }, func(s string) { out.WriteString(s + "\n") })
	want := `
TEAM   TOOL            CALLS  ERRORS  DENIED     P50     P95  BYTES
dev    buy               100       1       0   50 ms   95 ms  10.0 kB
-      resources/read      1       0       0  0.0 ms  0.0 ms  0 bytes
ops    sell                1       0       1       -       -  0 bytes
total                    102       1       1   50 ms   95 ms  10.0 kB
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("the table is %s", got)
	}
	if s := u.Source(); !strings.Contains(s, fmt.Sprintf("from %d lines of %s", u.Lines, path)) || !strings.Contains(s, "1 call without an end; 5 lines lost") {
		t.Error(s)
	}
	unended := 0
	for e, err := range opened(t, auditlog.Lines{File: path}).Unended() {
		if unended++; err != nil || e.Kind != audit.CallBegin {
			t.Errorf("a call without an end: %+v, %v", e, err)
		}
	}
	if unended != u.Open {
		t.Errorf("%d calls without an end, not %d", unended, u.Open)
	}
	u, err = opened(t, auditlog.Lines{File: path, Tool: "sell"}).Usage([]string{"principal", "client", "server"})
	if err != nil || len(u.Rows) != 1 || u.Rows[0].Principal != "bob" || u.Rows[0].Client != "desk" || u.Rows[0].Server != "shop" {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := opened(t, auditlog.Lines{File: path, Tool: "none"}).Usage([]string{"tool"}); err != nil || len(u.Rows) != 0 || !strings.HasPrefix(u.Source(), "computed from 0 lines") {
		t.Errorf("%+v, %v", u, err)
	}
	for by, want := range map[string]string{"tools": `did you mean "tool"?`, "": "cannot be", "tool,tool": "twice"} {
		var bad auditlog.BadFlag
		if _, err := opened(t, auditlog.Lines{File: path}).Usage(strings.Split(by, ",")); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("--by %s: %v", by, err)
		}
	}
}

// A copy of all lines is a log; one of some lines has those alone, and a file that exists is left as
// it is.
func TestCopy(t *testing.T) {
	key, err := audit.LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	path := filled(t, &audit.Options{Key: key}, end("a", "s", "t", "ok", 1), end("b", "s", "u", "ok", 1))
	to := filepath.Join(t.TempDir(), "copy.jsonl")
	c := &auditlog.Copy{Lines: auditlog.Lines{File: path}, To: to}
	copied := func() (int, error) { return c.Run(t.Context(), opened(t, c.Lines), nil, nil) }
	if n, err := copied(); err != nil || n != 6 {
		t.Fatalf("%d lines, %v", n, err)
	}
	was, err := os.ReadFile(path)
	if now, err2 := os.ReadFile(to); err != nil || err2 != nil || !bytes.Equal(was, now) {
		t.Errorf("the copy differs: %v, %v", err, err2)
	}
	var bad auditlog.BadFlag
	if _, err := copied(); !errors.As(err, &bad) || !strings.Contains(err.Error(), "the file exists") {
		t.Errorf("to a file that exists: %v", err)
	}
	if now, err := os.ReadFile(to); err != nil || !bytes.Equal(was, now) {
		t.Errorf("the file was changed, %v", err)
	}
	var out bytes.Buffer
	c.To, c.Tool = "-", "u"
	if n, err := c.Run(t.Context(), opened(t, c.Lines), nil, &out); err != nil || n != 1 || !strings.Contains(out.String(), `"call":"b"`) {
		t.Errorf("%d lines, %v: %s", n, err, &out)
	}
	c.To = filepath.Join(t.TempDir(), "none", "x.jsonl")
	if _, err := copied(); !errors.As(err, &bad) {
		t.Errorf("to a missing folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.To = to + ".2"
	if _, err := c.Run(ctx, opened(t, c.Lines), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after ctrl-C: %v", err)
	}
	if _, err := os.Stat(c.To); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part of the copy stays: %v", err)
	}
	for _, c := range []auditlog.Copy{{}, {To: "a", OTLP: "http://c"}, {OTLP: "collector:4318"}, {OTLP: "http://"}, {OTLP: "http://[::1"}} {
		if err := c.Check(); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (&auditlog.Copy{OTLP: "https://c:4318"}).Check(); err != nil {
		t.Error(err)
	}
	c = &auditlog.Copy{Lines: auditlog.Lines{File: path}, OTLP: "http://127.0.0.1:1"}
	if n, err := c.Run(ctx, opened(t, c.Lines), http.Header{}, nil); n != 0 || err == nil || !strings.Contains(err.Error(), "collector") {
		t.Errorf("to a collector: %d, %v", n, err)
	}
}

// One file stands for the whole log, several for themselves in any order. Kept lines must be in it.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	key, err := audit.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	path := filled(t, &audit.Options{Key: key, MaxBytes: 1}, end("a", "s", "t", "ok", 1), end("b", "s", "t", "ok", 1), end("c", "s", "t", "ok", 1))
	files, err := audit.Files(path)
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	head, err := os.ReadFile(path + ".head")
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "kept.jsonl")
	if err := os.WriteFile(kept, head, 0o600); err != nil {
		t.Fatal(err)
	}
	backward := slices.Clone(files)
	slices.Reverse(backward)
	public := filepath.Join(dir, "key.pub")
	for _, c := range []*auditlog.Check{
		{Files: []string{path}, Key: []string{public}, Kept: []string{kept}}, {Files: files}, {Files: backward, Key: []string{public}}, {Files: append([]string{path}, files[:len(files)-1]...)}, {Files: files[1:]},
	} {
		r, err := c.Verify()
		if err != nil || !r.Whole() {
			t.Errorf("%v: %+v, %v", c.Files, r, err)
		}
	}
	c := &auditlog.Check{Files: []string{path}, Key: []string{public}}
	v, err := c.Verify()
	if err != nil {
		t.Fatal(err)
	}
	plain := func(s, _ string) string { return s }
	if got := v.Lines(plain); len(got) != 1 || !strings.HasPrefix(got[0], path+" is whole: ") || v[0].Log == "" || !strings.HasSuffix(got[0], "checkpoints, log "+v[0].Log) {
		t.Errorf("%q", got)
	}

	// the end is cut off, with its checkpoint
	if err := errors.Join(os.Remove(path), os.Rename(files[len(files)-2], path), os.Remove(path+".head")); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Verify(); err != nil || !r.Whole() {
		t.Errorf("without a kept line: %+v, %v", r, err)
	}
	c.Kept = []string{kept}
	if v, err = c.Verify(); err != nil || len(v[0].Faults) != 1 || v[0].Faults[0].Kind != audit.Cut {
		t.Errorf("with a kept line: %+v, %v", v, err)
	}
	if got := v.Lines(plain); !strings.Contains(got[0], ": cut: the end is gone") || !strings.HasPrefix(got[len(got)-1], path) && !strings.Contains(got[len(got)-2], " has 1 fault: ") {
		t.Errorf("%q", got)
	}
	v[0].Faults = slices.Repeat(v[0].Faults, 60)
	if got := v.Lines(plain); len(got) > 55 || !strings.HasPrefix(got[50], "… 10 more") {
		t.Errorf("%d lines: %q", len(got), got[50:])
	}

	other := filled(t, &audit.Options{}, end("a", "s", "t", "ok", 1))
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello\nworld\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var bad auditlog.BadFlag
	for _, tt := range []struct {
		check auditlog.Check
		want  string
		usage bool
	}{
		{auditlog.Check{Files: []string{other, other}}, "two logs", true},
		{auditlog.Check{Files: []string{files[0], other}, Kept: []string{kept}}, "--kept is for one log", true},
		{auditlog.Check{Files: []string{files[0], other}, Key: []string{public, public, public}}, "there are 3 --key for 2 logs", true},
		{auditlog.Check{Files: []string{path}, Key: []string{public, public}}, "there are 2 --key for 1 log", true},
		{auditlog.Check{Files: []string{path}, Without: []string{"n2"}}, "for several logs", true},
		{auditlog.Check{Files: []string{path}, Copied: "1h"}, "for several logs", true},
		{auditlog.Check{Files: []string{files[0], other}, Copied: "soon"}, `--copied cannot be "soon"`, true},
		{auditlog.Check{Files: []string{other}, Kept: []string{os.DevNull}}, "has no lines", true},
		{auditlog.Check{Files: []string{other}, Kept: []string{text}}, "--kept: " + text + ":1", false},
		{auditlog.Check{Files: []string{text}}, "is not an audit log: none of its 2 lines is one", false},
		{auditlog.Check{Files: []string{other}, Key: []string{filepath.Join(dir, "key")}}, ".pub", false},
		{auditlog.Check{Files: []string{other + ".none"}}, "audit log", false},
		{auditlog.Check{Files: []string{other, other + ".none"}}, "audit log", false},
	} {
		if _, err := tt.check.Verify(); err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &bad) != tt.usage {
			t.Errorf("%+v: %v, want %q", tt.check, err, tt.want)
		}
	}
}

// --earlier names the keys that signed before that of --key.
func TestVerifyEarlier(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	for _, name := range []string{"first", "second"} {
		key, err := audit.LoadKey(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		l, err := audit.Open(path, &audit.Options{Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := &auditlog.Check{Files: []string{path}, Key: []string{filepath.Join(dir, "second.pub")}, Earlier: []string{filepath.Join(dir, "first.pub")}}
	if r, err := c.Verify(); err != nil || !r.Whole() {
		t.Errorf("%+v, %v", r, err)
	}
	c.Earlier = nil
	if r, err := c.Verify(); err != nil || r.Whole() || !strings.Contains(r[0].Faults[0].Text, "earlier") {
		t.Errorf("without the first key: %+v, %v", r, err)
	}
	c.Earlier, c.Key = []string{filepath.Join(dir, "first.pub")}, nil
	var bad auditlog.BadFlag
	if _, err := c.Verify(); !errors.As(err, &bad) || !strings.Contains(err.Error(), "--key") {
		t.Errorf("without --key: %v", err)
	}
}

// Tools that do not exist are one row for each server, with the calls that have no lines of their own.
func TestUsageOfUnknownTools(t *testing.T) {
	unknown := func(call, server, tool string, kind audit.Kind, outcome string, more int) audit.Entry {
		e := end(call, server, tool, outcome, 1)
		e.Kind, e.Fault, e.More, e.Bytes = kind, "unknown", more, 0
		return e
	}
	failed := end("f", "jira", "create", "error", 1)
	failed.Fault, failed.More = "protocol", 3
	path := filled(t, &audit.Options{}, end("a", "jira", "create", "ok", 1), unknown("b", "jira", "guess1", audit.CallEnd, "error", 0), unknown("c", "jira", "guess2", audit.CallEnd, "error", 40),
		unknown("d", "web", "guess3", audit.Denied, "denied", 5), failed)
	u, err := opened(t, auditlog.Lines{File: path}).Usage([]string{"tool", "server"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range append(u.Rows, u.Total) {
		got = append(got, fmt.Sprint(r.Tool, " ", r.Server, " ", r.Calls, " ", r.Errors, " ", r.Denied, " ", r.Unsent))
	}
	want := []string{"(unknown) jira 42 0 0 42", "(unknown) web 6 0 6 0", "create jira 5 4 0 0", "  53 4 6 42"}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %q, want %q", got, want)
	}
	if l := opened(t, auditlog.Lines{File: path, Fault: "unknown"}); calls(t, l) != "bcd" {
		t.Error("--fault unknown does not select the calls of unknown tools")
	}
}

// The logs of two nodes that have noted each other are verified together. Each may have rotated files beside it.
func TestVerifyTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var logs, keys []string
		var nodes []*audit.Others
		for _, name := range []string{"n1", "n2"} {
			keys = append(keys, filepath.Join(dir, name+".key.pub"))
			key, err := audit.LoadKey(filepath.Join(dir, name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, filepath.Join(dir, name+".jsonl"))
			l, err := audit.Open(logs[len(logs)-1], &audit.Options{Key: key, Node: name, MaxBytes: 4 << 10, Sync: audit.SyncNone})
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, &audit.Others{Log: l, Publish: func(_ context.Context, m []byte) error {
				for _, n := range nodes {
					n.Receive(m)
				}
				return nil
			}})
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, n := range nodes {
			running.Go(func() { n.Run(ctx) })
		}
		for range 10 {
			for range 5 {
				if err := nodes[1].Log.Write(t.Context(), end("a", "s", "t", "ok", 1)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(20 * time.Second)
		}
		stop()
		running.Wait()
		for _, n := range nodes {
			if err := n.Log.Close(); err != nil {
				t.Fatal(err)
			}
		}
		plain := func(s, _ string) string { return s }
		files, err := audit.Files(logs[1])
		if err != nil || len(files) < 3 {
			t.Fatal(files, err)
		}
		for _, names := range [][]string{logs, append(slices.Clone(files), logs[0])} {
			c := &auditlog.Check{Files: names, Key: keys[:1]}
			if names[0] == logs[0] {
				c.Key = keys
			} else {
				c.Key = []string{keys[1], keys[0]}
			}
			v, err := c.Verify()
			if err != nil || !v.Whole() || len(v) != 2 {
				t.Fatalf("%v: %v, %v", names, v, err)
			}
			if text := strings.Join(v.Lines(plain), "\n"); strings.Count(text, " is whole: ") != 2 || strings.Count(text, " as other logs have noted them, log ") != 2 {
				t.Errorf("%s", text)
			}
		}
		if v, err := (&auditlog.Check{Files: logs, Key: keys[:1]}).Verify(); err != nil || v.Whole() || !v[0].Whole || v[1].Whole {
			t.Errorf("with the key of n1 alone: %v, %v", v, err)
		}

		// the newest file of n2 is gone, with FILE.head
		if err := errors.Join(os.Rename(files[len(files)-2], logs[1]), os.Remove(logs[1]+".head")); err != nil {
			t.Fatal(err)
		}
		v, err := (&auditlog.Check{Files: logs, Key: keys}).Verify()
		if err != nil || v.Whole() {
			t.Fatalf("%v, %v", v, err)
		}
		text := strings.Join(v.Lines(plain), "\n")
		if !strings.Contains(text, "cut: the end is gone: "+dir) || !strings.Contains(text, "--copied TIME") || strings.Contains(text, "--without") {
			t.Errorf("%s", text)
		}
		raw, err := jsonx.Marshal(v.JSON())
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Whole bool
			Logs  []struct {
				File, Log string
				Whole     bool
				Agreed    int
				Faults    []audit.Fault
			}
		}
		if err := json.Unmarshal(raw, &doc); err != nil || doc.Whole || len(doc.Logs) != 2 {
			t.Fatalf("%s, %v", raw, err)
		}
		if n1, n2 := doc.Logs[0], doc.Logs[1]; !n1.Whole || n1.File != logs[0] || n2.Whole || n2.File != logs[1] || n2.Agreed == 0 || len(n2.Faults) == 0 || n2.Log == "" {
			t.Errorf("%s", raw)
		}
		if v, err = (&auditlog.Check{Files: logs, Copied: "2h"}).Verify(); err != nil || !v.Whole() {
			t.Errorf("copied before: %v, %v", v, err)
		}
	})
}
