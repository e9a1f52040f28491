package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/host/model"
)

func open(t testing.TB, path string) *memory.Store {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "data", "conversations.db")
	}
	s, err := memory.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func create(t testing.TB, s *memory.Store, c memory.Conversation) memory.Conversation {
	t.Helper()
	c, err := s.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// write adds entries to the end of a conversation, as its last writer.
func write(t testing.TB, s *memory.Store, c memory.Conversation, entries ...memory.Entry) memory.Conversation {
	t.Helper()
	for _, e := range entries {
		c.Usage.Add(e.Usage)
		c.Cost += e.Cost
	}
	c, err := s.Write(t.Context(), c, c.Entries, entries...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// turn is a turn with a tool call.
func turn(n int) []memory.Entry {
	at := noon.Add(time.Duration(n) * time.Minute)
	return []memory.Entry{
		{At: at, Turn: n, Message: model.UserText(fmt.Sprintf("How is the weather on day %d?", n))},
		{At: at.Add(time.Second), Turn: n, Model: "openai/fast", Usage: model.Usage{Input: 100, Output: 10, Cached: 50}, Cost: 0.25,
			Message: model.Message{Role: model.Assistant, Parts: []model.Part{
				{Opaque: &model.Opaque{Provider: "x", Text: "hm", Data: json.RawMessage(`{"signature":"s"}`)}},
				{Text: "Let me look."},
				{Call: &model.Call{ID: "c1", Name: "weather", Arguments: json.RawMessage(`{"city":"Zürich"}`),
					Opaque: &model.Opaque{Provider: "x", Data: json.RawMessage(`{"signature":"t"}`)}}},
			}}},
		{At: at.Add(2 * time.Second), Turn: n, Message: model.Message{Role: model.User, Parts: []model.Part{
			{Result: &model.Result{ID: "c1", Name: "weather", Parts: []model.Part{
				{Text: `{"sky":"clear"}`}, {Media: &model.Media{MIME: "image/png", Data: []byte("PNG"), Name: "map.png"}},
			}}},
		}}},
		{At: at.Add(3 * time.Second), Turn: n, Model: "openai/fast", Usage: model.Usage{Input: 120, Output: 5}, Cost: 0.5,
			Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "Clear."}}}},
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "what%#.db")
	s := open(t, path)
	c := create(t, s, memory.Conversation{Title: "About\nthe weather", Created: noon, Folder: "/home/x"})
	want := append(turn(1), turn(2)...)
	for _, part := range [][]memory.Entry{want[:4], want[4:]} {
		c = write(t, s, c, part...)
	}
	c.Parameters, c.Mode = model.Parameters{Effort: model.LowEffort, Extra: map[string]json.RawMessage{"seed": json.RawMessage("7")}}, "read-only"
	c = write(t, s, c) // settings may change without entries
	s = open(t, path)  // another process
	got, entries, err := s.Load(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, entries); d != "" {
		t.Errorf("Load returns other entries (-want +got):\n%s", d)
	}
	c = memory.Conversation{ID: c.ID, Title: "About the weather", Created: noon, Updated: c.Updated, Parameters: c.Parameters, Mode: "read-only",
		Model: "openai/fast", Folder: "/home/x", Entries: 8, Usage: model.Usage{Input: 440, Output: 30, Cached: 100}, Cost: 1.5}
	if d := cmp.Diff(c, got); d != "" {
		t.Errorf("Load returns another conversation (-want +got):\n%s", d)
	}
	if runtime.GOOS != "windows" {
		for _, p := range []string{path, path + "-wal", path + "-shm"} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, %v; want 0600", p, info.Mode(), err)
			}
		}
	}
}

// A file of the first version is read, and conversations in it have no settings.
func TestOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	memory.First(t, path, "abcd1234")
	s := open(t, path)
	c, _, err := s.Load(t.Context(), "abcd1234")
	if err != nil || c.Mode != "" || len(c.Parameters.List()) > 0 {
		t.Fatalf("Load = %+v, %v", c, err)
	}
	c.Mode = "read-only"
	if c = write(t, s, c); c.Mode != "read-only" {
		t.Errorf("written: %+v", c)
	}
}

// Arguments of a model need not be JSON.
func TestArgumentsThatAreNoJSON(t *testing.T) {
	s := open(t, "")
	c := create(t, s, memory.Conversation{})
	call := &model.Call{ID: "c", Name: "x", Arguments: json.RawMessage(`{"a":`)}
	m := model.Message{Role: model.Assistant, Parts: []model.Part{{Call: call}, {Call: &model.Call{ID: "d", Name: "y"}}}}
	write(t, s, c, memory.Entry{Message: m})
	_, entries, err := s.Load(t.Context(), c.ID)
	if err != nil || len(entries) != 1 {
		t.Fatalf("Load = %v, %v; want one entry", entries, err)
	}
	if got := string(entries[0].Message.Parts[0].Call.Arguments); got != `"{\"a\":"` {
		t.Errorf("arguments come back as %s", got)
	}
	if string(call.Arguments) != `{"a":` {
		t.Errorf("Write changed the message: %s", call.Arguments)
	}
}

func TestWriteFrom(t *testing.T) {
	s := open(t, "")
	c := write(t, s, create(t, s, memory.Conversation{}), append(turn(1), turn(2)...)...)
	c, err := s.Write(t.Context(), c, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(t.Context(), c, 5); err == nil {
		t.Error("5 of 4 messages stay")
	}
	summary := memory.Entry{At: noon, Message: model.UserText("summary")}
	if c, err = s.Write(t.Context(), c, 3, summary); err != nil {
		t.Fatal(err)
	}
	c = write(t, s, c, turn(3)...)
	got, entries, err := s.Load(t.Context(), c.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := append(append(turn(1)[:3], summary), turn(3)...)
	if d := cmp.Diff(want, entries); d != "" {
		t.Errorf("other entries (-want +got):\n%s", d)
	}
	if got.Entries != 8 || got.Usage.Input != 660 || got.Cost != 2.25 { // of three turns
		t.Errorf("the conversation has %d entries, %d tokens in, cost %v; want 8, 660 and 2.25", got.Entries, got.Usage.Input, got.Cost)
	}
	if d := cmp.Diff(got, c); d != "" {
		t.Errorf("Write returns another conversation than Load (-load +write):\n%s", d)
	}
	if hits, err := s.Search(t.Context(), "day 2", 0); len(hits) != 0 || err != nil {
		t.Errorf("what was taken back is found: %v, %v", hits, err)
	}
}

// A writer with a stale conversation changes nothing, even if the number of messages is the same.
func TestWriteElsewhere(t *testing.T) {
	s := open(t, "")
	mine := write(t, s, create(t, s, memory.Conversation{}), turn(1)...)
	theirs, err := s.Write(t.Context(), mine, 2)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c, err := s.Write(t.Context(), mine, 4, turn(3)...); !errors.Is(err, memory.ErrElsewhere) || c.Entries != 4 {
			t.Errorf("Write = %+v, %v; want ErrElsewhere", c, err)
		}
		if theirs.Entries == 2 {
			theirs = write(t, s, theirs, turn(2)[:2]...)
		}
	}
	if _, entries, err := s.Load(t.Context(), mine.ID); err != nil || cmp.Diff(append(turn(1)[:2], turn(2)[:2]...), entries) != "" {
		t.Errorf("the other one has %v, %v", entries, err)
	}
}

func TestFind(t *testing.T) {
	s := open(t, "")
	for _, id := range []string{"abcd1111", "abcd2222", "efgh3333"} {
		create(t, s, memory.Conversation{ID: id})
	}
	if _, err := s.Create(t.Context(), memory.Conversation{ID: "abcd1111"}); err == nil {
		t.Error("an id can be taken twice")
	}
	if _, err := s.Create(t.Context(), memory.Conversation{ID: "../x"}); err == nil {
		t.Error("any id can be chosen")
	}
	tests := []struct {
		id, want string
		err      error
	}{
		{"abcd1111", "abcd1111", nil},
		{"e", "efgh3333", nil},
		{" EFGH ", "efgh3333", nil},
		{"abcd", "", memory.ErrMany},
		{"abcd3", "", memory.ErrNone},
		{"", "", memory.ErrNone},
		{"%", "", memory.ErrNone},
		{"é", "", memory.ErrNone},
		{strings.Repeat("x", 10_000), "", memory.ErrNone},
	}
	for _, tt := range tests {
		c, err := s.Find(t.Context(), tt.id)
		if c.ID != tt.want || !errors.Is(err, tt.err) || err != nil && len(err.Error()) > 400 {
			t.Errorf("Find(%.20q) = %q, %v; want %q, %v", tt.id, c.ID, err, tt.want, tt.err)
		}
	}
	_, writeErr := s.Write(t.Context(), memory.Conversation{ID: "nono"}, 0)
	for doing, err := range map[string]error{
		"Write": writeErr, "Delete": s.Delete(t.Context(), "nono"),
	} {
		if !errors.Is(err, memory.ErrNone) {
			t.Errorf("%s of a conversation that is not there: %v", doing, err)
		}
	}
}

func TestList(t *testing.T) {
	s := open(t, "")
	var first memory.Conversation
	for i := range 7 {
		c := create(t, s, memory.Conversation{ID: fmt.Sprintf("c%03d", i), Created: noon.Add(time.Duration(i) * time.Hour), Folder: []string{"/a", "/b"}[i%2]})
		if i == 1 {
			first = c
		}
	}
	write(t, s, first, memory.Entry{At: noon.Add(24 * time.Hour), Message: model.UserText("x")})
	for _, tt := range []struct {
		o    memory.ListOptions
		want string
	}{
		{memory.ListOptions{}, "c001 c006 c005 c004 c003 c002 c000"},
		{memory.ListOptions{Limit: 2, Offset: 1}, "c006 c005"},
		{memory.ListOptions{Limit: -1, Offset: 5}, "c002 c000"},
		{memory.ListOptions{Folder: "/b"}, "c001 c005 c003"},
		{memory.ListOptions{Offset: 10}, ""},
	} {
		list, err := s.List(t.Context(), tt.o)
		var ids []string
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		if got := strings.Join(ids, " "); got != tt.want || err != nil {
			t.Errorf("List(%+v) = %s, %v; want %s", tt.o, got, err, tt.want)
		}
	}
}

func TestSearch(t *testing.T) {
	s := open(t, "")
	a := create(t, s, memory.Conversation{Title: "Holidays in Zürich"})
	b := create(t, s, memory.Conversation{})
	write(t, s, a, turn(1)...)
	text := "first\nline \x02marked\x03 \"quoted\" NEAR(x) " + strings.Repeat("filler ", 100) + "the needle is here"
	write(t, s, b, memory.Entry{Turn: 1, Message: model.UserText(text)})
	tests := []struct {
		words string
		where string // conversation and entry of each hit
	}{
		{"needle", b.ID + ":0"},
		{"NEED here", b.ID + ":0"},
		{"zurich", a.ID + ":-1 " + a.ID + ":1"},
		{"sky clear", a.ID + ":2"},
		{"weather missing", ""},
		{`"quoted" NEAR(`, b.ID + ":0"},
		{"- * ^ ( \" '", ""},
		{"", ""},
	}
	for _, tt := range tests {
		hits, err := s.Search(t.Context(), tt.words, 0)
		var where []string
		for _, h := range hits {
			where = append(where, fmt.Sprintf("%s:%d", h.Conversation.ID, h.Entry))
			if len(h.Found) == 0 || strings.ContainsAny(h.Snippet, "\x02\x03\n") {
				t.Errorf("Search(%q): snippet %q, found at %v", tt.words, h.Snippet, h.Found)
			}
		}
		if got := strings.Join(where, " "); got != tt.where || err != nil {
			t.Errorf("Search(%q) = %s, %v; want %s", tt.words, got, err, tt.where)
		}
	}
	hits, _ := s.Search(t.Context(), "needle", 0)
	if h := hits[0]; h.Snippet[h.Found[0][0]:h.Found[0][1]] != "needle" || len(h.Snippet) > 400 {
		t.Errorf("snippet %q, found at %v", h.Snippet, h.Found)
	}
}

// No text of a person is a syntax error.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{`"`, `a"b*`, "NOT", "a AND (", "words:x", "-x ^y", "\x00", "x\x02y\xff", "+", "día*"} {
		f.Add(seed)
	}
	s := open(f, "")
	c := create(f, s, memory.Conversation{})
	write(f, s, c, turn(1)...)
	f.Fuzz(func(t *testing.T, words string) {
		hits, err := s.Search(context.Background(), words, 5)
		if err != nil {
			t.Fatalf("Search(%q): %v", words, err)
		}
		for _, h := range hits {
			for _, at := range h.Found {
				if at[0] > at[1] || at[1] > len(h.Snippet) {
					t.Fatalf("Search(%q): found at %v of %q", words, h.Found, h.Snippet)
				}
			}
		}
	})
}

// Deleted text is not in the file any more.
func TestDelete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	s := open(t, path)
	kept := create(t, s, memory.Conversation{Title: "kept"})
	gone := create(t, s, memory.Conversation{Title: "planted-title"})
	write(t, s, gone, memory.Entry{Message: model.UserText("planted-text " + strings.Repeat("planted-long ", 10_000))})
	if err := s.Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context(), memory.ListOptions{})
	if len(list) != 1 || list[0].ID != kept.ID || err != nil {
		t.Errorf("List = %v, %v; want the other one", list, err)
	}
	for _, p := range []string{path, path + "-wal"} {
		data, err := os.ReadFile(p)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("planted")) {
			t.Errorf("what was deleted is in %s", p)
		}
	}
}

// It is overwritten even if a read was cancelled before.
func TestDeleteAfterCancel(t *testing.T) {
	s := open(t, "")
	memory.Interrupt(t, s)
	if !memory.Overwrites(t, s) {
		t.Error("what is deleted after a read that was cancelled is not overwritten")
	}
}

// Several processes write at once, each with its own store: after ErrElsewhere they load again.
func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	id := create(t, open(t, path), memory.Conversation{}).ID
	var all sync.WaitGroup
	const writers, each = 4, 10
	for range writers {
		s := open(t, path)
		all.Go(func() {
			for written := 0; written < each; {
				c, err := s.Find(t.Context(), id)
				if err == nil {
					_, err = s.Write(t.Context(), c, c.Entries, turn(1+c.Entries/4)...)
				}
				switch {
				case err == nil:
					written++
				case !errors.Is(err, memory.ErrElsewhere):
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	c, entries, err := open(t, path).Load(t.Context(), id)
	if err != nil || c.Entries != writers*each*4 || len(entries) != c.Entries {
		t.Fatalf("%d entries, %d counted, %v; want %d", len(entries), c.Entries, err, writers*each*4)
	}
	for i := range entries { // turns are never interleaved or lost
		if got, want := entries[i], turn(1 + i/4)[i%4]; got.Message.Role != want.Message.Role || got.Turn != want.Turn {
			t.Fatalf("entry %d is of %s in turn %d, want %s in %d", i, got.Message.Role, got.Turn, want.Message.Role, want.Turn)
		}
	}
}

// A full disk is an error, and nothing of the change is stored.
func TestFullDisk(t *testing.T) {
	s := open(t, "")
	c := write(t, s, create(t, s, memory.Conversation{}), turn(1)...)
	memory.Fill(t, s)
	big := memory.Entry{Message: model.UserText(strings.Repeat("x", 1<<20))}
	if _, err := s.Write(t.Context(), c, 4, turn(2)[0], big); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("Write to a full disk: %v", err)
	}
	got, entries, err := s.Load(t.Context(), c.ID)
	if got.Entries != 4 || len(entries) != 4 || err != nil {
		t.Errorf("after that there are %d entries, %d counted, %v; want 4", len(entries), got.Entries, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("these are my notes, and no database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	memory.Version(t, open(t, newer), "99")
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, append([]byte("SQLite format 3\x00"), bytes.Repeat([]byte{0xff}, 8192)...), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{text: "not an SQLite database", newer: "newer version", damaged: "damaged", dir: "is a folder"} {
		s, err := memory.Open(path)
		if err == nil {
			s.Close()
			t.Errorf("Open(%s) opens it", path)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s): %v; want %q in it", path, err, want)
		}
	}
}

// Lists and searches do not read messages.
func TestBigResults(t *testing.T) {
	s := open(t, "")
	c := create(t, s, memory.Conversation{})
	big := strings.Repeat("0123456789abcde ", 4<<20/16) + "needle"
	result := model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "c", Name: "x", Parts: []model.Part{{Text: big}}}}}}
	c = write(t, s, c, memory.Entry{Message: result})
	c = write(t, s, c, memory.Entry{Message: result})
	look := func() {
		if _, err := s.List(t.Context(), memory.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Search(t.Context(), "needle", 5); err != nil {
			t.Fatal(err)
		}
	}
	look()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	look()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("a list and a search allocate %d bytes, want far less than a message of 4 MB", got)
	}
	if _, entries, err := s.Load(t.Context(), c.ID); err != nil || entries[1].Message.Parts[0].Result.Parts[0].Text != big {
		t.Errorf("a big result does not come back whole: %v", err)
	}
}

func TestDefaultPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the folder is another one")
	}
	t.Setenv("HOME", "/home/x")
	for data, want := range map[string]string{
		"/d": "/d/patchbay/conversations.db", "": "/home/x/.local/share/patchbay/conversations.db", "relative": "/home/x/.local/share/patchbay/conversations.db",
	} {
		t.Setenv("XDG_DATA_HOME", data)
		if got, err := memory.DefaultPath(); got != want || err != nil {
			t.Errorf("with XDG_DATA_HOME=%s: %s, %v; want %s", data, got, err, want)
		}
	}
}
