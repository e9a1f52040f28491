package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/recording"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/timeline"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/trace"
)

// pageVisitor asks a page as a browser with a link does.
type pageVisitor struct {
	t      *testing.T
	page   *inspector.Page
	cookie string
}

func visitPage(t *testing.T, page *inspector.Page) *pageVisitor {
	v := &pageVisitor{t: t, page: page}
	_, code, _ := strings.Cut(page.Link(nil), "#in=")
	w := v.do(http.MethodPost, "ui/in", fmt.Sprintf(`{"code":%q}`, code))
	v.cookie, _, _ = strings.Cut(w.Header().Get("Set-Cookie"), ";")
	if v.cookie == "" {
		t.Fatalf("the link does not let in: HTTP %d %s", w.Code, w.Body)
	}
	return v
}

func (v *pageVisitor) do(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(v.t.Context(), method, v.page.URL+path, strings.NewReader(body))
	for name, value := range map[string]string{"Sec-Fetch-Site": "same-origin", "Patchbay-Page": "1", "Content-Type": "application/json", "Cookie": v.cookie} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	v.page.ServeHTTP(w, r)
	return w
}

// get reads a document of the page.
func (v *pageVisitor) get(path string, into any) {
	v.t.Helper()
	w := v.do(http.MethodGet, path, "")
	if err := json.Unmarshal(w.Body.Bytes(), into); w.Code != http.StatusOK || err != nil {
		v.t.Fatalf("%s: HTTP %d %s (%v)", path, w.Code, w.Body, err)
	}
}

// A recording in the page has the frames that patchbay trace prints, each in a row with the same method, target, id and
// outcome.
func TestRecordingInThePage(t *testing.T) {
	sessions, err := filepath.Glob("../../mcp/testdata/session-*.txt")
	if err != nil || len(sessions) < 5 {
		t.Fatalf("%d recordings, %v", len(sessions), err)
	}
	for _, path := range sessions {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, body, ok := bytes.Cut(text, []byte("-- trace.jsonl --\n"))
			file := filepath.Join(t.TempDir(), "trace.jsonl")
			if err := os.WriteFile(file, body, 0o600); err != nil || !ok {
				t.Fatalf("%v, with a trace: %t", err, ok)
			}
			page := &inspector.Page{Local: localPerson(), Logger: slog.New(slog.DiscardHandler)}
			w, err := recording.Show(t.Context(), file, page)
			if err != nil {
				t.Fatal(err)
			}
			defer w.End(t.Context(), 0)
			v := visitPage(t, page)
			var lines []string
			view := &timeline.View{}
			for f, err := range trace.Read(bytes.NewReader(body)) {
				if err != nil {
					t.Fatal(err)
				}
				l, _ := view.Lines(&f)
				lines = append(lines, l[len(l)-1])
			}

			type row struct {
				N                                      int
				Method, Target, ID, Status, Text, Kind string
			}
			var list struct{ Rows []row }
			v.get("ui/rows?limit=1000", &list)
			seen := map[int]bool{}
			want := func(n int, parts ...string) {
				for _, part := range parts {
					if n < 1 || n > len(lines) || !strings.Contains(lines[n-1], strings.Trim(part, `"`)) {
						t.Errorf("the row of frame %d has %q, and patchbay trace prints %q", n, part, lines[max(n-1, 0):min(n, len(lines))])
					}
				}
			}
			for _, r := range list.Rows {
				var d struct{ Sides []struct{ N int } }
				v.get(fmt.Sprint("ui/row/", r.N), &d)
				for _, s := range d.Sides {
					seen[s.N] = true
				}
				want(r.N, r.Method, r.Target, r.ID)
				if r.Kind == "request" {
					answer := d.Sides[len(d.Sides)-1].N
					switch r.Status {
					case "ok":
						want(answer, r.Method, r.ID, "answered")
					case "tool error":
						want(answer, r.ID, "answered with a tool error")
					case "error":
						want(answer, r.ID, r.Text)
					}
				}
			}
			if len(seen) != len(lines) || len(lines) == 0 {
				t.Errorf("patchbay trace prints %d frames, and the rows have %d", len(lines), len(seen))
			}
		})
	}
}

// The page of a recording decides about its calls as patchbay policy replay does, and names the command that mocks it.
func TestPolicyOnRecordingInThePage(t *testing.T) {
	dir := t.TempDir()
	file, rules := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "new.yaml")
	policy := "rules:\n  - {name: reads, when: 'name == \"query\"', effect: allow}\n"
	text := ""
	for i, tool := range []string{"query", "drop"} {
		text += fmt.Sprintf(`{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}}`+"\n"+`{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}}`+"\n", i, tool, i)
	}
	for path, text := range map[string]string{file: text, rules: policy} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := &inspector.Page{Local: localPerson(), Logger: slog.New(slog.DiscardHandler)}
	w, err := recording.Show(t.Context(), file, page)
	if err != nil {
		t.Fatal(err)
	}
	defer w.End(t.Context(), 0)
	v := visitPage(t, page)
	var list struct{ Mock string }
	if v.get("ui/recordings", &list); !strings.HasPrefix(list.Mock, "patchbay mock ") || !strings.Contains(list.Mock, "t.jsonl") {
		t.Errorf("the command is %q", list.Mock)
	}
	body, err := json.Marshal(map[string]string{"policy": policy, "server": "db"})
	if err != nil {
		t.Fatal(err)
	}
	var got inspector.Answer
	if w := v.do(http.MethodPost, "ui/judge", string(body)); json.Unmarshal(w.Body.Bytes(), &got) != nil || len(got.Rows) != 2 {
		t.Fatalf("the answer: HTTP %d %s", w.Code, w.Body)
	}
	var out, said bytes.Buffer
	run(t.Context(), []string{"policy", "replay", file, "--policy", rules, "-s", "db", "--json"}, strings.NewReader(""), &out, &said)
	var told struct {
		Calls []struct {
			Line             int
			Server, Tool     string
			Allowed, Differs bool
		}
	}
	if err := json.Unmarshal(out.Bytes(), &told); err != nil || len(told.Calls) != 2 {
		t.Fatalf("policy replay: %v, %s%s", err, out.String(), said.String())
	}
	for i, c := range told.Calls {
		now := map[bool]string{true: "allowed", false: "! refused"}[c.Allowed]
		if row := got.Rows[i]; row[0] != fmt.Sprint(c.Line) || row[1] != c.Server+"/"+c.Tool || row[3] != now {
			t.Errorf("the page says %q, policy replay %+v", row, c)
		}
	}
	if got.Rows[1][3] != "! refused" {
		t.Errorf("the rows are %q", got.Rows)
	}
}
