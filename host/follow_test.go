package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A loop over events gets those that OnEvent gets, in their order, and the error of the turn beside the last one.
func TestEvents(t *testing.T) {
	h := newHost(t, &host.Host{Model: calls([]string{"s_plain {}", "s_read {}"}), Allow: []string{"s/plain"}}, inMemory("s", tools()))
	c := h.NewConversation()
	d := &diary{}
	c.OnEvent = d.note
	var kinds, want []string
	for e, err := range c.Events(t.Context(), "go") {
		if err != nil {
			t.Errorf("%s: %v", e.Kind, err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	for _, e := range d.events {
		want = append(want, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); got != strings.Join(want, " ") || !strings.HasSuffix(got, " ended") {
		t.Errorf("the loop has %q, OnEvent %q", kinds, want)
	}
	h.Model = nil
	n := 0
	for e, err := range c.Events(t.Context(), "go") {
		if n++; !errors.Is(err, host.ErrNoModel) || e.Kind != "" {
			t.Errorf("without a model: %+v, %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("without a model there are %d events, want the error alone", n)
	}
	h.Model = failing{}
	var last error
	for e, err := range c.Events(t.Context(), "go") {
		if last = err; err != nil && e.Kind != host.Ended {
			t.Errorf("the error is beside %s", e.Kind)
		}
	}
	if !errors.Is(last, errFailing) {
		t.Errorf("the loop ends with %v, want the error of the model", last)
	}
}

var errFailing = errors.New("it fails")

type failing struct{}

func (failing) Info() model.Info { return model.Info{Name: "fake/failing"} }

func (failing) Generate(context.Context, *model.Request, func(model.Delta)) (*model.Response, error) {
	return nil, errFailing
}

// A loop may be left at any event: the turn ends, each call has a result, and the conversation goes on.
func TestEventsAreLeft(t *testing.T) {
	for _, kind := range []host.EventKind{host.Asking, host.Called, host.Waiting, host.Started, host.Resulted, host.Ended} {
		synctest.Test(t, func(t *testing.T) {
			srv := tools()
			mcp.AddTool(srv, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
				if kind == host.Started {
					<-ctx.Done()
				}
				return "ok", nil
			})
			h := newHost(t, &host.Host{Model: calls([]string{"s_hang {}"}), Person: host.Approver(func(ctx context.Context, _ *host.Approval) (host.Verdict, error) {
				if kind == host.Waiting {
					<-ctx.Done()
				}
				return host.Verdict{Answer: host.AllowOnce}, nil
			})}, inMemory("s", srv))
			defer settle(h)
			c := h.NewConversation()
			left := false
			for e, err := range c.Events(t.Context(), "go") {
				if err != nil {
					t.Errorf("%s: %v", e.Kind, err)
				}
				if left = e.Kind == kind; left {
					break
				}
			}
			if !left {
				t.Errorf("there is no %s", kind)
			}
			open := 0
			for _, e := range c.Entries {
				open += len(e.Calls())
				for _, p := range e.Parts {
					if p.Result != nil {
						open--
					}
				}
			}
			if open != 0 {
				t.Errorf("left at %s: %d calls have no result", kind, open)
			}
			c.Model = calls()
			if r, err := c.Send(t.Context(), "go on"); err != nil || r.Text != "done" {
				t.Errorf("left at %s, the conversation goes on with %+v, %v", kind, r, err)
			}
		})
	}
}

// A panic in the loop ends the turn, too.
func TestEventsPanic(t *testing.T) {
	h := newHost(t, &host.Host{Model: calls()})
	c := h.NewConversation()
	func() {
		defer func() { _ = recover() }()
		for range c.Events(t.Context(), "go") {
			panic("in the loop")
		}
	}()
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Error(err)
	}
}

// A loop may use the conversation and the host, and take its time, while the turn goes on.
func TestEventsAndTheConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := tools()
		mcp.AddTool(srv, mcp.Tool{Name: "talk"}, func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			return "ok", nil
		})
		h := newHost(t, &host.Host{Model: calls([]string{"s_talk {}", "s_plain {}"}), Allow: []string{"*"}}, inMemory("s", srv))
		defer settle(h)
		c := h.NewConversation()
		n := 0
		for _, err := range c.Events(t.Context(), "go") {
			if err != nil {
				t.Error(err)
			}
			n++
			if n == 1 {
				time.Sleep(time.Hour) // the turn has ended meanwhile
				if _, err := c.Send(t.Context(), "x"); !errors.Is(err, host.ErrBusy) && err != nil {
					t.Error(err)
				}
			}
			c.Snapshot()
			c.Used()
			c.Size()
			c.Grants()
			for _, tool := range h.Tools(t.Context()) {
				c.AllowedBy(tool)
			}
		}
	})
}

// Closing the host in the loop ends it.
func TestEventsAndClose(t *testing.T) {
	h := newHost(t, &host.Host{Model: calls([]string{"s_plain {}"}), Allow: []string{"*"}}, inMemory("s", tools()))
	var last error
	for e, err := range h.NewConversation().Events(t.Context(), "go") {
		if last = err; e.Kind == host.Asking {
			h.Close()
		}
	}
	if last != nil && !errors.Is(last, host.ErrClosed) {
		t.Errorf("the loop ends with %v", last)
	}
}

// Nobody is like no person at all.
func TestNobody(t *testing.T) {
	for _, p := range []host.Person{nil, host.Nobody{}, host.Approver(func(context.Context, *host.Approval) (host.Verdict, error) { return host.Verdict{}, host.ErrNobody })} {
		srv := tools()
		mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Confirm(ctx, "Really?")
			return fmt.Sprint("asked: ", errors.Is(err, mcp.ErrDeclined)), nil
		})
		mcp.AddTool(srv, mcp.Tool{Name: "muse"}, func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 5, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("x")}}}})
			return fmt.Sprint("sampled: ", err == nil), nil
		})
		m := calls([]string{"s_plain {}", "s_ask {}", "s_muse {}"})
		h := newHost(t, &host.Host{Model: m, Person: p, Allow: []string{"s/ask", "s/muse"}}, inMemory("s", srv))
		d := talk(t, h)
		for _, e := range d.of(host.Resulted) {
			if e.Call.Tool == "plain" && (e.Call.Outcome != host.Denied || e.Call.By != "nobody") {
				t.Errorf("%T: the call is %s by %s", p, e.Call.Outcome, e.Call.By)
			}
		}
		if m.result(t, "c1.2") != "asked: true" || m.result(t, "c1.3") == "sampled: true" {
			t.Errorf("%T: %q, %q", p, m.result(t, "c1.2"), m.result(t, "c1.3"))
		}
	}
}

// A server of this process is a Handler and a name.
func TestLocal(t *testing.T) {
	m := calls([]string{"own_plain {}"})
	h := newHost(t, &host.Host{Model: m, Allow: []string{"own/*"}}, host.Local("own", tools()))
	if talk(t, h); m.result(t, "c1.1") != "ok" {
		t.Errorf("its tool answers %q", m.result(t, "c1.1"))
	}
}
