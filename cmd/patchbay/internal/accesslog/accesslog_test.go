package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// noFault fails the test when a log has a fault.
func noFault(t *testing.T) func(error) {
	return func(err error) { t.Error("the log has a fault: ", err) }
}

// Each request of every revision has a line with its caller and outcome, and so have requests that
// are refused before; arguments, results and credentials have none.
func TestLines(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			var out bytes.Buffer
			log := New(&out, noFault(t))
			srv := &mcp.Server{Name: "s"}
			mcp.AddTool(srv, mcp.Tool{Name: "say"}, func(_ context.Context, in struct {
				Word string `json:"word"`
			}) (string, error) {
				return in.Word, nil
			})
			mcp.AddTool(srv, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("secret text") })
			mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{URITemplate: "x://{+rest}", Name: "any"}, func(_ context.Context, in struct {
				Rest string `json:"rest"`
			}) (string, error) {
				return in.Rest, nil
			})
			srv.Use(log.Middleware())
			guard := &auth.Guard{
				Verifiers: []auth.Verifier{&auth.APIKeys{Keys: []auth.APIKey{entry}}},
				Refused:   func(r *http.Request, _ string, err error) { Refused(r, err) },
			}
			hs := httptest.NewServer(log.Handler("http", guard.Protect(log.Caller(srv))))
			defer hs.Close()

			res, err := http.Post(hs.URL+"/mcp?secret=text", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, hs.URL+"/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Authorization": {"Bearer " + key}, "Mcp-Session-Id": {"nosuch"}}
			if res, err = http.DefaultClient.Do(req); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			s, err := (&mcp.Client{Revisions: []mcp.Revision{rev}, Header: http.Header{"Authorization": {"Bearer " + key}}}).Dial(t.Context(), hs.URL+"/mcp")
			if err != nil {
				t.Fatal(err)
			}
			s.CallTool(t.Context(), "say", map[string]any{"word": "secret text"})
			s.CallTool(t.Context(), "fail", nil)
			s.CallTool(t.Context(), "no\nsuch\u009b\u202e", nil)
			s.ReadResource(t.Context(), "x://user:secret@host/page?token=secret#secret")
			s.Close()
			hs.Close()
			log.Close()

			got := out.String()
			for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
				if !json.Valid([]byte(line)) {
					t.Errorf("not a line of JSON: %q", line)
				}
			}
			const head, who = `(?m)^{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","transport":"http","address":"127\.0\.0\.1"`, `,"caller":"apikey#alice","id":"\d+"`
			for _, want := range []string{
				head + `,"http":"POST /mcp","status":401,"ms":[0-9.]+,"outcome":"denied","reason":"the request has no credential"}$`,
				head + `,"caller":"apikey#alice","http":"DELETE /mcp","status":4\d\d,"ms":[0-9.]+,"outcome":"error"}$`,
				head + who + `,"status":200,"method":"tools/call","tool":"say","ms":[0-9.]+,"outcome":"ok"}$`,
				head + who + `,"status":200,"method":"tools/call","tool":"fail","ms":[0-9.]+,"outcome":"tool error"}$`,
				head + who + `,"status":[24]00,"method":"tools/call","tool":"no\\nsuch\\u009b\\u202e","ms":[0-9.]+,"outcome":"error","code":-32602}$`,
				head + who + `,"status":200,"method":"resources/read","uri":"x://[^"]*host/page[^"]*","ms":[0-9.]+,"outcome":"ok"}$`,
			} {
				if n := len(regexp.MustCompile(want).FindAllString(got, -1)); n != 1 {
					t.Errorf("%d lines match %s in\n%s", n, want, got)
				}
			}
			if strings.Contains(got, "secret") || strings.Contains(got, key) {
				t.Errorf("the log has a secret:\n%s", got)
			}
		})
	}
}

// The line of a request has the status of its HTTP answer, also if the answer begins before the request
// has ended. There is none for a request over a WebSocket, or if the client has gone before the answer.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		name, method string
		serve        func(w http.ResponseWriter, call func())
		want         string
	}{
		{"after the request", "POST", func(w http.ResponseWriter, call func()) { call(); call(); w.WriteHeader(403) }, "403 403"},
		{"after a hint", "POST", func(w http.ResponseWriter, call func()) { w.WriteHeader(103); call(); w.WriteHeader(429) }, "429"},
		{"without WriteHeader", "POST", func(w http.ResponseWriter, call func()) { call(); io.WriteString(w, "x") }, "200"},
		{"a stream", "POST", func(w http.ResponseWriter, call func()) { io.WriteString(w, "x"); call() }, "200"},
		{"an empty answer", "POST", func(_ http.ResponseWriter, call func()) { call() }, "200"},
		{"a WebSocket", "GET", func(w http.ResponseWriter, call func()) { w.WriteHeader(101); call() }, "0"},
		{"a client that has gone", "POST", nil, "0"},
	} {
		var out bytes.Buffer
		log := New(&out, noFault(t))
		ctx, leave := context.WithCancel(t.Context())
		h := log.Middleware()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil }))
		log.Handler("http", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			call := func() { h.Handle(r.Context(), &mcp.Request{Method: "tools/call"}) }
			if tt.serve == nil {
				call()
				leave()
				return
			}
			tt.serve(w, call)
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, "/mcp", nil).WithContext(ctx))
		leave()
		log.Close()
		var got []string
		for line := range strings.Lines(out.String()) {
			var l struct{ Status int }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Error(err)
			}
			got = append(got, strconv.Itoa(l.Status))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: the status is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A log is a file for its user alone. It is appended to, and continues in a new file when it is renamed.
func TestRotation(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename an open file")
	}
	path := filepath.Join(t.TempDir(), "log")
	for range 2 {
		log, err := Open(path, nil, noFault(t))
		if err != nil {
			t.Fatal(err)
		}
		log.write(line{Method: "first"})
		log.Close()
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Count(string(content), `"first"`) != 2 {
		t.Fatalf("the file has %s, %v", content, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	log, err := Open(path, nil, noFault(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		log.write(line{Method: "second"})
		if content, err = os.ReadFile(path); len(content) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the log does not continue in a new file: ", err)
		}
	}
	log.Close()
	if first, _ := os.ReadFile(path + ".1"); strings.Count(string(first), `"first"`) != 2 || strings.Contains(string(content), `"first"`) {
		t.Errorf("lines of before the rename are in the wrong file:\n%s\n%s", first, content)
	}
}

// A path that cannot be opened is an error at once.
func TestOpenBadPath(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "no", "such", "folder", "log"), ""} {
		if log, err := Open(path, nil, noFault(t)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Open(%q) = %v, %v", path, log, err)
		}
	}
}

// disk is a writer that is full at times.
type disk struct {
	mu   sync.Mutex
	full bool // guarded by mu
	out  bytes.Buffer
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		n, _ := d.out.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return d.out.Write(p)
}

// A full disk is reported once, and its end. Lines are whole again as soon as it has room, and the first one counts
// those that were lost.
func TestFullDisk(t *testing.T) {
	d, faults := new(disk), make(chan error, 100)
	l := start(&lines{sink: d, fault: func(err error) { faults <- err }})
	l.write(line{Method: "before"})
	l.lines.close() // the test writes in place of the goroutine
	d.full = true
	for range 3 {
		l.lines.write([]byte(`{"method":"lost"}` + "\n"))
	}
	d.full = false
	l.lines.write([]byte(`{"method":"after"}` + "\n"))
	l.lines.write([]byte(`{"method":"last"}` + "\n"))
	if len(faults) != 2 || <-faults == nil || <-faults != nil {
		t.Error("not one fault was reported, and then its end")
	}
	got := d.out.String()
	if !regexp.MustCompile(`"before".*\n(.*\n)+{"time":"[^"]+","lost":3}\n{"method":"after"}\n{"method":"last"}\n$`).MatchString(got) {
		t.Errorf("the log is\n%s", got)
	}
}

// Requests do not wait for a file that does not take lines, and the end waits only for a while.
func TestBlockedFile(t *testing.T) {
	r, w := io.Pipe()
	faults := make(chan error, 100)
	l := New(w, func(err error) { faults <- err })
	began := time.Now()
	for range 2 * maxWaiting {
		l.write(line{Method: "tools/call"})
	}
	l.Close()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%d lines took %v", 2*maxWaiting, took)
	}
	if len(faults) != 1 {
		t.Errorf("%d faults were reported, want the one of Close", len(faults))
	}
	l.write(line{Method: "after the end"})
	r.Close() // the goroutine ends
	<-l.lines.done
}

// A log whose disk is full has whole lines only, and so has one that an earlier program left torn.
func TestWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"time":"2026`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(path, nil, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	l.write(line{Method: "first"})
	l.lines.close() // the test writes in place of the goroutine
	f, err := ownfile.Sink(path, os.O_APPEND, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.lines.file, l.lines.looked = f, time.Now().Add(time.Hour)
	l.lines.sink = half{f}
	l.lines.write([]byte(`{"method":"half"}` + "\n"))
	content, err := os.ReadFile(path)
	if got := strings.Split(string(content), "\n"); err != nil || len(got) != 3 || !json.Valid([]byte(got[1])) || got[2] != "" {
		t.Errorf("a full disk leaves %q, %v", content, err)
	}
	l.lines.sink = f
	l.lines.write([]byte(`{"method":"after"}` + "\n"))
	f.Close()
	content, _ = os.ReadFile(path)
	if !regexp.MustCompile(`"first".*\n{"time":"[^"]+","lost":1}\n{"method":"after"}\n$`).Match(content) {
		t.Errorf("the log is %s", content)
	}
}

// half is a file on a full disk.
type half struct{ f *os.File }

func (h half) Write(p []byte) (int, error) {
	n, _ := h.f.Write(p[:len(p)/2])
	return n, errors.New("no space left on device")
}

// While a removed log cannot be opened again, its lines are counted as lost; those of a renamed one go
// on in its file.
func TestPathAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename or remove an open file")
	}
	for _, remove := range []bool{true, false} {
		dir := t.TempDir()
		path, moved := filepath.Join(dir, "a", "log"), filepath.Join(dir, "b")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var faults []error
		l, err := Open(path, nil, func(err error) { faults = append(faults, err) })
		if err != nil {
			t.Fatal(err)
		}
		file := l.lines.file
		l.lines.file = nil // Close leaves it open
		l.lines.close()
		l.lines.file = file // the test writes in place of the goroutine
		put := func(later time.Duration) {
			l.lines.looked = time.Now().Add(-later)
			l.lines.write([]byte("{}\n"))
		}
		put(0)
		if remove {
			if err = os.Remove(path); err == nil {
				err = os.Mkdir(path, 0o700)
			}
		} else {
			err = os.Rename(filepath.Dir(path), moved)
		}
		if err != nil {
			t.Fatal(err)
		}
		put(0)
		put(time.Hour)
		put(0)
		put(time.Hour)
		want := map[bool]string{true: "lines are lost: ", false: "lines go on in the renamed file: "}[remove]
		if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), want) {
			t.Errorf("the faults are %v, want %q", faults, want)
		}
		if remove {
			err = os.Remove(path)
		} else {
			err = os.Mkdir(filepath.Dir(path), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		put(time.Hour)
		put(0)
		if len(faults) != 2 || faults[1] != nil {
			t.Errorf("the faults are %v, want one and its end", faults)
		}
		l.lines.file.Close()
		content, err := os.ReadFile(path)
		old, _ := os.ReadFile(filepath.Join(moved, "log"))
		if remove && !regexp.MustCompile(`^{"time":"[^"]+","lost":5}\n{}\n{}\n$`).Match(content) || !remove && (string(content) != "{}\n{}\n" || string(old) != strings.Repeat("{}\n", 5)) {
			t.Errorf("remove %v: the log is %q after %q, %v", remove, content, old, err)
		}
	}
}

// The log is not mixed into the stream of a server over stdio.
func TestOpenWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Open(path, f, noFault(t)); err == nil || !strings.Contains(err.Error(), "standard output") {
		t.Errorf("Open = %v", err)
	}
}

// A client chooses neither the length of a line nor that a line has a secret, also with a method of
// HTTP or a URI that Go does not parse.
func TestHostileLines(t *testing.T) {
	var out bytes.Buffer
	log := New(&out, noFault(t))
	h := log.Middleware()(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil }))
	for _, uri := range []string{"evil://h/a%zz?token=secret", "evil://h/a\x7f?x=secret", "evil://me:secret@h/a%zz", "evil://h/a#secret%zz", "evil:a;password=secret", "evil://h/a" + strings.Repeat("x", 1<<20)} {
		params, _ := json.Marshal(map[string]string{"uri": uri})
		h.Handle(t.Context(), &mcp.Request{Method: "resources/read", Params: params})
	}
	refuse := log.Handler("http", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }))
	r := httptest.NewRequest("GET", "/mcp", nil)
	r.Method = strings.Repeat("X", 60_000)
	refuse.ServeHTTP(httptest.NewRecorder(), r)
	log.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 7 || !strings.Contains(lines[6], `"http":"XXXX`) {
		t.Errorf("%d lines: %.2000s", len(lines), out.String())
	}
	for i, line := range lines {
		if strings.Contains(line, "secret") || len(line) > 1000 || i < 6 && !regexp.MustCompile(`"uri":"evil:(//h/)?a`).MatchString(line) {
			t.Errorf("%.2000s", line)
		}
	}
}
