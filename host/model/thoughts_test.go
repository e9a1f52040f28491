package model

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// think returns the output of a thinker for text in pieces: the thought, a bar, and the rest.
func think(pieces ...string) string {
	var thought, text strings.Builder
	t := &thinker{think: func(s string) { thought.WriteString(s) }, text: func(s string) { text.WriteString(s) }}
	for _, p := range pieces {
		t.add(p)
	}
	t.end()
	return thought.String() + "|" + text.String()
}

func TestThinker(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "|",
		"hello":                            "|hello",
		" \n<th":                           "| \n<th",
		"<thinking>x</think>":              "|<thinking>x</think>",
		"<think>hm</think>\n\nhello ":      "hm|hello ",
		"\n <think>\nhm\n</think>hello":    "\nhm\n|hello",
		"<think></think>hello":             "|hello",
		"<think>hm":                        "hm|",
		"<think>hm</thin":                  "hm</thin|",
		"<think>a < b </ </</think> c":     "a < b </ </|c",
		"<think>a</think> \n":              "a|",
		"<think>a</think><think>b</think>": "a|<think>b</think>",
		"Well: <think>a</think>":           "|Well: <think>a</think>",
	} {
		if got := think(in); got != want {
			t.Errorf("of %q came %q, want %q", in, got, want)
		}
		if got := think(strings.Split(in, "")...); got != want {
			t.Errorf("letter by letter of %q came %q, want %q", in, got, want)
		}
	}
}

// The output does not depend on the chunks, and only the marks and white space around a thought
// are dropped.
func FuzzThinker(f *testing.F) {
	for _, seed := range []string{"<think>hm</think>\n\nhello", " <think></thin</think> x", "hello <think>", "<think>" + strings.Repeat(" ", 2000)} {
		f.Add(seed, uint16(3), uint16(7))
	}
	f.Fuzz(func(t *testing.T, in string, i, j uint16) {
		a := int(i) % (len(in) + 1)
		b := a + int(j)%(len(in)-a+1)
		want := think(in)
		if got := think(in[:a], in[a:b], in[b:]); got != want {
			t.Fatalf("of %q, %q, %q came %q, but of it in one %q", in[:a], in[a:b], in[b:], got, want)
		}
		if thought, text, _ := strings.Cut(want, "|"); thought == "" && !strings.Contains(in, "<think>") && text != in {
			t.Fatalf("of %q came the text %q", in, text)
		} else if thought != "" && !strings.Contains(in, "|") && !strings.Contains(in, thought) {
			t.Fatalf("of %q came the thought %q", in, thought)
		}
	})
}

// The time for a hostile answer does not grow with the square of its length.
func TestThinkerHostile(t *testing.T) {
	for _, in := range []string{" ", "<", "</think", "<think>"} {
		th := &thinker{think: func(string) {}, text: func(string) {}}
		th.add("<think>")
		for range 300_000 {
			th.add(in)
		}
		th = &thinker{think: func(string) {}, text: func(string) {}}
		for range 300_000 {
			th.add(in)
		}
		th.end()
	}
}

// Calls in the thoughts of a model are not made and are not part of the answer.
func TestThoughtsOfTextMode(t *testing.T) {
	for _, tt := range []struct {
		pieces               []string
		thought, text, calls string
	}{
		{[]string{"<thi", "nk>Shall I? {\"tool\":\"now\"} No.</th", "ink>\n\nGood day."}, `Shall I? {"tool":"now"} No.`, "Good day.", ""},
		{[]string{"<think>I must.</think>\n{\"tool\":\"now\"}"}, "I must.", "", "now"},
		{[]string{"<think>Well, {\"tool\":\"now\"}"}, `Well, {"tool":"now"}`, "", ""},
	} {
		m := Text(&scripted{pieces: tt.pieces})
		var thought, text, calls string
		resp, err := m.Generate(t.Context(), &Request{Tools: textTools}, func(d Delta) {
			thought += d.Thinking
			text += d.Text
			if d.Call != nil {
				calls += d.Call.Name
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if thought != tt.thought || text != tt.text || calls != tt.calls {
			t.Errorf("of %q the thought %q, the text %q and the calls %q were told", tt.pieces, thought, text, calls)
		}
		thought, calls = "", ""
		for _, p := range resp.Message.Parts {
			if p.Opaque != nil {
				thought += p.Opaque.Text
			}
			if p.Call != nil {
				calls += p.Call.Name
			}
		}
		if thought != tt.thought || resp.Message.Text() != tt.text || calls != tt.calls {
			t.Errorf("of %q the thought %q, the text %q and the calls %q were returned", tt.pieces, thought, resp.Message.Text(), calls)
		}
	}
}

// A retried answer is parsed anew, and the beginning of one that broke off is returned.
func TestThoughtsBreakOff(t *testing.T) {
	cut := fmt.Errorf("cut")
	m := Thoughts(&fakeModel{func(emit func(Delta)) (*Response, error) {
		emit(Delta{Text: "<think>hm"})
		emit(Delta{Again: "once more"})
		emit(Delta{Text: "<think>ah"})
		return &Response{Message: Message{Assistant, []Part{{Text: "<think>ah"}}}}, cut
	}})
	var told strings.Builder
	resp, err := m.Generate(context.Background(), &Request{}, func(d Delta) { told.WriteString(d.Thinking + d.Text + d.Again + ".") })
	if err != cut || told.String() != "hm.once more.ah." || len(resp.Message.Parts) != 1 || resp.Message.Parts[0].Opaque.Text != "ah" {
		t.Errorf("Generate = %+v, %v; told %q", resp, err, &told)
	}
	if resp, err := Thoughts(&fakeModel{func(func(Delta)) (*Response, error) { return nil, cut }}).Generate(context.Background(), &Request{}, nil); resp != nil || err != cut {
		t.Errorf("Generate = %+v, %v; want nothing and %v", resp, err, cut)
	}
}
