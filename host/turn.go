package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/schema"
)

// turn is one turn of a conversation as it runs.
type turn struct {
	c        *Conversation
	m        model.Model
	r        *Reply
	fitting  *schema.Validator // what the answer must fit; nil: any text
	insisted []string          // names of tools; the model must begin with the first

	cat   *catalog // of the current step
	empty bool     // an answer was empty before
	tries int      // answers that did not fit
	same  map[[sha256.Size]byte]int
}

// Messages of the host to the model, each for one request.
const (
	sayEmpty   = "[Your answer was empty. Answer, or call a tool.]"
	saySteps   = "[You have taken the maximum number of steps. Call no more tools: answer now with what you have, and say what is missing.]"
	sayStop    = "[You have made the same call again, with the same result. Call no more tools: answer now with what you have, and say what is missing.]"
	sayRepeats = "[You have made the same call %d times, with the same arguments and the same result: %s. Do something else, or answer with what you have.]"
	sayMisfit  = "[The answer does not fit. Answer again, with JSON alone that fits the schema.\n%v\nThe schema is: %s]"
)

// mostTries bounds how many times the model may correct an answer that does not fit the schema.
const mostTries = 2

// run asks the model and makes its calls until it answers.
func (t *turn) run(ctx context.Context) error {
	c, r := t.c, t.r
	t.same = map[[sha256.Size]byte]int{}
	said := ""
	for {
		choice := model.Choice{}
		switch {
		case r.Early != "":
			choice.Mode = "none"
		case r.Steps == 0 && len(t.insisted) > 0:
			choice = model.Choice{Mode: "tool", Tool: t.insisted[0]}
		}
		res, err := t.ask(ctx, choice, said)
		said = ""
		if res != nil {
			if err != nil || r.Early != "" { // the answer broke off, or no more calls are made
				res.Message.Parts = slices.DeleteFunc(res.Message.Parts, func(p model.Part) bool { return p.Call != nil })
			}
			if len(res.Message.Calls()) > 0 || hasText(&res.Message) {
				c.add(ctx, Entry{Message: res.Message, Model: res.Model, Usage: res.Usage, Cost: t.m.Info().Price.Of(res.Usage)})
			}
		}
		if err != nil {
			return err
		}
		calls := res.Message.Calls()
		switch {
		case len(calls) > 0:
			c.beside.Store(int32(len(calls)))
			parts := c.run(ctx, calls, t.cat.tools)
			c.add(ctx, Entry{Message: model.Message{Role: model.User, Parts: parts}})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			said = t.progress(calls, parts)
		case hasText(&res.Message):
			again, err := t.fits(ctx, res.Message.Text())
			if err != nil || !again {
				return err
			}
		case r.Early == TooManySteps:
			return fmt.Errorf("%w: %d", ErrSteps, r.Steps)
		case t.empty || res.Stop == model.StopRefused:
			return nil
		default:
			t.empty, said = true, sayEmpty
			c.tell(Event{Kind: Noted, Text: "the answer was empty; retrying"})
		}
	}
}

// hasText reports whether a message has visible text.
func hasText(m *model.Message) bool { return strings.TrimSpace(m.Text()) != "" }

// ask takes one step: it asks the model, and retries once with less if the request was too long.
// With an error it returns what there is of the answer.
func (t *turn) ask(ctx context.Context, choice model.Choice, said string) (*model.Response, error) {
	c, r := t.c, t.r
	r.Steps++
	c.mu.Lock()
	c.step = r.Steps
	c.mu.Unlock()
	t.cat = c.catalog(ctx, t.m.Info(), t.insisted...)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if choice.Tool != "" && !slices.ContainsFunc(t.cat.offered, func(tool Tool) bool { return tool.Name == choice.Tool }) {
		choice = model.Choice{}
	}
	request := func(hard bool) *model.Request {
		req := c.request(t.m, t.cat, choice, said, hard)
		if t.fitting != nil {
			req.Schema = c.Schema
		}
		return req
	}
	res, err := t.generate(ctx, request(false))
	var failed *model.Error
	if errors.As(err, &failed) && failed.Kind == model.TooLong && res == nil {
		c.tell(Event{Kind: Noted, Text: "the conversation is too long for the model; more of its beginning is left out"})
		res, err = t.generate(ctx, request(true))
	}
	if res == nil {
		return nil, err
	}
	cost := t.m.Info().Price.Of(res.Usage)
	r.Usage.Add(res.Usage)
	r.Cost += cost
	c.use(res.Usage, cost)
	r.Stop, r.Text = res.Stop, res.Message.Text()
	c.tell(Event{Kind: Answered, Text: r.Text, Usage: &res.Usage, Cost: cost, Model: res.Model})
	return res, err
}

// generate makes one request to the model. If the answer broke off, it returns the part that was
// received, even if the model does not.
func (t *turn) generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	c := t.c
	c.tell(Event{Kind: Asking, Model: t.m.Info().Name})
	var came strings.Builder
	res, err := t.m.Generate(ctx, req, func(d model.Delta) {
		switch {
		case d.Again != "":
			came.Reset()
			c.tell(Event{Kind: Again, Text: d.Again})
		case d.Text != "":
			came.WriteString(d.Text)
			c.tell(Event{Kind: TextCame, Text: d.Text})
		case d.Thinking != "":
			c.tell(Event{Kind: Thought, Text: d.Thinking})
		}
	})
	switch {
	case res == nil && err == nil:
		return nil, &model.Error{Kind: model.Malformed, Model: t.m.Info().Name, Message: "neither an answer nor an error"}
	case res == nil && came.Len() > 0:
		res = &model.Response{Message: model.Message{Role: model.Assistant, Parts: words(came.String())}, Model: t.m.Info().Name}
	}
	return res, err
}

// progress counts steps and repeated calls, and returns what the model is told about them.
func (t *turn) progress(calls []*model.Call, parts []model.Part) (said string) {
	most := or(t.c.h.Limits.Repeats, 3)
	step := map[[sha256.Size]byte]bool{} // identical calls in one answer count once
	for i, call := range calls {
		digest := callDigest(call, parts[i].Result)
		if step[digest] {
			continue
		}
		step[digest] = true
		t.same[digest]++
		switch n := t.same[digest]; {
		case n > most:
			t.r.Early = NoProgress
		case n == most:
			said = fmt.Sprintf(sayRepeats, n, quoted(call.Name))
		}
	}
	if t.r.Early == "" && t.r.Steps >= or(t.c.h.Limits.Steps, 50) {
		t.r.Early = TooManySteps
	}
	switch t.r.Early {
	case NoProgress:
		said = sayStop
		t.c.tell(Event{Kind: Noted, Text: "the model repeats the same call and must answer now"})
	case TooManySteps:
		said = saySteps
		t.c.tell(Event{Kind: Noted, Text: fmt.Sprintf("the model has taken %s and must answer now", plural(t.r.Steps, "step"))})
	}
	return said
}

// callDigest identifies a call and its result.
func callDigest(call *model.Call, r *model.Result) [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", callKey(call.Name, repaired(call.Arguments)))
	for _, p := range r.Parts {
		fmt.Fprintf(h, " %d %s", len(p.Text), p.Text)
		if p.Media != nil {
			fmt.Fprintf(h, " %s %d ", p.Media.MIME, len(p.Media.Data))
			h.Write(p.Media.Data)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// fits checks an answer against the schema, and reports whether the model must try again.
func (t *turn) fits(ctx context.Context, text string) (again bool, err error) {
	if t.fitting == nil {
		return false, nil
	}
	answer := bareJSON(text)
	err = t.fitting.Validate(answer)
	switch {
	case err == nil:
		t.r.Text = string(answer)
		return false, nil
	case t.tries == mostTries:
		return false, fmt.Errorf("%w: %v", ErrSchema, err)
	}
	t.tries++
	t.c.tell(Event{Kind: Noted, Text: "the answer does not fit the schema; retrying"})
	complaint := fmt.Sprintf(sayMisfit, err, head(string(t.c.Schema), 8<<10))
	t.c.add(ctx, Entry{Message: marked(mark{Host: true}, model.Part{Text: complaint})})
	return true, nil
}

// bareJSON returns the JSON of an answer without a Markdown fence.
func bareJSON(text string) []byte {
	b := bytes.TrimSpace([]byte(text))
	if inner, ok := bytes.CutPrefix(b, []byte("```")); ok {
		if inner, ok = bytes.CutSuffix(inner, []byte("```")); ok {
			if _, rest, ok := bytes.Cut(inner, []byte("\n")); ok {
				return bytes.TrimSpace(rest)
			}
		}
	}
	return b
}
