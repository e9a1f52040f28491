package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/internal/wine"
)

// document returns a document without a file.
func document(t testing.TB, text string) *Document {
	t.Helper()
	d := &Document{path: "mcp.json"}
	if err := d.set([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return d
}

var entry = Entry{"new", json.RawMessage(`{"command":"npx","args":["-y","x"],"env":{"K":"v"}}`)}

func TestAdd(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"first of all", "{}\n", `{
  "mcpServers": {
    "new": {
      "command": "npx",
      "args": ["-y", "x"],
      "env": {
        "K": "v"
      }
    }
  }
}
`},
		{"comments and tabs", `{
	// mine
	"servers": {
		// about a
		"a": {"command": "x"}, // beside a
		/* nothing more */
	}, // end
}`, `{
	// mine
	"servers": {
		// about a
		"a": {"command": "x"}, // beside a
		"new": {
			"command": "npx",
			"args": ["-y", "x"],
			"env": {
				"K": "v"
			}
		},
		/* nothing more */
	}, // end
}`},
		{"no comma before", "{\r\n    \"mcpServers\": {\r\n        \"a\": {\"command\": \"x\"} // beside a\r\n    }\r\n}", "{\r\n    \"mcpServers\": {\r\n        \"a\": {\"command\": \"x\"}, // beside a\r\n        \"new\": {\r\n            \"command\": \"npx\",\r\n            \"args\": [\"-y\", \"x\"],\r\n            \"env\": {\r\n                \"K\": \"v\"\r\n            }\r\n        }\r\n    }\r\n}"},
		{"inside of mcp", "{\n  \"editor.wordWrap\": \"on\",\n  \"mcp\": {\n    \"inputs\": [] // none yet\n  }\n}", "{\n  \"editor.wordWrap\": \"on\",\n  \"mcp\": {\n    \"inputs\": [], // none yet\n    \"servers\": {\n      \"new\": {\n        \"command\": \"npx\",\n        \"args\": [\"-y\", \"x\"],\n        \"env\": {\n          \"K\": \"v\"\n        }\n      }\n    }\n  }\n}"},
		{"one line", `{"mcpServers": {"a": {"command": "x"}}, "other": [1]}`, `{"mcpServers": {"a": {"command": "x"}, "new": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}}}, "other": [1]}`},
		{"one line with a comma", `{"mcpServers": {"a": {"command": "x"},}}`, `{"mcpServers": {"a": {"command": "x"}, "new": {"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}},}}`},
		{"comment in an empty list", "{\n  \"mcpServers\": {\n    // none yet\n  }\n}", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"x\"],\n      \"env\": {\n        \"K\": \"v\"\n      }\n    }\n    // none yet\n  }\n}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := document(t, tt.in)
			if err := d.Add(entry); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.Bytes())); diff != "" {
				t.Errorf("Add (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"middle", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"},\n\t// stays\n\t\"new\": {\n\t\t\"command\": \"y\"\n\t}, // goes\n\t\"b\": {\"command\": \"x\"}\n}}", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"},\n\t// stays\n\t\"b\": {\"command\": \"x\"}\n}}"},
		{"last", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"}, // stays\n\t\"new\": {\"command\": \"y\"}\n}}", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"} // stays\n}}"},
		{"last with a comma", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"},\n\t\"new\": {\"command\": \"y\"},\n}}", "{\"servers\": {\n\t\"a\": {\"command\": \"x\"},\n}}"},
		{"only", "{\"servers\": {\n\t\"new\": {\"command\": \"y\"}\n}}", "{\"servers\": {\n}}"},
		{"one line, first", `{"servers": {"new": {"command": "y"}, "a": {"command": "x"}}}`, `{"servers": {"a": {"command": "x"}}}`},
		{"one line, last", `{"servers": {"a": {"command": "x"}, "new": {"command": "y"}}}`, `{"servers": {"a": {"command": "x"}}}`},
		{"inside of mcp", `{"mcp": {"inputs": [], "servers": {"new": {"command": "y"}, "a": {"command": "x"}}}}`, `{"mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}`},
		{"settings too", `{"servers": {"new": {"command": "y"}}, "patchbay": {"servers": {"new": {"idle": "1s"}, "a": {"builtin": "x"}}}}`, `{"servers": {}, "patchbay": {"servers": {"a": {"builtin": "x"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := document(t, tt.in)
			if err := d.Remove("new"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.Bytes())); diff != "" {
				t.Errorf("Remove (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddInput(t *testing.T) {
	d := document(t, "{\n  \"servers\": {}\n}")
	for _, id := range []string{"a", "b"} {
		if err := d.AddInput(json.RawMessage(`{"id":"` + id + `","type":"promptString"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Inputs(); len(got) != 2 || string(got[1]) != `{"id":"b","type":"promptString"}` {
		t.Errorf("inputs = %s in\n%s", got, d.Bytes())
	}
	if err := d.AddInput(json.RawMessage(`{"id":"a"}`)); err == nil {
		t.Error("an input of an id that is there was added")
	}
	d = document(t, `{"mcp": {"servers": {"a": {"command": "x"}}}}`)
	if err := d.AddInput(json.RawMessage(`{"id":"a"}`)); err != nil {
		t.Fatal(err)
	}
	if want := `{"mcp": {"servers": {"a": {"command": "x"}}, "inputs": [{"id": "a"}]}}`; string(d.Bytes()) != want {
		t.Errorf("AddInput in mcp wrote %s, want %s", d.Bytes(), want)
	}
}

func TestEditRefuses(t *testing.T) {
	d := document(t, `{"servers": {"a": {"command": "x"}}}`)
	before := d.Bytes()
	var problems Problems
	if err := d.Add(Entry{"a", json.RawMessage(`{}`)}); err == nil {
		t.Error("Add of a name that is there")
	}
	if err := d.Add(Entry{"", json.RawMessage(`{}`)}); !errors.As(err, &problems) {
		t.Errorf("Add without a name = %v", err)
	}
	if err := d.Add(Entry{"b", json.RawMessage(`{"a":1}, "x": {}`)}); err == nil {
		t.Error("Add of more than an object")
	}
	if err := d.Remove("b"); err == nil {
		t.Error("Remove of a name that is not there")
	}
	if !bytes.Equal(before, d.Bytes()) {
		t.Errorf("a refused change was made: %s", d.Bytes())
	}
	for _, text := range []string{`{"servers": {`, `{"servers": []}`, `{"servers": {"a": {}, "a": {}}}`, `[]`} {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.As(err, &problems) {
			t.Errorf("Open of %s = %v, want its faults", text, err)
		}
	}
	d = document(t, `{"servers": {"a": {"command": "${GONE_FOR_EVER}"}}}`)
	if err := d.Remove("a"); err != nil {
		t.Errorf("Remove of a server with a fault = %v", err)
	}
}

func TestEdit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "mcp.json")
	edit := func(change func(*Document) error) error { t.Helper(); return Edit(t.Context(), path, change) }
	if err := edit(func(*Document) error { return nil }); err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("no")
	if err := edit(func(d *Document) error { return errors.Join(d.Add(entry), wrong) }); !errors.Is(err, wrong) {
		t.Fatalf("Edit = %v, want the error of the change", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file was written without a change: %v", err)
	}
	if err := edit(func(d *Document) error { return d.Add(entry) }); err != nil {
		t.Fatal(err)
	}
	byOthers := []byte(`{"mcpServers": {"theirs": {"command": "x"}}}`)
	err := edit(func(d *Document) error { return errors.Join(os.WriteFile(path, byOthers, 0o600), d.Remove(entry.Name)) })
	if now, _ := os.ReadFile(path); err == nil || !bytes.Equal(now, byOthers) {
		t.Errorf("Edit over the change of another program = %v, and left %s", err, now)
	}
	if runtime.GOOS != "windows" { // which has no modes, and links only for some users
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a new file has the mode %v, %v", info.Mode(), err)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(dir, "link.json")
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		path = link
	}
	if err := edit(func(d *Document) error { return d.Remove("theirs") }); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("the mode became %v, %v", info.Mode(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "sub")); len(left) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// editRun is the variable that makes this test binary add a server to the file it names.
const editRun = "PATCHBAY_TEST_EDIT"

func TestMain(m *testing.M) {
	if path := os.Getenv(editRun); path != "" {
		err := Edit(context.Background(), path, func(d *Document) error {
			return d.Add(Entry{Name: fmt.Sprint("s", os.Getpid()), Object: []byte(`{"command": "x"}`)})
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	data, err := os.MkdirTemp("", "patchbay")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_DATA_HOME", data) // for lock files, which are not removed
	os.Setenv("LOCALAPPDATA", data)
	code := m.Run()
	os.RemoveAll(data)
	os.Exit(code)
}

// Fifty processes that edit one file at once, under several names for it, lose nothing (trap 9).
func TestEditAtOnce(t *testing.T) {
	processes := 50
	if wine.On() { // there processes start slowly, and an edit waits for the others for at most 10 seconds
		processes = 15
	}
	dir := t.TempDir()
	names := []string{filepath.Join(dir, "mcp.json"), filepath.Join(dir, "gone", "..", "mcp.json")}
	if runtime.GOOS != "windows" {
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(link, "mcp.json"))
	}
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), editRun+"="+names[i%len(names)])
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("edit %d: %v: %s", i, err, out)
			}
		})
	}
	wg.Wait()
	d, err := Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(d.Entries()); n != processes {
		t.Errorf("%d servers are in the file after %d edits", n, processes)
	}
}

// An edit that waits for another ends with its context, and returns its cause.
func TestEditWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	gone := errors.New("the person has left")
	err := Edit(t.Context(), path, func(*Document) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		return Edit(ctx, path, func(*Document) error { t.Error("two edits at once"); return nil })
	})
	if !errors.Is(err, gone) {
		t.Errorf("an edit beside another = %v, want %v", err, gone)
	}
}

// An addition only adds text, and a removal only removes text; the other values stay the same.
func FuzzEdit(f *testing.F) {
	f.Add("{\"servers\": {\n\t\"a\": {\"command\": \"x\"}, // c\n},}", "n", `{"args":[1,{"a":[]}]}`)
	f.Add("{\"mcpServers\": {}, /* c */ \"inputs\": [ ] // d\n}", "\"", `{}`)
	f.Add("\xef\xbb\xbf{\"a\": 1 /* \n */ , }", "a", `{"command":"x"}`)
	f.Add("{\"mcpServers\": {\"a\": {\"url\":\"http://h/\"}\r\n, \"b\": {} // x\r\n}, \"patchbay\": {\"servers\": {\"b\": {}}}}", "c", `{"x":null}`)
	f.Add("{\"patchbay\": {\"model\": \"a\", \"models\": {\"a\": {} // x\n}}}", "n", `{"provider":"text"}`)
	f.Fuzz(func(t *testing.T, text, name, object string) {
		d := &Document{path: "mcp.json"}
		if d.set([]byte(text)) != nil || strings.Contains(text, "envFile") {
			return
		}
		before, values := d.Bytes(), compact(strip(d.data))
		for i, gone := range d.Entries() {
			if i > 3 {
				break
			}
			less := &Document{path: "mcp.json"}
			if err := less.set(before); err != nil {
				t.Fatal(err)
			}
			if err := less.Remove(gone.Name); err != nil {
				t.Fatalf("Remove(%q) of %q: %v", gone.Name, before, err)
			}
			want := slices.DeleteFunc(d.Entries(), func(e Entry) bool { return e.Name == gone.Name })
			if diff := cmp.Diff(want, less.Entries(), cmpopts.EquateEmpty()); diff != "" || !subsequence(less.data, before) {
				t.Fatalf("Remove(%q) made %q of %q (-want +got):\n%s", gone.Name, less.data, before, diff)
			}
		}
		e := Entry{name, json.RawMessage(object)}
		with := &Document{path: "mcp.json"}
		if err := with.set(before); err != nil {
			t.Fatal(err)
		}
		if models := with.Models(); with.AddModel(e) == nil {
			if got := with.Models(); !subsequence(before, with.data) || len(got) != len(models)+1 || !bytes.Equal(got[len(models)].Object, compact([]byte(object))) {
				t.Fatalf("AddModel(%q, %s) to %q gave %q", name, object, before, with.data)
			}
			if with.UseModel(name) == nil && with.Model() != name {
				t.Fatalf("UseModel(%q) gave %q", name, with.data)
			}
			if err := with.RemoveModel(name); err != nil || with.Model() == name || !slices.EqualFunc(models, with.Models(), func(a, b Entry) bool { return a.Name == b.Name }) {
				t.Fatalf("RemoveModel(%q) gave %q, %v", name, with.data, err)
			}
		}
		if d.Add(e) != nil {
			if !bytes.Equal(before, d.data) {
				t.Fatalf("a refused Add changed %q to %q", before, d.data)
			}
			return
		}
		if !subsequence(before, d.data) {
			t.Fatalf("Add lost text: %q became %q", before, d.data)
		}
		got, ok := d.Entry(name)
		if !ok || !bytes.Equal(got.Object, compact([]byte(object))) {
			t.Fatalf("Add(%q, %s) to %q gave %q", name, object, before, d.data)
		}
		added := d.Bytes()
		if err := d.Remove(name); err != nil {
			t.Fatalf("Remove of what was added to %q: %v", before, err)
		}
		if !subsequence(d.data, added) {
			t.Fatalf("Remove added text: %q became %q", added, d.data)
		}
		after := compact(strip(d.data))
		if without, ok := bytes.CutSuffix(after, []byte(`"mcpServers":{}}`)); ok && !bytes.Equal(after, values) {
			after = append(bytes.TrimSuffix(without, []byte(",")), '}') // Add made the list
		}
		if !bytes.Equal(after, values) {
			t.Fatalf("Add and Remove made %s of %s", after, values)
		}
	})
}

// subsequence reports whether all of a is in b, in its order.
func subsequence(a, b []byte) bool {
	for _, c := range b {
		if len(a) > 0 && a[0] == c {
			a = a[1:]
		}
	}
	return len(a) == 0
}
