package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// callOf is a call of a tool in a file, with its answer.
func callOf(id int, tool string) string {
	return fmt.Sprintf(`{"time":"2026-11-24T12:00:00Z","dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}}`+"\n"+
		`{"time":"2026-11-24T12:00:01Z","dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}}`+"\n", id, tool, id)
}

// The page lists the files of its folder and shows one like the wire; no other file of the machine can be named.
func TestRecordings(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "frames")
	older, newer := "trace-2026-11-23-090012-k3f7q2-0001.jsonl", "trace-2026-11-24-090012-k3f7q2-0002.jsonl"
	for name, text := range map[string]string{
		"frames/" + older: callOf(1, "old"), "frames/" + newer: callOf(1, "new") + callOf(2, "newest"), "frames/other.jsonl": callOf(1, "no"), "secret.jsonl": callOf(1, "no"),
		"frames/trace-2026-11-25-090012-k3f7q2-0003.jsonl": "", "frames/trace-2026-11-25-090012-k3f7q2-0004.jsonl": "no frame\n",
	} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := "trace-2026-11-26-090012-k3f7q2-0005.jsonl"
	if err := os.Symlink(filepath.Join(dir, "secret.jsonl"), filepath.Join(folder, link)); err != nil {
		link = older + "x"
	}
	p := &Page{Frames: recorded(t, `{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"live"}}}`), Files: folder, Report: func() *health.Report { return new(health.Report) }}
	ask := visit(t, p)
	list := ask("GET", "/ui/recordings", "").Body.String()
	mock, _ := json.Marshal(mockCommand(filepath.Join(folder, newer)))
	if !strings.Contains(string(mock), "patchbay mock ") || !strings.Contains(list, `"mock":`+string(mock)) || strings.Contains(list, "other.jsonl") || strings.Contains(list, "0005") || strings.Index(list, newer) > strings.Index(list, older) {
		t.Errorf("the list is %s", list)
	}
	if got := ask("GET", "/ui/rows?after=0&file="+newer, "").Body.String(); !strings.Contains(got, `"target":"newest"`) || strings.Contains(got, "live") || !strings.Contains(got, `"ms":1000`) {
		t.Errorf("the rows of a file are %s", got)
	}
	for _, path := range []string{"/ui/row/3?file=" + newer, "/ui/compare?from=1&to=3&file=" + newer, "/ui/trace?q=target:newest&file=" + newer} {
		if w := ask("GET", path, ""); w.Code != 200 || !strings.Contains(w.Body.String(), "newest") || strings.Contains(w.Body.String(), "live") {
			t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/ui/rows", "/ui/row/1", "/ui/trace"} {
		if w := ask("GET", path, ""); !strings.Contains(w.Body.String(), "live") {
			t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
		}
	}
	// A file that has grown is read again from its beginning, and not while somebody scrolls.
	if err := os.WriteFile(filepath.Join(folder, newer), []byte(callOf(1, "new")+callOf(2, "newest")+callOf(3, "last")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask("GET", "/ui/rows?after=1&file="+newer, "").Body.String(); strings.Contains(got, "last") {
		t.Errorf("rows after the first have changed: %s", got)
	}
	if got := ask("GET", "/ui/rows?after=0&file="+newer, "").Body.String(); !strings.Contains(got, "last") {
		t.Errorf("a file that has grown is %s", got)
	}
	for name, status := range map[string]int{
		"other.jsonl": 404, "../secret.jsonl": 404, "../frames/" + newer: 404, filepath.Join(folder, newer): 404, "/etc/passwd": 404, link: 404, "x\x00": 404, ".": 404,
		"trace-2026-11-25-090012-k3f7q2-0003.jsonl": 409, "trace-2026-11-25-090012-k3f7q2-0004.jsonl": 409,
	} {
		for _, path := range []string{"/ui/rows?file=", "/ui/row/1?file=", "/ui/compare?from=1&to=1&file=", "/ui/trace?file="} {
			if w := ask("GET", path+url.QueryEscape(name), ""); w.Code != status || strings.Contains(w.Body.String(), "root:") {
				t.Errorf("%s%q: HTTP %d %s", path, name, w.Code, w.Body)
			}
		}
	}
}

// Rules are tried on the wire and on files, for administrators alone, and bad requests say what is wrong.
func TestJudge(t *testing.T) {
	folder := t.TempDir()
	name := "trace-2026-11-24-090012-k3f7q2-0001.jsonl"
	if err := os.WriteFile(filepath.Join(folder, name), []byte(callOf(1, "kept")), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Page{Frames: recorded(t, `{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"live","arguments":{"password":"planted"}}}}`), Files: folder, Report: func() *health.Report { return new(health.Report) }}
	p.Judge = func(_ context.Context, rules []byte, by *Access, in io.Reader) (*Answer, error) {
		raw, err := io.ReadAll(in)
		if string(rules) == "bad" {
			return nil, fmt.Errorf("line 1 is bad")
		}
		return &Answer{Summary: by.Principal + " " + string(raw)}, err
	}
	ask := visit(t, p)
	for _, tt := range []struct {
		body string
		code int
		want string
	}{
		{`{"policy":"rules: []","file":"` + name + `","principal":"apikey#ada"}`, 200, "apikey#ada"},
		{`{"policy":"rules: []","file":"` + name + `"}`, 200, "kept"},
		{`{"policy":"rules: []"}`, 200, "live"},
		{`{"policy":"bad"}`, 400, "line 1 is bad"},
		{`{"policy":""}`, 400, "the policy is empty"},
		{`{"policy":"x","file":"../x"}`, 404, "no recording of this program"},
		{`{"policy":"x","tool":"y"}`, 400, "unknown field"},
		{`{"policy":"` + strings.Repeat("x", maxPolicy) + `"}`, 413, "has more than"},
	} {
		if w := ask("POST", "/ui/judge", tt.body); w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) || strings.Contains(w.Body.String(), "planted") {
			t.Errorf("%.100s: HTTP %d %s, want %d %s", tt.body, w.Code, w.Body, tt.code, tt.want)
		}
	}
	p.Judge = nil
	if w := ask("POST", "/ui/judge", `{"policy":"x"}`); w.Code != http.StatusNotFound {
		t.Errorf("without rules: HTTP %d", w.Code)
	}
}

// Recordings are traffic of others, so only administrators see and try them.
func TestRecordingsAreForAdministrators(t *testing.T) {
	p := &Page{Frames: new(Frames), Report: func() *health.Report { return new(health.Report) }}
	p.route()
	for _, path := range []string{"GET /ui/recordings", "POST /ui/judge", "GET /ui/rows?file=x"} {
		method, at, _ := strings.Cut(path, " ")
		r := asked(method, at, `{}`)
		w := httptest.NewRecorder()
		p.mux.ServeHTTP(w, r.WithContext(asPerson(r.Context(), bob)))
		if w.Code != http.StatusForbidden {
			t.Errorf("%s by bob: HTTP %d %s", path, w.Code, w.Body)
		}
	}
}
