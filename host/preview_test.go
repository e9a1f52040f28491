package host_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// Preview returns what the next request has before the message: the same system prompt, tools and earlier
// messages. There is none during a turn and without a model.
func TestPreview(t *testing.T) {
	var c *host.Conversation
	var during error
	m := &talker{answers: []answer{
		func(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Response, error) {
			_, during = c.Preview(ctx)
			return say("one")(ctx, r, emit)
		},
		say("two"),
	}}
	h := newHost(t, &host.Host{Model: m}, inMemory("clock", clock()))
	c = h.NewConversation()
	c.System = "Be brief. {tools}"
	if _, err := c.Send(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(during, host.ErrBusy) {
		t.Errorf("during a turn: %v, want ErrBusy", during)
	}
	seen, err := c.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	next := m.request(t, 1)
	if n := len(next.Messages) - 1; n != 2 || seen.System != next.System || cmp.Diff(seen.Tools, next.Tools) != "" || cmp.Diff(seen.Messages, next.Messages[:n]) != "" {
		t.Errorf("Preview = %+v; the next request was %+v", seen, next)
	}
	if _, err := (&host.Host{}).NewConversation().Preview(t.Context()); !errors.Is(err, host.ErrNoModel) {
		t.Errorf("without a model: %v, want ErrNoModel", err)
	}
}
