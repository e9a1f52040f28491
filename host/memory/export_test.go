package memory_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
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
	if err := memory.WriteMarkdown(&b, c, entries); err != nil {
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

func TestJSON(t *testing.T) {
	c := memory.Conversation{ID: "abcd1234", Title: "About <b>", Created: noon, Updated: noon, Folder: "/home/x", Entries: 4}
	entries := turn(1)
	var b bytes.Buffer
	if err := memory.WriteJSON(&b, c, entries); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Format       string
		Version      int
		Conversation memory.Conversation
		Entries      []memory.Entry
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v:\n%s", err, b.String())
	}
	if d := cmp.Diff(c, got.Conversation) + cmp.Diff(entries, got.Entries); d != "" || got.Format == "" || got.Version != 1 {
		t.Errorf("%s %d; what was written is not what is there (-want +got):\n%s", got.Format, got.Version, d)
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n != len(entries)+2 {
		t.Errorf("there are %d lines, want one for each entry and one before and behind them", n)
	}
}
