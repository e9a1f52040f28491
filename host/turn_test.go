package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// talker is a model that gives its answers one after the other, and then repeats the last one.
type talker struct {
	info    model.Info
	answers []answer

	mu       sync.Mutex
	requests []*model.Request // guarded by mu
}

type answer func(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error)

var _ model.Model = (*talker)(nil)

func (m *talker) Info() model.Info {
	i := m.info
	i.Name = "fake/talker"
	return i
}

func (m *talker) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	m.mu.Lock()
	n := len(m.requests)
	m.requests = append(m.requests, req)
	m.mu.Unlock()
	res, err := m.answers[min(n, len(m.answers)-1)](ctx, req, emit)
	if res != nil && res.Usage == (model.Usage{}) {
		res.Usage = model.Usage{Input: 10, Output: 1}
	}
	return res, err
}

// request returns the nth request, from 0.
func (m *talker) request(t testing.TB, n int) *model.Request {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.requests) {
		t.Fatalf("there were %d requests, want one more than %d", len(m.requests), n)
	}
	return m.requests[n]
}

func (m *talker) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

// say is an answer of text.
func say(text string) answer {
	return func(_ context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
		for _, piece := range strings.SplitAfter(text, " ") {
			emit(model.Delta{Text: piece})
		}
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}, Stop: model.StopEnd}, nil
	}
}

// want is an answer of calls, each written as: name {arguments}.
func want(calls ...string) answer {
	n := 0
	return func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
		m := model.Message{Role: model.Assistant}
		for _, text := range calls {
			name, args, _ := strings.Cut(text, " ")
			n++
			m.Parts = append(m.Parts, model.Part{Call: &model.Call{ID: fmt.Sprintf("%s-%d", name, n), Name: name, Arguments: json.RawMessage(args)}})
		}
		return &model.Response{Message: m, Stop: model.StopCalls}, nil
	}
}

func fail(err error) answer {
	return func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) { return nil, err }
}

// lastText is the text of the last message of a request, with that of results.
func lastText(req *model.Request) string {
	var b strings.Builder
	for _, p := range req.Messages[len(req.Messages)-1].Parts {
		b.WriteString(p.Text)
		if p.Result != nil {
			for _, part := range p.Result.Parts {
				b.WriteString(part.Text)
			}
		}
	}
	return b.String()
}

// clock is a server whose tool "now" always returns the same, and "tick" never.
func clock() *mcp.Server {
	s := &mcp.Server{Name: "clock", Version: "1"}
	var mu sync.Mutex
	n := 0
	mcp.AddTool(s, mcp.Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
	mcp.AddTool(s, mcp.Tool{Name: "tick"}, func(context.Context, struct{}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint(n), nil
	})
	return s
}

// paired fails the test if a call in a conversation has no result after it, or a result has no
// call.
func paired(t testing.TB, messages []model.Message) {
	t.Helper()
	open := map[string]bool{}
	for i, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Result != nil && !open[p.Result.ID]:
				t.Errorf("message %d has a result of %q without a call", i, p.Result.ID)
			case p.Result != nil:
				delete(open, p.Result.ID)
			}
		}
		if m.Role == model.User && len(open) > 0 {
			t.Errorf("after message %d calls have no result: %v", i, open)
		}
		for _, call := range m.Calls() {
			open[call.ID] = true
		}
		if i > 0 && messages[i-1].Role == m.Role {
			t.Errorf("messages %d and %d are both of the %s", i-1, i, m.Role)
		}
	}
}

func TestStepsAreBounded(t *testing.T) {
	m := &talker{answers: []answer{want("clock_tick"), want("clock_tick"), say("so far")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{Steps: 2}}, inMemory("clock", clock()))
	c := h.NewConversation()
	r, err := c.Send(t.Context(), "go")
	if err != nil || r.Text != "so far" || r.Early != host.TooManySteps || r.Steps != 3 {
		t.Fatalf("Send = %+v, %v; want an early answer", r, err)
	}
	last := m.request(t, 2)
	if last.Choice.Mode != "none" || !strings.Contains(lastText(last), "maximum number of steps") {
		t.Errorf("the last request has choice %+v and ends with %q", last.Choice, lastText(last))
	}
	if len(last.Tools) == 0 {
		t.Error("the last request has no tools: the prompt begins otherwise than before")
	}
	for _, e := range c.Snapshot() {
		if strings.Contains(e.Text(), "maximum number of steps") {
			t.Errorf("what the host said once is kept: %q", e.Text())
		}
	}
}

func TestNoAnswerAfterTheLastStep(t *testing.T) {
	m := &talker{answers: []answer{want("clock_tick")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{Steps: 3}}, inMemory("clock", clock()))
	c := h.NewConversation()
	if _, err := c.Send(t.Context(), "go"); !errors.Is(err, host.ErrSteps) {
		t.Fatalf("Send = %v, want ErrSteps", err)
	}
	m.answers = []answer{say("hello")}
	if _, err := c.Send(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	paired(t, m.request(t, m.asked()-1).Messages)
}

// A model that repeats calls with the same results, several of them in turn too, must answer.
func TestRepeatsAreNoticed(t *testing.T) {
	m := &talker{answers: []answer{
		want(`clock_now {"a":1}`), want(`clock_now {"a":2}`), want(`clock_now {  "a":1}`), want(`clock_now {"a":2}`), want(`clock_now {"a":1}`), want(`clock_now {"a":1}`), want(`clock_now {"a":1}`), say("noon, it seems"),
	}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", looseClock()))
	r, err := h.NewConversation().Send(t.Context(), "go")
	if err != nil || r.Early != host.NoProgress || r.Text != "noon, it seems" {
		t.Fatalf("Send = %+v, %v", r, err)
	}
	for i, told := range []bool{false, false, false, false, false, false, true} {
		if got := strings.Contains(lastText(m.request(t, i)), "made the same call 3 times"); got != told {
			t.Errorf("request %d tells of repeats: %v, want %v", i, got, told)
		}
	}
	if last := m.request(t, 7); last.Choice.Mode != "none" {
		t.Errorf("the last request has choice %+v", last.Choice)
	}
}

// Calls with the same result are not repeats if something else is new in between, such as edits between
// tests that fail in the same way.
func TestTheSameResultAfterSomethingNew(t *testing.T) {
	m := &talker{}
	for range 10 {
		m.answers = append(m.answers, want("clock_now {}"), want("clock_tick"))
	}
	m.answers = append(m.answers, say("noon all the time"))
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", looseClock()))
	r, err := h.NewConversation().Send(t.Context(), "go")
	if err != nil || r.Early != "" || r.Text != "noon all the time" {
		t.Fatalf("Send = %+v, %v", r, err)
	}
}

// looseClock is a clock whose tools take any arguments.
func looseClock() *mcp.Server {
	s := clock()
	s.HandleTool(mcp.Tool{Name: "now", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("noon")}}, nil
	})
	return s
}

func TestEmptyAnswerIsAskedAgainOnce(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []answer
		text    string
	}{
		{"and then comes one", []answer{say(" "), say("here")}, "here"},
		{"and again", []answer{say(""), say(""), say("too late")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &talker{answers: tt.answers}
			h := newHost(t, &host.Host{Model: m})
			c := h.NewConversation()
			r, err := c.Send(t.Context(), "go")
			if err != nil || r.Text != tt.text || m.asked() != 2 {
				t.Errorf("Send = %+v, %v after %d requests; want %q after 2", r, err, m.asked(), tt.text)
			}
			if !strings.Contains(lastText(m.request(t, 1)), "was empty") {
				t.Errorf("the model is not told: %q", lastText(m.request(t, 1)))
			}
			if r.Usage.Input != 20 {
				t.Errorf("usage %+v, want that of both", r.Usage)
			}
		})
	}
}

func TestBrokenAnswerIsKept(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the person has had enough")
	m := &talker{answers: []answer{func(ctx context.Context, _ *model.Request, emit func(model.Delta)) (*model.Response, error) {
		emit(model.Delta{Text: "void "})
		emit(model.Delta{Again: "lost"})
		emit(model.Delta{Text: "Once upon "})
		emit(model.Delta{Text: "a time"})
		cancel(stop)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}, say("there was")}}
	h := newHost(t, &host.Host{Model: m})
	c := h.NewConversation()
	r, err := c.Send(ctx, "tell")
	if !errors.Is(err, stop) || r.Text != "Once upon a time" {
		t.Errorf("Send = %+v, %v; want what came, and the cause", r, err)
	}
	if _, err := c.Send(t.Context(), "go on"); err != nil {
		t.Fatal(err)
	}
	req := m.request(t, 1)
	paired(t, req.Messages)
	if len(req.Messages) != 3 || req.Messages[1].Text() != "Once upon a time" {
		t.Errorf("messages %+v", req.Messages)
	}
}

// The calls of an answer that broke off are not made.
func TestBrokenCallsAreDropped(t *testing.T) {
	broken := &model.Error{Kind: model.Unavailable, Message: "broke off"}
	m := &talker{answers: []answer{func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
		res, _ := want("clock_tick")(ctx, r, emit)
		res.Message.Parts = append(res.Message.Parts, model.Part{Text: "I shall"})
		return res, broken
	}}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", clock()))
	c := h.NewConversation()
	if _, err := c.Send(t.Context(), "go"); !errors.Is(err, broken) {
		t.Fatalf("Send = %v, want what the model said", err)
	}
	entries := c.Snapshot()
	if last := entries[len(entries)-1]; last.Text() != "I shall" || len(last.Calls()) > 0 {
		t.Errorf("the last entry is %+v", last.Message)
	}
}

func TestThoughtsAreKept(t *testing.T) {
	thought := model.Part{Opaque: &model.Opaque{Provider: "fake", Data: json.RawMessage(`"hm"`)}}
	m := &talker{answers: []answer{func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
		return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{thought, {Text: "yes"}}}}, nil
	}}}
	h := newHost(t, &host.Host{Model: m})
	c := h.NewConversation()
	for range 2 {
		if _, err := c.Send(t.Context(), "really?"); err != nil {
			t.Fatal(err)
		}
	}
	if parts := m.request(t, 1).Messages[1].Parts; len(parts) != 2 || parts[0].Opaque == nil {
		t.Errorf("the model is given back %+v", parts)
	}
}

const citySchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`

func TestAnswerFitsSchema(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []answer
		text    string
		err     error
		asked   int
	}{
		{"at once", []answer{say(`{"city":"Oslo"}`)}, `{"city":"Oslo"}`, nil, 1},
		{"fenced", []answer{say("```json\n{\"city\":\"Oslo\"}\n```\n")}, `{"city":"Oslo"}`, nil, 1},
		{"after a complaint", []answer{say("Oslo"), say(`{"city":1}`), say(`{"city":"Oslo"}`)}, `{"city":"Oslo"}`, nil, 3},
		{"in prose", []answer{say("Sure! Here is the JSON [1]: {\"city\": \"Oslo\"}\nIs {that} what you want?")}, `{"city": "Oslo"}`, nil, 1},
		{"in a fence in prose", []answer{say("Sure!\n```json\n{\"city\":\"Oslo\"}\n```\nIt fits.")}, `{"city":"Oslo"}`, nil, 1},
		{"twice the same in prose", []answer{say("{\"city\":\"Oslo\"}, so: { \"city\": \"Oslo\" }")}, `{"city":"Oslo"}`, nil, 1},
		{"two different ones in prose", []answer{say("{\"city\":\"Oslo\"} or {\"city\":\"Rome\"}"), say(`{"city":"Rome"}`)}, `{"city":"Rome"}`, nil, 2},
		{"inside of another one", []answer{say("It is {\"answer\":{\"city\":\"Oslo\"}}."), say(`{"city":"Oslo"}`)}, `{"city":"Oslo"}`, nil, 2},
		{"never", []answer{say("Oslo")}, "Oslo", host.ErrSchema, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &talker{answers: tt.answers}
			h := newHost(t, &host.Host{Model: m})
			c := h.NewConversation()
			c.Schema = json.RawMessage(citySchema)
			r, err := c.Send(t.Context(), "where?")
			if !errors.Is(err, tt.err) || r.Text != tt.text || m.asked() != tt.asked {
				t.Errorf("Send = %+v, %v after %d requests; want %q, %v after %d", r, err, m.asked(), tt.text, tt.err, tt.asked)
			}
			for i := range m.asked() {
				req := m.request(t, i)
				paired(t, req.Messages)
				if string(req.Schema) != citySchema {
					t.Errorf("request %d has the schema %s", i, req.Schema)
				}
				if i > 0 && !strings.Contains(lastText(req), "does not fit") {
					t.Errorf("request %d ends with %q", i, lastText(req))
				}
			}
			if said, err := c.Undo(t.Context()); said != "where?" || err != nil {
				t.Errorf("Undo = %q, %v", said, err)
			}
		})
	}
	t.Run("the reason", func(t *testing.T) {
		for text, want := range map[string]string{"It is Oslo.": "it is not JSON", `It is {"city":1}.`: "the JSON in it: ", `{"city":"a"} {"city":"b"}`: "it has 2 different JSON values that fit"} {
			c := newHost(t, &host.Host{Model: &talker{answers: []answer{say(text)}}}).NewConversation()
			c.Schema = json.RawMessage(citySchema)
			if _, err := c.Send(t.Context(), "where?"); !errors.Is(err, host.ErrSchema) || !strings.Contains(err.Error(), want) {
				t.Errorf("the answer %s is the error %v, want %q", text, err, want)
			}
		}
	})
	t.Run("brackets without end", func(t *testing.T) {
		c := newHost(t, &host.Host{Model: &talker{answers: []answer{say(strings.Repeat(`{"a":[`, 200_000))}}}).NewConversation()
		c.Schema = json.RawMessage(citySchema)
		if _, err := c.Send(t.Context(), "where?"); !errors.Is(err, host.ErrSchema) {
			t.Errorf("Send = %v", err)
		}
	})
	t.Run("no schema", func(t *testing.T) {
		c := newHost(t, &host.Host{Model: &talker{answers: []answer{say("x")}}}).NewConversation()
		c.Schema = json.RawMessage(`{"type":7}`)
		if r, err := c.Send(t.Context(), "where?"); err == nil || r != nil || len(c.Snapshot()) > 0 {
			t.Errorf("Send = %+v, %v", r, err)
		}
	})
}

func TestTooLongIsAskedAgainWithLess(t *testing.T) {
	long := strings.Repeat("word ", 1000)
	tooLong := &model.Error{Kind: model.TooLong, Message: "too many tokens"}
	m := &talker{answers: []answer{say("a"), say("b"), fail(tooLong), say("c"), fail(tooLong), fail(tooLong)}}
	h := newHost(t, &host.Host{Model: m, Limits: host.Limits{SummariseAt: -1}})
	c := h.NewConversation()
	for i, want := range []string{"a", "b", "c"} {
		if r, err := c.Send(t.Context(), fmt.Sprintf("%d %s", i, long)); err != nil || r.Text != want {
			t.Fatalf("Send = %+v, %v; want %q", r, err, want)
		}
	}
	before, after := m.request(t, 2), m.request(t, 3)
	if len(after.Messages) >= len(before.Messages) || !strings.Contains(after.Messages[0].Text(), "left out") {
		t.Errorf("%d messages, and then %d that begin with %.50q", len(before.Messages), len(after.Messages), after.Messages[0].Text())
	}
	if got := lastText(after); !strings.HasPrefix(got, "[") && !strings.HasPrefix(got, "2 ") {
		t.Errorf("what was said last became %.50q", got)
	}
	if _, err := c.Send(t.Context(), "again"); !errors.Is(err, tooLong) || m.asked() != 6 {
		t.Errorf("Send = %v after %d requests, want the error after one more attempt", err, m.asked())
	}
	if n := len(c.Snapshot()); n != 7 {
		t.Errorf("%d entries are kept, want all 7", n)
	}
}

// Snapshot, Tools, Complete and Disable may be called while a model answers or is cancelled; the
// race detector checks this.
func TestConversationIsReadWhileItRuns(t *testing.T) {
	m := &talker{answers: []answer{want("clock_tick"), want("clock_now", "clock_tick"), want("clock_tick"), say("done")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", clock()))
	c := h.NewConversation()
	over := make(chan struct{})
	var wg sync.WaitGroup
	for _, f := range []func(){
		func() { c.Snapshot() },
		func() { h.Complete(t.Context(), "#cl", 3) },
		func() { h.Disable("clock", "n*"); h.Enable("clock", "n*") },
		func() { h.Tools(t.Context()); h.Prompts(t.Context()); h.Resources(t.Context()) },
	} {
		wg.Go(func() {
			for {
				f()
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	for range 3 {
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Error(err)
		}
	}
	close(over)
	wg.Wait()
}

func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going, goOn := make(chan struct{}), make(chan struct{})
		m := &talker{answers: []answer{func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
			close(going)
			<-goOn
			return say("ok")(ctx, r, emit)
		}}}
		h := &host.Host{Model: m}
		defer h.Close()
		c := h.NewConversation()
		var wg sync.WaitGroup
		wg.Go(func() { c.Send(t.Context(), "one") })
		<-going
		_, err1 := c.Send(t.Context(), "two")
		_, err2 := c.Undo(t.Context())
		_, err3 := c.Summarise(t.Context(), "")
		close(goOn)
		wg.Wait()
		for _, err := range []error{err1, err2, err3} {
			if !errors.Is(err, host.ErrBusy) {
				t.Errorf("in the middle of a turn: %v, want ErrBusy", err)
			}
		}
	})
}

func TestSummary(t *testing.T) {
	m := &talker{answers: []answer{want("clock_now"), say("noon"), say("They asked for the time; it is noon."), say("still noon")}}
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", clock()))
	c := h.NewConversation()
	var kept []host.Entry
	c.Keep = func(_ context.Context, at int, e *host.Entry) error {
		kept = kept[:at]
		if e != nil {
			kept = append(kept, *e)
		}
		return nil
	}
	if _, err := c.Send(t.Context(), "time?"); err != nil {
		t.Fatal(err)
	}
	r, err := c.Summarise(t.Context(), "")
	if err != nil || r.Text != "They asked for the time; it is noon." {
		t.Fatalf("Summarise = %+v, %v", r, err)
	}
	if req := m.request(t, 2); req.Choice.Mode != "none" || !strings.Contains(lastText(req), "summary") {
		t.Errorf("asked with %+v: %q", req.Choice, lastText(req))
	}
	// It works the same when it was kept and taken up again.
	again := h.NewConversation()
	again.Entries = slices.Clone(kept)
	if _, err := again.Send(t.Context(), "and now?"); err != nil {
		t.Fatal(err)
	}
	req := m.request(t, 3)
	if len(req.Messages) != 1 || !strings.Contains(lastText(req), "it is noon") || !strings.Contains(lastText(req), "and now?") {
		t.Errorf("after the summary the model is given %+v", req.Messages)
	}
	if n := len(c.Snapshot()); n != 5 || len(kept) != n {
		t.Errorf("%d entries, %d kept; want 5: all of them, and the summary", n, len(kept))
	}
	if e := c.Snapshot()[4]; !e.ByHost() || e.Said() != "" {
		t.Errorf("the summary passes for what the person said: %+v", e)
	}
	if said, err := c.Undo(t.Context()); err != nil || said != "" || len(c.Snapshot()) != 4 {
		t.Errorf("Undo = %q, %v; %d entries", said, err, len(c.Snapshot()))
	}
}

// A turn that Undo removes takes no room: content that was left out because of it is included
// again, and so is what its summary replaced.
func TestUndoMakesRoom(t *testing.T) {
	given := func(m *talker) string {
		var b strings.Builder
		for _, msg := range m.request(t, m.asked()-1).Messages {
			b.WriteString(msg.Text() + "\n")
		}
		return b.String()
	}
	undo := func(c *host.Conversation, n int) {
		for range n {
			if _, err := c.Undo(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := &talker{answers: []answer{say("yes")}}
	c := (&host.Host{Model: m, Limits: host.Limits{Window: 300}}).NewConversation()
	send := func(text string) {
		if _, err := c.Send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		send(fmt.Sprint("question ", i, strings.Repeat(" long", 100)))
	}
	if got := given(m); strings.Contains(got, "question 0") {
		t.Fatalf("all of it fits: %s", got)
	}
	undo(c, 3)
	send("HELLO")
	if got := given(m); !strings.Contains(got, "question 0") || !strings.HasSuffix(got, "HELLO\n") {
		t.Errorf("after a turn was taken back the model is given %s", got)
	}

	m = &talker{answers: []answer{say("yes")}}
	c = (&host.Host{Model: m}).NewConversation()
	send("ALPHA")
	if _, err := c.Summarise(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	send("beta")
	if got := given(m); strings.Contains(got, "ALPHA") {
		t.Fatalf("beside the summary the model is given %s", got)
	}
	undo(c, 2)
	send("gamma")
	if got := given(m); !strings.Contains(got, "ALPHA") || !strings.HasSuffix(got, "gamma\n") {
		t.Errorf("after the summary was taken back the model is given %s", got)
	}
}

// Close ends a turn with ErrClosed, without another request to the model, and no turn begins after.
func TestCloseEndsTurns(t *testing.T) {
	for _, during := range []string{"call", "answer"} {
		t.Run(during, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &talker{answers: []answer{want("n_work"), say("done")}}
				if during == "answer" {
					m.answers[0] = func(ctx context.Context, _ *model.Request, _ func(model.Delta)) (*model.Response, error) {
						<-ctx.Done()
						return nil, ctx.Err()
					}
				}
				n := &node{name: "n", takes: time.Hour}
				h := &host.Host{Model: m, Allow: []string{"*"}}
				added(t, h, n.server(""))
				c := h.NewConversation()
				sent := make(chan error)
				go func() {
					_, err := c.Send(t.Context(), "go")
					sent <- err
				}()
				synctest.Wait()
				h.Close()
				if err := <-sent; !errors.Is(err, host.ErrClosed) || m.asked() != 1 {
					t.Errorf("Send = %v after %d requests, want ErrClosed after 1", err, m.asked())
				}
				if r, err := c.Send(t.Context(), "again"); r != nil || !errors.Is(err, host.ErrClosed) || m.asked() != 1 {
					t.Errorf("Send after Close = %v, %v; want ErrClosed and no request", r, err)
				}
				if _, err := h.NewConversation().Summarise(t.Context(), ""); !errors.Is(err, host.ErrClosed) {
					t.Errorf("Summarise after Close = %v", err)
				}
			})
		})
	}
}

// A model that writes a call into its answer answers, but the person is told what that means.
func TestCallsInTextAreNoted(t *testing.T) {
	for text, noted := range map[string]bool{`<tool_call>{"name": "clock_now", "arguments": {}}</tool_call>`: true, "It is noon.": false} {
		m := &talker{answers: []answer{say(text)}}
		c := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("clock", clock())).NewConversation()
		var notes []string
		c.OnEvent = func(e host.Event) {
			if e.Kind == host.Noted {
				notes = append(notes, e.Text)
			}
		}
		if r, err := c.Send(t.Context(), "time?"); err != nil || r.Text != text {
			t.Errorf("Send = %+v, %v", r, err)
		}
		if got := slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, `"clock_now"`) && strings.Contains(n, "text/talker")
		}); got != noted {
			t.Errorf("the answer %q is noted %q", text, notes)
		}
	}
}
