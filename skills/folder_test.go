package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/skills"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// manifest is a SKILL.md.
func manifest(name string) *fstest.MapFile {
	return file("---\nname: " + name + "\ndescription: About " + name + ".\n---\n\n# " + name + "\n")
}

// folder is a folder of three skills, one of them nested in another.
func folder() fstest.MapFS {
	return fstest.MapFS{
		"README.md":                         file("not part of any skill"),
		".git/config":                       file("hidden"),
		"pdf/SKILL.md":                      manifest("pdf"),
		"pdf/.draft.md":                     file("hidden"),
		"pdf/forms/a b.md":                  file("# A b\n"),
		"pdf/forms/raw.bin":                 file("\x00\xff"),
		"acme/billing/refunds/SKILL.md":     manifest("refunds"),
		"acme/billing/refunds/vip/SKILL.md": manifest("vip"),
		"acme/billing/refunds/empty.txt":    file(""),
	}
}

func served(t testing.TB, files fstest.MapFS) (*mcp.Server, *skills.Folder) {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1"}
	f, err := skills.Serve(srv, files)
	if err != nil {
		t.Fatal(err)
	}
	return srv, f
}

func client() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }

// uris returns the URIs of the skills that a server lists.
func uris(t testing.TB, s *mcp.Session) []string {
	t.Helper()
	var out []string
	for skill, err := range skills.List(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, skill.URI)
	}
	return out
}

// Skills are listed, got and read on every revision and wire, and the files match their entries.
func TestSkills(t *testing.T) {
	newServer := func() *mcp.Server { s, _ := served(t, folder()); return s }
	mcptest.Every(t, newServer, client, func(t *testing.T, s *mcp.Session) {
		want := []string{"skill://acme/billing/refunds/SKILL.md", "skill://acme/billing/refunds/vip/SKILL.md", "skill://pdf/SKILL.md"}
		if got := uris(t, s); !slices.Equal(got, want) {
			t.Fatalf("List = %q, want %q", got, want)
		}
		skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
		if err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, f := range skill.Files {
			files = append(files, strings.TrimPrefix(f.URI, "skill://pdf/"))
		}
		if got, want := fmt.Sprint(skill.Name, "|", skill.Description, "|", files), "pdf|About pdf.|[SKILL.md forms/a%20b.md forms/raw.bin]"; got != want {
			t.Errorf("Get = %s, want %s", got, want)
		}
		active, err := skills.Load(t.Context(), s, skill)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(active.Text, "# pdf\n") {
			t.Errorf("Text = %q", active.Text)
		}
		for name, want := range map[string]string{"forms/a b.md": "# A b\n", "forms/raw.bin": "\x00\xff", "skill://pdf/forms/raw.bin": "\x00\xff"} {
			if got, err := active.Read(t.Context(), name); string(got) != want || err != nil {
				t.Errorf("Read(%q) = %q, %v, want %q", name, got, err, want)
			}
		}
		dir, err := skills.ReadDirectory(t.Context(), s, "skill://pdf")
		if err != nil {
			t.Fatal(err)
		}
		var children []string
		for _, r := range dir {
			children = append(children, r.URI+" "+r.Name+" "+r.MIMEType)
		}
		if want := []string{"skill://pdf/SKILL.md pdf text/markdown", "skill://pdf/forms forms inode/directory"}; !slices.Equal(children, want) {
			t.Errorf("ReadDirectory = %q, want %q", children, want)
		}
	})
}

// A skill around another lists the files of both, and the listing is flat.
func TestNestedSkills(t *testing.T) {
	_, f := served(t, folder())
	got := map[string]int{}
	for _, s := range f.Skills() {
		got[s.Name] = len(s.Files)
	}
	if got["refunds"] != 3 || got["vip"] != 1 {
		t.Errorf("numbers of files = %v, want 3 of refunds and 1 of vip", got)
	}
}

// A URI that is neither a skill nor a folder is refused with -32602, and so is an invalid cursor.
func TestUnknown(t *testing.T) {
	srv, _ := served(t, folder())
	s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	for _, tt := range []struct {
		method string
		params any
	}{
		{"skills/get", map[string]string{"uri": "skill://none/SKILL.md"}},
		{"skills/get", map[string]string{"uri": "skill://pdf/forms/a%20b.md"}},
		{"skills/get", nil},
		{"skills/list", map[string]string{"cursor": "x"}},
		{"skills/list", map[string]int{"cursor": 1}},
		{"resources/directory/read", map[string]string{"uri": "skill://pdf/SKILL.md"}},
		{"resources/directory/read", map[string]string{"uri": "skill://pdf/"}},
		{"resources/directory/read", map[string]string{"uri": "skill://none"}},
		{"resources/directory/read", nil},
		{"resources/read", map[string]string{"uri": "skill://pdf"}},
		{"resources/read", map[string]string{"uri": "skill://pdf/.draft.md"}},
		{"resources/read", map[string]string{"uri": "skill://pdf/../README.md"}},
		{"resources/read", map[string]string{"uri": "skill://pdf/%2e%2e/README.md"}},
		{"resources/read", map[string]string{"uri": "skill://README.md"}},
	} {
		raw, err := s.Raw(t.Context(), tt.method, tt.params)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s %v = %s, %v, want error %d", tt.method, tt.params, raw, err, jsonrpc.CodeInvalidParams)
		}
	}
}

// A folder with a mistake is not served, and the error names the place.
func TestServeRefuses(t *testing.T) {
	many := fstest.MapFS{"a/SKILL.md": manifest("a")}
	for i := range skills.MaxFiles {
		many[fmt.Sprintf("a/%d.md", i)] = file("x")
	}
	tests := []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"empty", fstest.MapFS{}, "no skill found"},
		{"no front matter", fstest.MapFS{"a/SKILL.md": file("# a\n")}, `skill "a": no front matter`},
		{"other name", fstest.MapFS{"a/SKILL.md": manifest("b")}, `the folder is "a" and the name in the front matter "b"`},
		{"bad name", fstest.MapFS{"A_B/SKILL.md": manifest("A_B")}, `the name "A_B"`},
		{"no folder", fstest.MapFS{"SKILL.md": manifest("a")}, "not in a folder"},
		{"folder that is no part of a URI", fstest.MapFS{"x:y/a/SKILL.md": manifest("a")}, `"x:y"`},
		{"many files", many, "513 files"},
		{"many bytes", fstest.MapFS{"a/SKILL.md": manifest("a"), "a/big": &fstest.MapFile{Data: make([]byte, skills.MaxBytes)}}, "over the limit"},
		{"device", fstest.MapFS{"a/SKILL.md": manifest("a"), "a/dev": &fstest.MapFile{Mode: os.ModeDevice}}, "not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := skills.Serve(&mcp.Server{Name: "s"}, tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Serve error = %v, want %q", err, tt.want)
			}
		})
	}
}

// Symbolic links are refused when a folder is scanned, and when a file has become one since.
func TestSymbolicLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("making symbolic links needs a privilege on Windows")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, "skills", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a/SKILL.md", string(manifest("a").Data))
	write("a/sub/note.md", "note")
	must(os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600))
	must(os.Mkdir(filepath.Join(dir, "out"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "out", "note.md"), []byte("secret"), 0o600))

	link := filepath.Join(dir, "skills", "a", "link.md")
	must(os.Symlink(filepath.Join(dir, "secret"), link))
	if _, err := skills.Serve(&mcp.Server{}, os.DirFS(filepath.Join(dir, "skills"))); err == nil || !strings.Contains(err.Error(), `"a/link.md" is a symbolic link`) {
		t.Fatalf("Serve error = %v, want a refusal of the link", err)
	}
	must(os.Remove(link))

	srv := &mcp.Server{Name: "s"}
	_, err := skills.Serve(srv, os.DirFS(filepath.Join(dir, "skills")))
	must(err)
	s := mcptest.Connect(t, srv, client(), mcp.V2025_11_25)
	if got, err := s.ReadResource(t.Context(), "skill://a/sub/note.md"); err != nil || got.Contents[0].Text != "note" {
		t.Fatalf("Read = %v, %v", got, err)
	}
	sub := filepath.Join(dir, "skills", "a", "sub")
	must(os.RemoveAll(sub))
	must(os.Symlink(filepath.Join(dir, "out"), sub))
	if got, err := s.ReadResource(t.Context(), "skill://a/sub/note.md"); err == nil {
		t.Errorf("through a folder that became a link, Read = %v", got.Contents)
	}
}

// A listing has all pages up to the last skill, and does not split a skill.
func TestPages(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 250 {
		name := fmt.Sprintf("s%03d", i)
		files[name+"/SKILL.md"] = manifest(name)
	}
	for i := range skills.MaxFiles - 1 { // a page of its own
		files[fmt.Sprintf("s100/%03d.md", i)] = file("x")
	}
	srv, _ := served(t, files)
	pages := 0
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "skills/list" || req.Method == "resources/directory/read" {
				pages++
			}
			return next.Handle(ctx, req)
		})
	})
	s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	got := uris(t, s)
	if len(got) != 250 || !slices.IsSorted(got) || pages != 3 {
		t.Errorf("%d skills on %d pages, want 250 on 3", len(got), pages)
	}
	pages = 0
	dir, err := skills.ReadDirectory(t.Context(), s, "skill://s100")
	if err != nil || len(dir) != skills.MaxFiles || pages != 2 {
		t.Errorf("%d children on %d pages (%v), want %d on 2", len(dir), pages, err, skills.MaxFiles)
	}
}

// Changes in the folder are found, and subscribers are notified.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := folder()
		srv, f := served(t, files)
		s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
		skill, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var events []string
		watching := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range s.Watch(ctx, "skill://pdf/forms/a%20b.md") {
				if err != nil {
					t.Error(err)
				}
				if e.Method == "notifications/subscriptions/acknowledged" {
					close(watching)
					continue
				}
				events = append(events, e.Method+" "+e.URI)
			}
		}()
		<-watching
		files["pdf/forms/a b.md"] = file("# B a\n") // as long as before
		files["pdf/new.md"] = file("new")
		delete(files, "acme/billing/refunds/vip/SKILL.md")
		if got := uris(t, s); len(got) != 3 {
			t.Errorf("at once, List = %q, want what was found a moment ago", got)
		}
		time.Sleep(2 * time.Second)
		if got := uris(t, s); len(got) != 2 {
			t.Errorf("later, List = %q, want two", got)
		}
		time.Sleep(time.Second)
		cancel()
		<-done
		slices.Sort(events)
		if want := []string{"notifications/resources/list_changed ", "notifications/resources/updated skill://pdf/forms/a%20b.md"}; !slices.Equal(events, want) {
			t.Errorf("events %q, want %q", events, want)
		}

		// The old entry does not match the new file.
		active, err := skills.Load(t.Context(), s, skill)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"forms/a b.md", "new.md"} {
			if got, err := active.Read(t.Context(), name); !errors.Is(err, skills.ErrUnverified) {
				t.Errorf("by the old entry, Read(%q) = %q, %v, want ErrUnverified", name, got, err)
			}
		}

		// An invalid skill is left out, and comes back when corrected.
		files["pdf/SKILL.md"] = file("broken")
		if err := f.Reload(); err == nil || !strings.Contains(err.Error(), `skill "pdf"`) {
			t.Errorf("Reload = %v, want what is wrong with pdf", err)
		}
		if got := uris(t, s); !slices.Equal(got, []string{"skill://acme/billing/refunds/SKILL.md"}) {
			t.Errorf("List = %q, want no pdf", got)
		}
		files["pdf/SKILL.md"] = manifest("pdf")
		if err := f.Reload(); err != nil {
			t.Error(err)
		}
		if got := uris(t, s); len(got) != 2 {
			t.Errorf("List = %q, want pdf again", got)
		}
	})
}

// Server.Visible hides skills and files from callers who may not see them.
func TestVisible(t *testing.T) {
	srv, _ := served(t, folder())
	srv.Visible = func(_ context.Context, f mcp.Feature) bool { return !strings.HasPrefix(f.Name, "skill://pdf") }
	s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	if got := uris(t, s); len(got) != 2 {
		t.Errorf("List = %q, want no pdf", got)
	}
	if got, err := skills.Get(t.Context(), s, "skill://pdf/SKILL.md"); err == nil {
		t.Errorf("Get = %v", got)
	}
	if got, err := skills.ReadDirectory(t.Context(), s, "skill://pdf"); err != nil || len(got) != 1 || got[0].Name != "forms" {
		t.Errorf("ReadDirectory = %v, %v, want folders alone", got, err)
	}
}

// A server that does not declare the extension is not asked.
func TestNotOffered(t *testing.T) {
	srv := &mcp.Server{Name: "s"}
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != "server/discover" {
				t.Errorf("the server was asked %s", req.Method)
			}
			return next.Handle(ctx, req)
		})
	})
	s := mcptest.Connect(t, srv, client(), mcp.V2026_07_28)
	for _, err := range skills.List(t.Context(), s) {
		if !errors.Is(err, mcp.ErrNotSupported) {
			t.Errorf("List: %v", err)
		}
	}
	if _, err := skills.Get(t.Context(), s, "skill://a/SKILL.md"); !errors.Is(err, mcp.ErrNotSupported) {
		t.Errorf("Get: %v", err)
	}
	if _, err := skills.ReadDirectory(t.Context(), s, "skill://a"); !errors.Is(err, mcp.ErrNotSupported) {
		t.Errorf("ReadDirectory: %v", err)
	}
}

// The settings are in the capabilities, besides the resources capability.
func TestDeclaration(t *testing.T) {
	srv, _ := served(t, folder())
	res, err := srv.Handle(t.Context(), &mcp.Request{Method: "server/discover"})
	if err != nil {
		t.Fatal(err)
	}
	caps := res.(*mcp.ServerInfo).Capabilities
	var ext map[string]json.RawMessage
	if err := json.Unmarshal(caps["extensions"], &ext); err != nil || string(ext[skills.Extension]) != `{"directoryRead":true}` || !caps.Has("resources") {
		t.Errorf("capabilities = %s", caps)
	}
}
