package model

import (
	"context"
	"slices"
	"strings"
)

// Thoughts supports models that write their thoughts at the beginning of their text, between
// <think> and </think> or <reasoning> and </reasoning>. Thoughts are emitted as [Delta.Thinking] and are not part of the answer:
// in the response they are an [Opaque] that is never sent. A thought without an end extends to
// the end of the answer.
func Thoughts(m Model) Model { return &thoughtful{m} }

type thoughtful struct{ Model }

func (t *thoughtful) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error) {
	inner := emit
	var shown *thinker
	if emit != nil {
		begin := func() {
			shown = &thinker{
				think: func(text string) { emit(Delta{Thinking: text}) },
				text:  func(text string) { emit(Delta{Text: text}) },
			}
		}
		begin()
		inner = func(d Delta) {
			if d.Text != "" {
				shown.add(d.Text)
				return
			}
			if d.Again != "" {
				begin()
			}
			emit(d)
		}
	}
	resp, err := t.Model.Generate(ctx, req, inner)
	if resp == nil {
		return nil, err
	}
	if emit != nil && err == nil {
		shown.end()
	}
	out := *resp
	out.Message.Parts = nil
	add := func(p Part) { out.Message.Parts = append(out.Message.Parts, p) }
	var thought strings.Builder
	whole := &thinker{
		think: func(text string) { thought.WriteString(text) },
		text:  func(text string) { add(Part{Text: text}) },
	}
	for _, p := range resp.Message.Parts {
		if p.Text != "" {
			whole.add(p.Text)
			continue
		}
		add(p)
	}
	whole.end()
	if text := strings.TrimSpace(thought.String()); text != "" {
		out.Message.Parts = slices.Insert(out.Message.Parts, 0, Part{Opaque: &Opaque{Provider: "think", Text: text}})
	}
	return &out, err
}

// A thinker splits a streamed text into the thought at its beginning and the rest. Its output
// does not depend on the chunks of the input.
type thinker struct {
	think, text func(string)

	buf   string // not decided
	state thinkState

	closing string // tag at the end of the thought
}

type thinkState int

const (
	beforeThought thinkState = iota
	inThought
	afterThought // in the white space behind it, which is dropped
	noThought
)

const maxBefore = 1000 // bytes of white space that may come before a thought

// thoughtTags are the tags around thoughts; the second one is that of gpt-oss on Bedrock.
var thoughtTags = [][2]string{{"<think>", "</think>"}, {"<reasoning>", "</reasoning>"}}

func (t *thinker) add(text string) {
	t.buf += text
	for t.buf != "" && t.step() {
	}
}

// step processes the start of the buffer. It returns false if it needs more text.
func (t *thinker) step() bool {
	switch t.state {
	case beforeThought:
		rest := strings.TrimLeft(t.buf, space)
		t.state = noThought
		if len(t.buf)-len(rest) > maxBefore {
			break
		}
		for _, tags := range thoughtTags {
			switch open := tags[0]; {
			case strings.HasPrefix(rest, open):
				t.buf, t.state, t.closing = rest[len(open):], inThought, tags[1]
			case strings.HasPrefix(open, rest):
				t.state = beforeThought
				return false
			}
		}
	case inThought:
		thought, rest, ended := strings.Cut(t.buf, t.closing)
		if !ended {
			n := len(t.closing) - 1
			for !strings.HasSuffix(t.buf, t.closing[:n]) {
				n--
			}
			thought, rest = t.buf[:len(t.buf)-n], t.buf[len(t.buf)-n:]
		} else {
			t.state = afterThought
		}
		if t.buf = rest; thought != "" {
			t.think(thought)
		}
		return ended
	case afterThought:
		if t.buf = strings.TrimLeft(t.buf, space); t.buf != "" {
			t.state = noThought
		}
	case noThought:
		t.text(t.buf)
		t.buf = ""
	}
	return true
}

// end emits the rest at the end of the text.
func (t *thinker) end() {
	switch {
	case t.buf == "":
	case t.state == inThought:
		t.think(t.buf)
	default:
		t.text(t.buf)
	}
	t.buf = ""
}
