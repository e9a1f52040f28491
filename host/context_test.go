package host

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// fill adds turns to a conversation. A byte describes each turn: the number of steps with calls,
// and the length of texts and results.
func fill(c *Conversation, turns []byte) {
	id := 0
	for i, b := range turns {
		put := func(m model.Message) { c.Entries = append(c.Entries, Entry{Message: m, Turn: i + 1}) }
		put(model.UserText(fmt.Sprintf("question %d %s", i, strings.Repeat("q", int(b)))))
		for range b % 4 {
			var calls, results []model.Part
			for range 1 + b%2 {
				id++
				name := fmt.Sprint(id)
				calls = append(calls, model.Part{Call: &model.Call{ID: name, Name: "t", Arguments: json.RawMessage(`{}`)}})
				results = append(results, model.Part{Result: &model.Result{ID: name, Name: "t", Parts: words(strings.Repeat("r", 40*int(b)))}})
			}
			put(model.Message{Role: model.Assistant, Parts: calls})
			put(model.Message{Role: model.User, Parts: results})
		}
		if i < len(turns)-1 || b%3 == 0 {
			put(model.Message{Role: model.Assistant, Parts: words(fmt.Sprintf("answer %d", i))})
		}
	}
}

func estimate(messages []model.Message) (sum int) {
	for _, m := range messages {
		e := Entry{Message: m}
		sum += e.tokens(false)
	}
	return sum
}

// given returns the messages of a request.
func given(c *Conversation, fixed, window int, a asking) []model.Message {
	messages, _ := c.messages(fixed, window, a)
	return messages
}

// check tests what all requests have in common. The newest message may be cut if cut is set.
func check(t *testing.T, c *Conversation, messages []model.Message, cut bool) {
	t.Helper()
	if len(messages) == 0 || messages[0].Role != model.User {
		t.Fatalf("the messages begin with %+v", messages)
	}
	for i, m := range messages {
		if i > 0 && messages[i-1].Role == m.Role {
			t.Errorf("messages %d and %d are of the same role", i-1, i)
		}
		calls := map[string]bool{}
		if i > 0 {
			for _, call := range messages[i-1].Calls() {
				calls[call.ID] = true
			}
		}
		for _, p := range m.Parts {
			if p.Result != nil {
				if !calls[p.Result.ID] {
					t.Errorf("message %d has a result without its call", i)
				}
				delete(calls, p.Result.ID)
			}
		}
		if len(calls) > 0 {
			t.Errorf("message %d lacks results of %v", i, calls)
		}
	}
	newest := c.Entries[len(c.Entries)-1].Message
	got := messages[len(messages)-1].Parts
	if n := len(newest.Parts); len(got) < n || !cut && cmp.Diff(newest.Parts, got[len(got)-n:]) != "" {
		t.Errorf("the newest message %+v became %+v", newest.Parts, got)
	}
}

// For any conversation and window: results follow their calls, the newest message is complete,
// content that was left out stays out, and the entries do not change.
func FuzzTrim(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(100))
	f.Add([]byte{255, 255, 255, 7, 3}, uint16(3000))
	f.Add([]byte{0}, uint16(1))
	f.Add([]byte{3, 90, 91, 92, 200, 1, 2, 250}, uint16(900))
	f.Fuzz(func(t *testing.T, turns []byte, window uint16) {
		if len(turns) == 0 || len(turns) > 30 {
			return
		}
		c := (&Host{}).NewConversation()
		fill(c, turns)
		before := slices.Clone(c.Entries)
		whole := given(c, 0, 0, asking{})
		check(t, c, whole, false)
		messages := given(c, 10, int(window), asking{})
		check(t, c, messages, false)
		if size := estimate(whole); size+10 <= int(window) && cmp.Diff(whole, messages) != "" {
			t.Errorf("%d tokens fit a window of %d, and were cut", size, window)
		}
		left := c.left
		if again := given(c, 10, int(window), asking{}); cmp.Diff(messages, again) != "" && estimate(messages)+10 <= int(window) {
			t.Errorf("the same request is another: %s", cmp.Diff(messages, again))
		}
		harder := given(c, 10, int(window), asking{less: true})
		check(t, c, harder, true)
		if c.left.turns < left.turns || c.left.results < left.results {
			t.Errorf("what was left out came back: %+v, %+v", left, c.left)
		}
		if estimate(harder) > estimate(messages) {
			t.Errorf("the shorter request has %d tokens, the one before %d", estimate(harder), estimate(messages))
		}
		summary := given(c, 10, int(window), asking{less: true, whole: true})
		check(t, c, summary, true)
		if estimate(summary) > estimate(harder) {
			t.Errorf("the request for a summary has %d tokens, the one before %d", estimate(summary), estimate(harder))
		}
		if diff := cmp.Diff(before, c.Entries); diff != "" {
			t.Errorf("the entries have changed: %s", diff)
		}
	})
}

// Requests leave out old results first, then old turns, then results of this turn; their beginning
// stays the same for many steps.
func TestTrimOrder(t *testing.T) {
	c := (&Host{}).NewConversation()
	fill(c, []byte{201, 201, 201}) // each with one step of two results of 8040 bytes
	seen := func(messages []model.Message) string {
		var all []string
		for _, m := range messages {
			for _, p := range m.Parts {
				switch {
				case p.Call != nil:
					all = append(all, "call")
				case p.Result != nil && strings.HasPrefix(p.Result.Parts[0].Text, "[result left out: 8040 bytes"):
					all = append(all, "short")
				case p.Result != nil:
					all = append(all, "long")
				default:
					all = append(all, strings.Join(strings.Fields(p.Text)[:2], " "))
				}
			}
		}
		return strings.Join(all, ",")
	}
	turn := func(i int, results string) string {
		text := fmt.Sprintf("question %d,call,call,%s,%s", i, results, results)
		return text + fmt.Sprintf(",answer %d", i)
	}
	for _, tt := range []struct {
		window int
		want   string
	}{
		{0, turn(0, "long") + "," + turn(1, "long") + "," + turn(2, "long")},
		{20_000, turn(0, "long") + "," + turn(1, "long") + "," + turn(2, "long")},
		{12_000, turn(0, "short") + "," + turn(1, "long") + "," + turn(2, "long")},
		{8_000, turn(0, "short") + "," + turn(1, "short") + "," + turn(2, "long")},
		{4_000, "[The beginning," + turn(2, "short")},
	} {
		if got := seen(given(c, 0, tt.window, asking{})); got != tt.want {
			t.Errorf("in a window of %d the model is given\n%s, want\n%s", tt.window, got, tt.want)
		}
	}
	// The next steps change nothing at the beginning until the window is full again.
	for _, tt := range []struct {
		of     byte // what each turn is made of
		window int
		most   int // changes of the beginning
	}{
		{201, 40_000, 5}, // long results
		{252, 2_000, 20}, // only texts, of some 80 tokens: each time that 600 are dropped
	} {
		c = (&Host{}).NewConversation()
		changes := 0
		var last []model.Message
		for i := range 100 {
			from := len(c.Entries)
			fill(c, []byte{tt.of})
			for j := range c.Entries[from:] {
				e := &c.Entries[from+j]
				if e.Turn = i + 1; e.Text() != "" {
					e.Parts = words(fmt.Sprint(i) + e.Text())
				}
			}
			messages := given(c, 0, tt.window, asking{})
			if last != nil && (cmp.Diff(last[0], messages[0]) != "" || cmp.Diff(last[2], messages[2]) != "") {
				changes++
			}
			if last = messages; len(last) < 3 {
				last = nil
			}
		}
		if changes == 0 || changes > tt.most {
			t.Errorf("the beginning has changed %d times in 100 turns, want %d at most", changes, tt.most)
		}
	}
}

// A conversation whose program ended during a call can continue.
func TestLostResultsAreFilledIn(t *testing.T) {
	c := (&Host{}).NewConversation()
	fill(c, []byte{1})
	c.Entries = c.Entries[:2] // the result is missing
	messages := given(c, 0, 0, asking{})
	if len(messages) != 3 || messages[2].Parts[0].Result == nil || !messages[2].Parts[0].Result.Error {
		t.Fatalf("messages %+v", messages)
	}
	c.Entries = append(c.Entries, Entry{Message: model.UserText("and?"), Turn: 2})
	messages = given(c, 0, 0, asking{})
	if len(messages) != 3 || messages[2].Parts[0].Result == nil || messages[2].Parts[2].Text != "and?" {
		t.Fatalf("messages %+v", messages)
	}
	check(t, c, messages, false)
}

func FuzzHead(f *testing.F) {
	f.Add("über alles\nund mehr", 9)
	f.Add("aü", 2)
	f.Add("\xff\xfe\x80\x80", 2)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 0 {
			return
		}
		h := head(text, most)
		if len(h) > most || !strings.HasPrefix(text, h) {
			t.Errorf("head(%q, %d) = %q", text, most, h)
		}
		if utf8.ValidString(text) && !utf8.ValidString(h) {
			t.Errorf("head(%q, %d) = %q, in the middle of a rune", text, most, h)
		}
		if len(text) > most && most >= 4 && len(h) == 0 && utf8.ValidString(text) {
			t.Errorf("head(%q, %d) is empty", text, most)
		}
	})
}

// Each line of a server's text is marked as quoted, whatever characters end a line.
func FuzzQuote(f *testing.F) {
	f.Add("a\nb\r\nc\u2028d\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range strings.Split(asQuote(text), "\n") {
			if !strings.HasPrefix(line, "> ") || strings.ContainsAny(line, "\r\v\f\u0085\u2028\u2029") {
				t.Errorf("a line of %q is %q", text, line)
			}
		}
	})
}

func tool(server, name, description, schema string) Tool {
	return Tool{Name: toolName(server, name), Server: server, Tool: &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}}
}

func TestSearchRanks(t *testing.T) {
	tools := []Tool{
		tool("mail", "send_message", "Sends an email to a person.", `{"properties":{"to":{"type":"string"},"subject":{}}}`),
		tool("mail", "listFolders", "Lists the folders of a mailbox.", `{}`),
		tool("shop", "add-to-cart", "Puts a product into the cart.", `{"properties":{"product":{"description":"id of the product"}}}`),
		tool("shop", "products", "Lists products by category.", `{"properties":{"category":{}}}`),
		tool("git", "log", "Shows commits and their messages.", `{}`),
		tool("files", "query", "Finds files.", `{"properties":{"pattern":{"description":"of the name, a category of glob"}}}`),
	}
	for _, tt := range []struct{ query, want string }{
		{"send email", "mail/send_message"},
		{"message", "mail/send_message git/log"},
		{"list products of a category", "shop/products"},
		{"product", "shop/products shop/add-to-cart"},
		{"categories", "shop/products files/query"},
		{"cart", "shop/add-to-cart"},
		{"FOLDER", "mail/listFolders"},
		{"commit", "git/log"},
		{"subject", "mail/send_message"},
		{"xyzzy", ""},
		{"", ""},
		{"!?", ""},
	} {
		var got []string
		for _, t := range search(tools, tt.query, 10) {
			got = append(got, t.Server+"/"+t.Tool.Name)
		}
		all := strings.Join(got, " ")
		if !strings.HasPrefix(all, tt.want) || tt.want == "" && all != "" { // others may follow
			t.Errorf("search(%q) = %s, want %s first", tt.query, all, tt.want)
		}
	}
	if got := search(tools, "list", 1); len(got) != 1 {
		t.Errorf("%d hits, want 1 at most", len(got))
	}
}

func BenchmarkSearch(b *testing.B) {
	var tools []Tool
	for i := range 1000 {
		tools = append(tools, tool("s", fmt.Sprintf("tool_%d", i), strings.Repeat("does this and that ", 10), `{"properties":{"a":{"description":"some words"},"b":{}}}`))
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(search(tools, "does tool 17", 8)) != 8 {
			b.Fatal("no hits")
		}
	}
}

// The results of one step share the window.
func TestResultsShareTheWindow(t *testing.T) {
	for _, tt := range []struct {
		window, limit int
		beside        int32
		want          int
	}{
		{0, 0, 50, 32 << 10}, {1_000_000, 0, 1, 32 << 10}, {8192, 0, 1, 8192}, {8192, 0, 2, 8192}, {8192, 0, 8, 2048}, {8192, 0, 100, 1024}, {8192, 500, 1, 500},
	} {
		c := (&Host{Limits: Limits{Window: tt.window, ResultBytes: tt.limit}}).NewConversation()
		c.beside.Store(tt.beside)
		if got := c.resultBytes(); got != tt.want {
			t.Errorf("in a window of %d, one of %d results may have %d bytes, want %d", tt.window, tt.beside, got, tt.want)
		}
	}
}
