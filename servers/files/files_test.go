package files_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/files"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type args = map[string]any

// put makes files of a folder: names that end in a slash are folders.
func put(t testing.TB, dir string, contents map[string]string) {
	t.Helper()
	for name, text := range contents {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o777)
		} else {
			err = os.WriteFile(path, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func get(t testing.TB, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// png is the beginning of a picture.
const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

// example is a folder with a bit of everything.
func example(t testing.TB) string {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"README.md":             "# Example\n\nTODO: write it.\n",
		"a b#c%.txt":            "one\ntwo\nthree\nfour\nfive",
		"crlf.txt":              "one\r\ntwo\r\nthree\r\n",
		"empty":                 "",
		"latin1.txt":            "caf\xe9\n",
		"logo.png":              png,
		"program":               "\x7fELF\x02\x01\x01\x00\x00",
		"src/main.go":           "package main\n\nfunc main() {}\n",
		"src/deep/er/x.go":      "package er // todo\n",
		"src/deep/er/x_test.go": "package er\n",
		".git/config":           "[TODO]\n",
		".hidden":               "TODO\n",
		"node_modules/m/i.js":   "// TODO\n",
	})
	return dir
}

func newClient() *mcp.Client { return &mcp.Client{Name: "tester", Version: "1"} }

// newServer returns a server that closes its folders with the test: Windows does not remove open ones.
func newServer(t testing.TB, o files.Options) *mcp.Server {
	srv := files.New(o)
	t.Cleanup(func() { srv.Shutdown(context.Background()) })
	return srv
}

// connect opens a session with a server of the newest revision.
func connect(t *testing.T, o files.Options) *mcp.Session {
	t.Helper()
	return mcptest.Connect(t, newServer(t, o), newClient(), mcp.V2026_07_28)
}

// call calls a tool that succeeds.
func call(t *testing.T, s *mcp.Session, tool string, in args) *mcp.ToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, in)
	if err != nil {
		t.Fatalf("%s %v: %v", tool, in, err)
	}
	if res.IsError {
		t.Fatalf("%s %v: tool error %q", tool, in, res.Text())
	}
	return res
}

// refused calls a tool that answers with an error, and returns it.
func refused(t *testing.T, s *mcp.Session, tool string, in args) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), tool, in)
	if err != nil {
		t.Fatalf("%s %v: %v, want a tool error", tool, in, err)
	}
	if !res.IsError {
		t.Fatalf("%s %v = %q, want a tool error", tool, in, res.Text())
	}
	return res.Text()
}

// as reads what a tool answers as text.
func as[T any](t *testing.T, res *mcp.ToolResult) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(res.Text()), &v); err != nil {
		t.Fatalf("%q: %v", res.Text(), err)
	}
	return v
}

type entries struct {
	Path    string
	Entries []struct {
		Path, Type string
		Size       *int64
	}
	Matches []struct {
		Path, Type, Text string
		Line             int
	}
	Total int
	Note  string
}

func (e entries) paths() (list []string) {
	for _, x := range e.Entries {
		list = append(list, x.Path)
	}
	for _, m := range e.Matches {
		list = append(list, m.Path)
	}
	return list
}

func TestEveryRevision(t *testing.T) {
	var dir string
	mcptest.Every(t, func() *mcp.Server {
		dir = example(t)
		return newServer(t, files.Options{Roots: []string{dir}})
	}, newClient, func(t *testing.T, s *mcp.Session) {
		if got := as[entries](t, call(t, s, "list", nil)); got.Total != 10 || got.Entries[0].Path != ".hidden" || got.Entries[0].Type != "file" || *got.Entries[1].Size != 27 {
			t.Errorf("list = %+v", got)
		}
		for _, tool := range []string{"read", "read_file"} {
			if got := call(t, s, tool, args{"path": "src/main.go"}).Text(); got != "package main\n\nfunc main() {}\n" {
				t.Errorf("%s = %q", tool, got)
			}
		}
		review, err := s.GetPrompt(t.Context(), "code_review", map[string]string{"path": "src/main.go"})
		if err != nil || !strings.Contains(textOf(review), "\n\n```\npackage main\n\nfunc main() {}\n```") {
			t.Errorf("code_review = %v, %v", review, err)
		}
		many := call(t, s, "read_many", args{"paths": []string{"crlf.txt", "nosuch", "logo.png"}})
		if got := many.Text(); !strings.Contains(got, "==> crlf.txt <==\none\r\n") || !strings.Contains(got, `nosuch" does not exist`) {
			t.Errorf("read_many = %q", got)
		}
		if c, ok := many.Content[len(many.Content)-1].(mcp.ImageContent); !ok || string(c.Data) != png || c.MIMEType != "image/png" {
			t.Errorf("read_many ends with %#v", many.Content[len(many.Content)-1])
		}
		if got := call(t, s, "tree", nil).Text(); !strings.Contains(got, "└── src/\n    ├── deep/\n    │   └── er/\n    └── main.go\n") {
			t.Errorf("tree = %s", got)
		}
		if got := as[entries](t, call(t, s, "search", args{"glob": "*.go", "text": "todo|main"})).Matches; len(got) != 3 || got[0].Path != "src/deep/er/x.go" || got[0].Line != 1 || got[2].Text != "func main() {}" {
			t.Errorf("search = %+v", got)
		}
		if got := call(t, s, "info", args{"path": "logo.png"}).Text(); !strings.Contains(got, `"mime_type":"image/png"`) {
			t.Errorf("info = %s", got)
		}
		call(t, s, "write", args{"path": "new/file.txt", "content": "one\ntwo\n", "parents": true})
		diff := call(t, s, "edit", args{"path": "new/file.txt", "edits": []args{{"old_text": "two", "new_text": "2"}}}).Text()
		if want := "--- a/new/file.txt\n+++ b/new/file.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"; diff != want {
			t.Errorf("edit = %q, want %q", diff, want)
		}
		call(t, s, "move", args{"from": "new/file.txt", "to": "moved.txt"})
		if got := get(t, dir, "moved.txt"); got != "one\n2\n" {
			t.Errorf("moved.txt = %q", got)
		}
		testResource(t, s, dir)
		testSubscription(t, s, dir)
	})
}

// fileURI is the URI of a file in a folder.
func fileURI(t *testing.T, s *mcp.Session, path string) string {
	t.Helper()
	return as[struct{ URI string }](t, call(t, s, "info", args{"path": path})).URI
}

func testResource(t *testing.T, s *mcp.Session, dir string) {
	uri := fileURI(t, s, "a b#c%.txt")
	if !strings.HasPrefix(uri, "file:///") || !strings.HasSuffix(uri, "/a%20b%23c%25.txt") {
		t.Errorf("uri = %q", uri)
	}
	res, err := s.ReadResource(t.Context(), uri)
	if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != "one\ntwo\nthree\nfour\nfive" || res.Contents[0].URI != uri || res.Contents[0].MIMEType != "text/plain" {
		t.Errorf("read %s = %+v, %v", uri, res, err)
	}
	res, err = s.ReadResource(t.Context(), fileURI(t, s, "program"))
	if err != nil || string(res.Contents[0].Blob) != "\x7fELF\x02\x01\x01\x00\x00" || res.Contents[0].MIMEType != "application/octet-stream" {
		t.Errorf("read program = %+v, %v", res, err)
	}
	// Missing files and files outside get the same answer.
	for _, path := range []string{dir + "/nosuch", filepath.Dir(dir), os.DevNull} {
		u := "file://" + filepath.ToSlash(path)
		if filepath.Separator != '/' {
			u = "file:///" + filepath.ToSlash(path)
		}
		res, err := s.ReadResource(t.Context(), u)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || !strings.Contains(rpc.Message, "no resource") {
			t.Errorf("read %s = %v, %v; want no resource", u, res, err)
		}
	}
	n := 0
	for tmpl, err := range s.ResourceTemplates(t.Context()) {
		if err != nil || tmpl.URITemplate != "file:///{+path}" {
			t.Errorf("template %v, %v", tmpl, err)
		}
		n++
	}
	for r, err := range s.Resources(t.Context()) {
		t.Errorf("resources has %v, %v; want none", r, err)
	}
	if n != 1 {
		t.Errorf("%d templates, want 1", n)
	}
}

func TestCompletion(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	uri := fileURI(t, s, ".")
	root := strings.TrimPrefix(uri, "file:///")
	complete := func(prefix string) []string {
		t.Helper()
		res, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindResourceTemplate, Name: "file:///{+path}"}, "path", prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res.Values
	}
	tests := []struct {
		prefix string
		want   []string
	}{
		{"", []string{root + "/"}},
		{root[:len(root)/2], []string{root + "/"}},
		{root + "/src/", []string{root + "/src/deep/", root + "/src/main.go"}},
		{root + "/a", []string{root + "/a%20b%23c%25.txt"}},
		{root + "/a%20", []string{root + "/a%20b%23c%25.txt"}},
		{root + "/../", []string{}},
		{"etc/", []string{}},
		{"%zz", []string{}},
	}
	for _, tt := range tests {
		if got := complete(tt.prefix); !slices.Equal(got, tt.want) {
			t.Errorf("complete %q = %q, want %q", tt.prefix, got, tt.want)
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}, ReadOnly: true})
	var names []string
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
		if tool.Annotations == nil || tool.Annotations.ReadOnly == nil || !*tool.Annotations.ReadOnly {
			t.Errorf("%s is not marked as reading only", tool.Name)
		}
	}
	if want := []string{"roots", "list", "tree", "search", "info", "read", "read_file", "read_many"}; !slices.Equal(names, want) {
		t.Errorf("tools = %q, want %q", names, want)
	}
	if _, err := s.CallTool(t.Context(), "write", args{"path": "x", "content": ""}); err == nil {
		t.Error("write works")
	}
	if !strings.Contains(call(t, s, "roots", nil).Text(), `"read_only":true`) {
		t.Error("roots does not say that nothing can be changed")
	}
}

func TestAnnotations(t *testing.T) {
	s := connect(t, files.Options{Roots: []string{t.TempDir()}})
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		a := tool.Annotations
		reads := a.ReadOnly != nil && *a.ReadOnly
		writes := slices.Contains([]string{"write", "edit", "move"}, tool.Name)
		if reads == writes || writes && (a.Destructive == nil || a.Idempotent == nil) || a.OpenWorld == nil || *a.OpenWorld {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
}

func TestRead(t *testing.T) {
	dir := example(t)
	long := strings.Repeat("x", 300<<10)
	lines := strings.Repeat("0123456789abcde\n", 20_000)
	put(t, dir, map[string]string{"long": "first\n" + long + "\nlast\n", "lines": lines, "umlaut": strings.Repeat("ü", 200<<10)})
	s := connect(t, files.Options{Roots: []string{dir}})
	tests := []struct {
		name string
		in   args
		text string // what the first block is
		note string // part of the second, empty: there is none
	}{
		{"whole", args{"path": "README.md"}, "# Example\n\nTODO: write it.\n", ""},
		{"absolute", args{"path": filepath.Join(dir, "README.md")}, "# Example\n\nTODO: write it.\n", ""},
		{"not clean", args{"path": "./src/../README.md"}, "# Example\n\nTODO: write it.\n", ""},
		{"head", args{"path": "a b#c%.txt", "limit": 2}, "one\ntwo\n", "lines 1 to 2; the file goes on at offset 3"},
		{"middle", args{"path": "a b#c%.txt", "offset": 2, "limit": 2}, "two\nthree\n", "offset 4"},
		{"to the end", args{"path": "a b#c%.txt", "offset": 4}, "four\nfive", ""},
		{"limit is the rest", args{"path": "crlf.txt", "offset": 2, "limit": 2}, "two\r\nthree\r\n", ""},
		{"tail", args{"path": "a b#c%.txt", "tail": 2}, "four\nfive", ""},
		{"tail with end", args{"path": "crlf.txt", "tail": 1}, "three\r\n", ""},
		{"tail of all", args{"path": "a b#c%.txt", "tail": 50}, "one\ntwo\nthree\nfour\nfive", ""},
		{"empty", args{"path": "empty"}, "", "the file is empty"},
		{"tail of empty", args{"path": "empty", "tail": 3}, "", "the file is empty"},
		{"not UTF-8", args{"path": "latin1.txt"}, "caf\uFFFD\n", "1 byte is shown as U+FFFD"},
		{"too many lines", args{"path": "lines"}, lines[:256<<10], "lines 1 to 16384; the file goes on at offset 16385"},
		{"last lines", args{"path": "lines", "tail": 20_000}, lines[:256<<10], "the last 16384 lines"},
		{"before a long line", args{"path": "long"}, "first\n", "goes on at offset 2"},
		{"long line", args{"path": "long", "offset": 2}, long[:256<<10], "offset 3"},
		{"after a long line", args{"path": "long", "offset": 3}, "last\n", ""},
		{"tail after a long line", args{"path": "long", "tail": 2}, "last\n", "the last 1 line"},
		{"long line of characters", args{"path": "umlaut"}, strings.Repeat("ü", 128<<10), "cut"},
		{"tail of characters", args{"path": "umlaut", "tail": 1}, strings.Repeat("ü", 128<<10), "cut"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := call(t, s, "read", tt.in)
			if got := res.Content[0].(mcp.TextContent).Text; got != tt.text {
				t.Errorf("text of %d bytes %.60q, want %d bytes %.60q", len(got), got, len(tt.text), tt.text)
			}
			note := ""
			if len(res.Content) > 1 {
				note = res.Content[1].(mcp.TextContent).Text
			}
			if (note == "") != (tt.note == "") || !strings.Contains(note, tt.note) {
				t.Errorf("note %q, want %q", note, tt.note)
			}
		})
	}
	for _, tt := range []struct {
		in   args
		want string
	}{
		{args{"path": "src"}, "is a folder"},
		{args{"path": "nosuch"}, "does not exist"},
		{args{"path": "README.md", "offset": 4}, "there is no line 4; the file has 3 lines"},
		{args{"path": "a b#c%.txt", "offset": 9}, "has 5 lines"},
		{args{"path": "README.md", "tail": 1, "limit": 1}, "tail cannot be combined"},
		{args{"path": "logo.png", "limit": 1}, "not text by lines"},
		{args{"path": "../x"}, "outside of the roots"},
		{args{"path": filepath.Dir(dir)}, "outside of the roots"},
		{args{"path": "a\x00b"}, "is not a path"},
		{args{"path": strings.Repeat("a/", 5000)}, "the maximum is 4096"},
		{args{"path": "README.md/x"}, "README.md/x"},
	} {
		if got := refused(t, s, "read", tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("read %.60v = %q, want %q", tt.in, got, tt.want)
		}
	}
	res := call(t, s, "read", args{"path": "program"})
	r, ok := res.Content[0].(mcp.EmbeddedResource)
	if !ok || string(r.Resource.Blob) != "\x7fELF\x02\x01\x01\x00\x00" || !strings.HasPrefix(r.Resource.URI, "file:///") {
		t.Errorf("read program = %#v", res.Content)
	}
}

func TestReadIsBounded(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"half": 1 << 20, "blob": 2 << 20, "large": 2<<20 + 1, "huge": 1 << 40} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			t.Logf("%s: %v", name, err) // the file system has no such files
		}
		f.Close()
	}
	put(t, dir, map[string]string{"a": strings.Repeat("a\n", 100<<10), "b": strings.Repeat("b\n", 100<<10), "c": "c"})
	s := connect(t, files.Options{Roots: []string{dir}})
	call(t, s, "read", args{"path": "blob"})
	for _, name := range []string{"large", "huge"} {
		if got := refused(t, s, "read", args{"path": name}); !strings.Contains(got, "the maximum is 2097152") {
			t.Errorf("read %s = %q", name, got)
		}
		if _, err := s.ReadResource(t.Context(), fileURI(t, s, name)); err == nil || !strings.Contains(err.Error(), "the maximum is 2097152") {
			t.Errorf("resource %s: %v", name, err)
		}
	}
	got := call(t, s, "read_many", args{"paths": []string{"half", "blob", "a", "b", "c"}}).Text()
	if len(got) > 260<<10 || !strings.Contains(got, "goes on at offset") || !strings.Contains(got, "==> half <==\n==> blob <==\nerror: not read") || !strings.Contains(got, "==> c <==\nerror: not read") {
		t.Errorf("read_many answers %d bytes that end with %q", len(got), got[len(got)-200:])
	}
}

func TestList(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	got := as[entries](t, call(t, s, "list", args{"offset": 1, "limit": 3}))
	if want := []string{"README.md", "a b#c%.txt", "crlf.txt"}; !slices.Equal(got.paths(), want) || !strings.Contains(got.Note, "offset 4") {
		t.Errorf("list = %q, %q; want %q", got.paths(), got.Note, want)
	}
	if got := as[entries](t, call(t, s, "list", args{"path": "src", "offset": 99})); len(got.Entries) != 0 || got.Total != 2 || got.Note != "" {
		t.Errorf("list behind the end = %+v", got)
	}
	if got := refused(t, s, "list", args{"path": "empty"}); !strings.Contains(got, "is not a folder") {
		t.Errorf("list of a file = %q", got)
	}
}

func TestTree(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	want := `src
├── deep/
│   └── er/
│       ├── x.go
│       └── x_test.go
└── main.go
`
	if got := call(t, s, "tree", args{"path": "src", "depth": 9}).Text(); got != want {
		t.Errorf("tree = %s, want %s", got, want)
	}
	res := call(t, s, "tree", args{"path": "src", "depth": 1})
	if want := `{"path":"src","entries":[{"path":"src/deep","type":"folder","depth":1},{"path":"src/main.go","type":"file","depth":1,"size":29}]}`; string(res.Structured) != want {
		t.Errorf("tree = %s, want %s", res.Structured, want)
	}
	got := call(t, s, "tree", nil).Text()
	if strings.Contains(got, "config") || !strings.Contains(got, ".hidden") || !strings.Contains(got, "1 folder such as node_modules left out") || !strings.Contains(got, "1 entry withheld, such as .git") {
		t.Errorf("tree = %s", got)
	}
	if got := call(t, s, "tree", args{"all": true}).Text(); strings.Contains(got, "config") || !strings.Contains(got, "i.js") {
		t.Errorf("tree of all = %s", got)
	}
	if got := call(t, s, "tree", args{"limit": 2}).Text(); strings.Count(got, "\n") != 4 || !strings.Contains(got, "there are more entries") {
		t.Errorf("tree of 2 = %s", got)
	}
}

func TestSearch(t *testing.T) {
	dir := example(t)
	put(t, dir, map[string]string{"wide.txt": strings.Repeat("x", 5000) + "needle" + strings.Repeat("y", 5000) + "\n", "utf.txt": "Ünïcode\n"})
	s := connect(t, files.Options{Roots: []string{dir}})
	tests := []struct {
		name string
		in   args
		want []string
	}{
		{"by name, anywhere", args{"glob": "*.go"}, []string{"src/deep/er/x.go", "src/deep/er/x_test.go", "src/main.go"}},
		{"by path", args{"glob": "src/*.go"}, []string{"src/main.go"}},
		{"doublestar", args{"glob": "src/**/*.go"}, []string{"src/deep/er/x.go", "src/deep/er/x_test.go", "src/main.go"}},
		{"relative to the path", args{"path": "src/deep", "glob": "er/*"}, []string{"src/deep/er/x.go", "src/deep/er/x_test.go"}},
		{"choices", args{"glob": "*.{md,png}"}, []string{"README.md", "logo.png"}},
		{"folders too", args{"glob": "d??p"}, []string{"src/deep"}},
		{"case", args{"glob": "readme*"}, nil},
		{"any case", args{"glob": "readme*", "ignore_case": true}, []string{"README.md"}},
		{"by content", args{"text": "TODO"}, []string{".hidden", "README.md"}},
		{"by content in any case", args{"text": "todo", "ignore_case": true}, []string{".hidden", "README.md", "src/deep/er/x.go"}},
		{"all", args{"text": "TODO", "all": true}, []string{".hidden", "README.md", "node_modules/m/i.js"}},
		{"in a folder that is left out", args{"text": "TODO", "path": "node_modules"}, []string{"node_modules/m/i.js"}},
		{"in a file", args{"text": "^t", "path": "a b#c%.txt"}, []string{"a b#c%.txt", "a b#c%.txt"}},
		{"both", args{"text": "TODO", "glob": "*.md"}, []string{"README.md"}},
		{"at the end of lines", args{"text": "^two$", "path": "crlf.txt"}, []string{"crlf.txt"}},
		{"not in what is no text", args{"text": "ELF|PNG"}, nil},
		{"characters", args{"text": "ï.ode", "path": "utf.txt"}, []string{"utf.txt"}},
		{"empty lines", args{"text": "^$", "path": "README.md"}, []string{"README.md"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := as[entries](t, call(t, s, "search", tt.in)).paths(); !slices.Equal(got, tt.want) {
				t.Errorf("search %v = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
	got := as[entries](t, call(t, s, "search", args{"text": "needle"})).Matches
	if len(got) != 1 || len(got[0].Text) > 310 || !strings.Contains(got[0].Text, "xneedley") || !strings.HasPrefix(got[0].Text, "…") {
		t.Errorf("search in a long line = %+v", got)
	}
	if got := as[entries](t, call(t, s, "search", args{"text": ".", "limit": 3})); len(got.Matches) != 3 || !strings.Contains(got.Note, "may be more") {
		t.Errorf("search with a limit = %+v", got)
	}
	for _, in := range []args{
		{}, {"text": "("}, {"glob": "["}, {"glob": "{a"}, {"text": "x", "path": "nosuch"},
		{"glob": strings.Repeat("{a,a}", 40)}, {"glob": strings.Repeat("{"+strings.Repeat("a,", 20)+"}", 2)},
	} {
		refused(t, s, "search", in)
	}
}

func TestInfo(t *testing.T) {
	dir := example(t)
	s := connect(t, files.Options{Roots: []string{dir}})
	type info struct {
		Path, Absolute, URI, Type, Mode, Permission, Modified string
		MIME                                                  string `json:"mime_type"`
		Size                                                  *int64
		Text                                                  *bool
	}
	got := as[info](t, call(t, s, "info", args{"path": "src/main.go"}))
	if got.Type != "file" || *got.Size != 29 || !*got.Text || got.MIME != "text/x-go" || got.Absolute != filepath.Join(dir, "src", "main.go") || got.Modified == "" || len(got.Permission) != 4 {
		t.Errorf("info = %+v", got)
	}
	if got := as[info](t, call(t, s, "info", args{"path": got.URI})); got.Path != "src/main.go" {
		t.Errorf("info by URI = %+v", got)
	}
	if got := as[info](t, call(t, s, "info", args{"path": "src"})); got.Type != "folder" || got.Size != nil || got.MIME != "" {
		t.Errorf("info of a folder = %+v", got)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"old": "old", "folder/": ""})
	s := connect(t, files.Options{Roots: []string{dir}})
	if got := call(t, s, "write", args{"path": "new", "content": "new"}).Text(); got != `{"path":"new","bytes":3,"created":true}` {
		t.Errorf("write = %s", got)
	}
	for _, tt := range []struct {
		in   args
		want string
	}{
		{args{"path": "old", "content": "x"}, "exists; edit it, or set overwrite"},
		{args{"path": "a/b/new", "content": "x"}, "set parents"},
		{args{"path": "folder", "content": "x", "overwrite": true}, "is a folder"},
		{args{"path": ".", "content": "x"}, "is a root"},
		{args{"path": "../x", "content": "x"}, "outside"},
		{args{"path": "x", "content": "?", "encoding": "base64"}, "base64"},
		{args{"path": "old/x", "content": "x", "parents": true}, "old/x"},
	} {
		if got := refused(t, s, "write", tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("write %v = %q, want %q", tt.in, got, tt.want)
		}
	}
	call(t, s, "write", args{"path": "old", "content": "new", "overwrite": true})
	call(t, s, "write", args{"path": "a/b/new", "content": base64.StdEncoding.EncodeToString([]byte(png)), "encoding": "base64", "parents": true})
	if get(t, dir, "old") != "new" || get(t, dir, "a", "b", "new") != png {
		t.Error("what was written is not there")
	}
	for _, e := range as[entries](t, call(t, s, "list", nil)).paths() {
		if strings.Contains(e, ".patchbay-") {
			t.Errorf("%s was left behind", e)
		}
	}
}

func TestMove(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	put(t, one, map[string]string{"a": "a", "b": "b", "d/x": "x", "empty/": ""})
	s := connect(t, files.Options{Roots: []string{one, two}})
	r1, r2 := filepath.Base(one), filepath.Base(two)
	for _, tt := range []struct{ from, to, want string }{
		{"a", "b", "begin with the name of a root"},
		{r1 + "/a", r1 + "/b", "exists, and move never replaces a file"},
		{r1 + "/a", r1 + "/a", "exists"},
		{r1 + "/d", r1 + "/empty", "exists"},
		{r1 + "/d", r1 + "/d/e", "into itself"},
		{r1 + "/nosuch", r1 + "/n", "does not exist"},
		{r1, r1 + "/n", "is a root"},
		{r1 + "/a", r1 + "/n/a", "set parents"},
		{r1 + "/d", r2 + "/d", "is not a regular file"},
		{r1 + "/a", r1 + "/../../x", "outside"},
	} {
		if got := refused(t, s, "move", args{"from": tt.from, "to": tt.to}); !strings.Contains(got, tt.want) {
			t.Errorf("move %s %s = %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
	call(t, s, "move", args{"from": r1 + "/a", "to": r1 + "/n/a", "parents": true})
	call(t, s, "move", args{"from": r1 + "/d", "to": r1 + "/e"})
	call(t, s, "move", args{"from": r1 + "/e/x", "to": filepath.Join(two, "y")})
	if get(t, one, "n", "a") != "a" || get(t, two, "y") != "x" || get(t, one, "b") != "b" {
		t.Error("what was moved is not there")
	}
	if _, err := os.Stat(filepath.Join(one, "e", "x")); err == nil {
		t.Error("what was carried is still there")
	}
	if got := refused(t, s, "move", args{"from": r1 + "/b", "to": r2 + "/y"}); !strings.Contains(got, "exists") || get(t, two, "y") != "x" {
		t.Errorf("move over a file of another root = %q", got)
	}
}
