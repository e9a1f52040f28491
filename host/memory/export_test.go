package memory_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/host/model"
)

const golden = "testdata/weather.md"

var update = flag.Bool("update", false, "write the golden file anew")

func TestMarkdown(t *testing.T) {
	c := memory.Conversation{ID: "abcd1234", Title: "The *weather*", Created: noon, Model: "openai/fast", Usage: model.Usage{Input: 220, Output: 15}, Cost: 0.75}
	entries := append(turn(1), memory.Entry{Message: model.Message{Role: model.User, Parts: []model.Part{
		{Media: &model.Media{MIME: "application/pdf", Data: make([]byte, 3<<20)}},
		{Result: &model.Result{Name: "a`b", Error: true, Parts: []model.Part{{Text: "```\nno fence ends here\n````"}}}},
		{Call: &model.Call{Name: "x", Arguments: json.RawMessage(`{"a":`)}},
	}}})
	var b bytes.Buffer
	if err := memory.WriteMarkdown(&b, c, entries, &memory.MarkdownOptions{
		Link: func(m *model.Media) string {
			if m.Name == "" {
				return ""
			}
			return "media/" + m.Name
		},
		Thoughts: true,
	}); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("other Markdown than %s (-want +got):\n%s", golden, d)
	}
}

func TestImport(t *testing.T) {
	s := open(t, "")
	c := create(t, s, memory.Conversation{Title: "About <b>", Created: noon, Folder: "/home/x"})
	if err := s.Append(t.Context(), c.ID, turn(1)...); err != nil {
		t.Fatal(err)
	}
	c, entries, err := s.Load(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := memory.WriteJSON(&b, c, entries); err != nil {
		t.Fatal(err)
	}
	readC, readEntries, err := memory.ReadJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, readC) + cmp.Diff(entries, readEntries); d != "" {
		t.Fatalf("what was read is not what was written (-want +got):\n%s", d)
	}
	again, err := s.Import(t.Context(), readC, readEntries) // the id is taken
	if err != nil || again.ID == c.ID {
		t.Fatalf("Import = %+v, %v; want another id", again, err)
	}
	fresh := open(t, "")
	for id, s := range map[string]*memory.Store{again.ID: s, c.ID: fresh} {
		if s == fresh {
			if _, err := s.Import(t.Context(), readC, readEntries); err != nil {
				t.Fatal(err)
			}
		}
		got, gotEntries, err := s.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		got.ID = c.ID
		if d := cmp.Diff(c, got) + cmp.Diff(entries, gotEntries); d != "" {
			t.Errorf("what was imported differs (-want +got):\n%s", d)
		}
	}
}

func TestReadJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "none that was exported",
		`{}`:                "none that was exported",
		`[]`:                "none that was exported",
		`{"mcpServers":{}}`: "none that was exported",
		`{"format":"patchbay conversation","version":9}`: "newer version",
	} {
		if _, _, err := memory.ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadJSON(%s): %v; want %q in it", text, err, want)
		}
	}
}

// What is read can be written, and is the same then.
func FuzzReadJSON(f *testing.F) {
	var b bytes.Buffer
	if err := memory.WriteJSON(&b, memory.Conversation{ID: "abcd"}, turn(1)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"format":"patchbay conversation","entries":[{"message":{"parts":[{"call":{"arguments":null}}]}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, entries, err := memory.ReadJSON(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := memory.WriteMarkdown(&bytes.Buffer{}, c, entries, nil); err != nil {
			t.Fatal(err)
		}
		var first, second bytes.Buffer
		if err := memory.WriteJSON(&first, c, entries); err != nil {
			return // a year of five digits
		}
		c, entries, err = memory.ReadJSON(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, first.Bytes())
		}
		if err := memory.WriteJSON(&second, c, entries); err != nil || first.String() != second.String() {
			t.Fatalf("written twice, it differs: %v\n%s\n%s", err, first.Bytes(), second.Bytes())
		}
	})
}
