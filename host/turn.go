package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	opening  int               // number of entries with which the turn began: what the person said

	cat     *catalog                         // of the current step
	begun   int                              // calls that the model began in the last answer
	again   bool                             // the model was asked again since its last calls, as its answer was of no use
	tries   int                              // answers that did not fit
	mute    bool                             // what the model writes is a summary, which is told at its end
	fails   int                              // summaries that failed, in a row
	same    map[[sha256.Size]byte]repetition // by call and result
	earlier map[[sha256.Size]byte]repetition // likewise, those before same
	news    int                              // steps with a new one
}

// mostSame bounds same; when it is full, it becomes earlier. A loop of more calls may go unnoticed.
const mostSame = 1000

// repetition counts identical calls with the same result, since something else was new.
type repetition struct{ n, news int }

// Messages of the host to the model, each for one request.
const (
	sayEmpty   = "[Your answer was empty. Answer, or call a tool.]"
	sayCut     = "[Your answer was cut off %s.]"
	sayCutCall = "[Your answer was cut off %s, in the middle of a call, which was not made. Write less at once: call with shorter arguments, or in several steps.]"
	sayCutMute = "[Your answer was cut off %s, before its first word. Answer, or call a tool, with less reasoning.]"
	saySteps   = "[You have taken the maximum number of steps. Call no more tools: answer now with what you have, and say what is missing.]"
	sayStop    = "[You have made the same call again, with the same result. Call no more tools: answer now with what you have, and say what is missing.]"
	sayBudget  = "[The tokens for this task are almost used up. Call no more tools: answer now with what you have, and say what is missing.]"
	sayRepeats = "[You have made the same call %d times, with the same arguments and the same result: %s. Do something else, or answer with what you have.]"
	sayMisfit  = "[The answer does not fit. Answer again, with JSON alone that fits the schema.\n%v\nThe schema is: %s]"
)

// mostTries bounds how many times the model may correct an answer that does not fit the schema.
const mostTries = 2

// run asks the model and makes its calls until it answers.
func (t *turn) run(ctx context.Context) error {
	c, r := t.c, t.r
	t.same = map[[sha256.Size]byte]repetition{}
	said := ""
	for {
		if told, err := t.spend(); err != nil {
			return err
		} else if told != "" {
			said = told
		}
		choice := model.Choice{}
		switch {
		case r.Early != "":
			choice.Mode = "none"
		case r.Steps == 0 && len(t.insisted) > 0:
			choice = model.Choice{Mode: "tool", Tool: t.insisted[0]}
		}
		res, err := t.ask(ctx, choice, said)
		said = ""
		cut := ""
		if res != nil {
			cut = t.cutOff(res, err)
			if err != nil || r.Early != "" { // the answer broke off, or no more calls are made
				res.Message.Parts = slices.DeleteFunc(res.Message.Parts, func(p model.Part) bool { return p.Call != nil })
			}
			if len(res.Message.Calls()) > 0 || hasText(&res.Message) {
				m := res.Message
				if cut != "" {
					m.Parts = append(slices.Clip(m.Parts), mark{Cut: cut}.part())
				}
				c.add(ctx, Entry{Message: m, Model: res.Model, Usage: res.Usage, Retried: res.Retried, Cost: t.m.Info().Price.Of(res.Usage)})
			}
		}
		if err != nil {
			return err
		}
		calls := res.Message.Calls()
		lost := cut != "" && t.begun > len(calls) && r.Early == "" // the answer was to be a call
		switch {
		case len(calls) > 0:
			t.again = false
			c.beside.Store(int32(len(calls)))
			parts := c.run(ctx, calls, t.cat.tools)
			c.add(ctx, Entry{Message: model.Message{Role: model.User, Parts: parts}})
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			said = t.progress(calls, parts)
		case hasText(&res.Message) && (!lost || t.again):
			t.noteWritten(res)
			again, err := t.fits(ctx, res.Message.Text())
			if err != nil || !again {
				return err
			}
		case r.Early == TooManySteps:
			return fmt.Errorf("%w: %d", ErrSteps, r.Steps)
		case t.again || res.Stop == model.StopRefused:
			return nil
		case hasText(&res.Message):
			t.again = true
		case cut != "":
			t.again, said = true, cut
		default:
			t.again, said = true, sayEmpty
			c.tell(Event{Kind: Noted, Text: "the answer was empty; retrying"})
		}
	}
}

// noteWritten notes an answer that is, or has, the text of a call.
func (t *turn) noteWritten(res *model.Response) {
	var tools []model.Tool
	for _, tool := range t.cat.tools {
		tools = append(tools, model.Tool{Name: tool.Name})
	}
	if name := model.Written(res.Message.Text(), tools); name != "" {
		_, id, _ := strings.Cut(t.m.Info().Name, "/")
		t.c.tell(Event{Kind: Noted, Text: fmt.Sprintf("the model wrote a call of %s as text, so nothing was called; text/%s is the same model with calls in its text", quoted(name), id)})
	}
}

// cutOff notes an answer that was cut off, and returns what the model is told about it, or "".
func (t *turn) cutOff(res *model.Response, err error) string {
	if err != nil || res.Stop != model.StopLength {
		return ""
	}
	u := res.Usage
	u.Input, u.Output = u.Input-res.Retried.Input, u.Output-res.Retried.Output // of the attempt that was cut off alone
	at := "at the maximum length of an answer"
	if u.Output > 0 {
		at += ", " + plural(int(u.Output), "token")
	}
	if w := t.m.Info().Window; w > 0 && u.Input+u.Output >= int64(w)*99/100 {
		at = "at the window of the model, " + plural(w, "token") + " with all that was said before"
	}
	what, say := "", sayCut
	switch {
	case t.begun > len(res.Message.Calls()):
		what, say = ", in the middle of a call, which was not made", sayCutCall
	case !hasText(&res.Message) && len(res.Message.Calls()) == 0:
		what, say = ", before its first word", sayCutMute
	}
	t.c.tell(Event{Kind: Noted, Text: "the answer was cut off " + at + what})
	return fmt.Sprintf(say, at)
}

// hasText reports whether a message has visible text.
func hasText(m *model.Message) bool { return strings.TrimSpace(m.Text()) != "" }

// tooLong reports whether the model rejected a request as too long, before it answered anything.
func tooLong(res *model.Response, err error) bool {
	var failed *model.Error
	return errors.As(err, &failed) && failed.Kind == model.TooLong && (res == nil || len(res.Message.Parts) == 0)
}

// ask takes one step: it asks the model, after a summary if the window is almost full. With an
// error it returns what there is of the answer.
func (t *turn) ask(ctx context.Context, choice model.Choice, said string) (*model.Response, error) {
	c, r := t.c, t.r
	r.Steps++
	c.mu.Lock()
	c.step = r.Steps
	c.mu.Unlock()
	if err := t.list(ctx); err != nil {
		return nil, err
	}
	if choice.Tool != "" && !slices.ContainsFunc(t.cat.offered, func(tool Tool) bool { return tool.Name == choice.Tool }) {
		choice = model.Choice{}
	}
	if err := t.makeRoom(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	res, cost, err := t.answer(ctx, asking{choice: choice, said: said})
	if res == nil {
		return nil, err
	}
	if err != nil {
		res.Stop = "" // it broke off
	}
	r.Stop, r.Text = res.Stop, res.Message.Text()
	c.tell(Event{Kind: Answered, Text: r.Text, Usage: &res.Usage, Cost: cost, Model: res.Model, Stop: res.Stop, Took: Millis(time.Since(began))})
	return res, err
}

// list lists the tools of the step.
func (t *turn) list(ctx context.Context) error {
	t.cat = t.c.catalog(ctx, t.m.Info(), t.insisted...)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.c.measure(t.cat, len(t.c.system(t.cat)))
	return nil
}

// answer asks the model, and retries with less while the request is too long. With an error it
// returns what there is of the answer, and what that cost.
func (t *turn) answer(ctx context.Context, a asking) (res *model.Response, cost float64, err error) {
	c := t.c
	request := func(less bool) (*model.Request, int) {
		a.less = less
		req, size := c.request(t.m, t.cat, a)
		if t.fitting != nil && !a.whole {
			req.Schema = c.Schema
		}
		return req, size
	}
	req, size := request(false)
	res, err = t.generate(ctx, req)
	if tooLong(res, err) && !a.whole && t.summariseFor(ctx, size) {
		req, size = request(false)
		res, err = t.generate(ctx, req)
	}
	for again := false; tooLong(res, err); again = true {
		req, smaller := request(true)
		if smaller >= size {
			break // the rest is what the model must have
		}
		if size = smaller; !again {
			c.tell(Event{Kind: Noted, Text: "the conversation is too long for the model; more of it is left out"})
		}
		res, err = t.generate(ctx, req)
	}
	if res == nil {
		return nil, 0, err
	}
	cost = t.m.Info().Price.Of(res.Usage)
	t.r.Usage.Add(res.Usage)
	t.r.Cost += cost
	return res, cost, err
}

// generate makes one request to the model. If the answer broke off, it returns the part that was
// received, even if the model does not.
func (t *turn) generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	c := t.c
	if !t.mute {
		c.tell(Event{Kind: Asking, Model: t.m.Info().Name})
	}
	var came strings.Builder
	t.begun = 0
	res, err := c.within(ctx, t.m, req, c.taken(), func(d model.Delta) {
		switch {
		case d.Note != "":
			c.tell(Event{Kind: Noted, Text: d.Note})
		case d.Call != nil:
			t.begun = max(t.begun, d.Call.Index+1)
		case d.Again != "":
			came.Reset()
			t.begun = 0
			kind := Again
			if t.mute {
				kind = Noted
			}
			c.tell(Event{Kind: kind, Text: d.Again})
		case t.mute:
			came.WriteString(d.Text)
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
	if len(t.same) >= mostSame {
		t.same, t.earlier = map[[sha256.Size]byte]repetition{}, t.same
	}
	seen := func(digest [sha256.Size]byte) (repetition, bool) {
		if same, known := t.same[digest]; known {
			return same, true
		}
		same, known := t.earlier[digest]
		return same, known
	}
	step := map[[sha256.Size]byte]*model.Call{} // identical calls in one answer count once
	for i, call := range calls {
		step[callDigest(call, parts[i].Result)] = call
	}
	for digest := range step {
		if _, known := seen(digest); !known {
			t.news++ // tests fail in the same way after each of several edits: that is not a loop
			break
		}
	}
	for digest, call := range step {
		same, _ := seen(digest)
		if same.news != t.news {
			same = repetition{news: t.news}
		}
		same.n++
		t.same[digest] = same
		switch {
		case same.n > most:
			t.r.Early = NoProgress
		case same.n == most:
			said = fmt.Sprintf(sayRepeats, same.n, quoted(call.Name))
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
	answer, err := jsonIn(text, t.fitting.Validate)
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
