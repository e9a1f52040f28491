package host_test

import (
	"context"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// The size of a conversation is what its last answer took, without attempts that broke off, and an
// estimate of what came after. All attempts are part of what was used.
func TestSize(t *testing.T) {
	took := func(text string, u, retried model.Usage) answer {
		return func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
			return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}, Usage: u, Retried: retried}, nil
		}
	}
	m := &talker{answers: []answer{
		took("one", model.Usage{Input: 1000, Output: 20}, model.Usage{}),
		took("two", model.Usage{Input: 2400, Output: 33}, model.Usage{Input: 1200, Output: 3}),
		took("A summary.", model.Usage{Input: 1300, Output: 30}, model.Usage{}),
	}}
	c := (&host.Host{Model: m}).NewConversation()
	if got := c.Size(); got != 0 {
		t.Errorf("the size of an empty conversation is %d", got)
	}
	for _, want := range []int64{1020, 1230} {
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		if got := c.Size(); got != want {
			t.Errorf("the size is %d, want %d", got, want)
		}
	}
	if used, _ := c.Used(); used != (model.Usage{Input: 3400, Output: 53}) {
		t.Errorf("%+v was used, want all attempts", used)
	}
	if _, err := c.Summarise(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if got := c.Size(); got < 5 || got > 100 {
		t.Errorf("the size after a summary is %d, want that of the summary", got)
	}
	if _, err := c.Undo(t.Context()); err != nil || c.Size() != 1230 {
		t.Errorf("the size without the summary is %d, want 1230; %v", c.Size(), err)
	}
}

// The size of a conversation that continues counts the tools and the system prompt from its first request on, also
// for the summary that this is. Before it the size is not known, unless the provider has counted.
func TestSizeOfResumed(t *testing.T) {
	said := func(text string) answer {
		return func(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
			return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}}, nil
		}
	}
	c := (&host.Host{Model: &talker{answers: []answer{said("A summary.")}}}).NewConversation()
	c.System = strings.Repeat("Be kind. ", 1000)
	c.Entries = []host.Entry{{Message: model.UserText("hello")}, {Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "hi"}}}}}
	if got := c.Size(); got != 0 {
		t.Errorf("the size before the first request is %d, want 0: not known", got)
	}
	var before, after int64
	c.OnEvent = func(e host.Event) {
		if e.Kind == host.Summarised {
			before, after = e.Before, e.After
		}
	}
	if _, err := c.Summarise(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if before < 2000 || after < 2000 || c.Size() != after {
		t.Errorf("the summary takes the conversation from %d tokens to %d, and its size is %d; want all with the system prompt", before, after, c.Size())
	}
}
