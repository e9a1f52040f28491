package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// In read-only mode a tool that does not declare itself read-only is not called, whatever allows it and without asking the
// person. One that does needs the same approval as else: a mode never allows a call.
func TestReadOnlyMode(t *testing.T) {
	for _, tt := range []struct {
		tool    string
		allow   []string
		trusted bool
		person  bool
		by      string // of the decision
	}{
		{"read", nil, true, false, "read-only"},
		{"read", nil, false, false, "nobody"},
		{"read", nil, false, true, "person"},
		{"read", []string{"*"}, false, false, "rule"},
		{"plain", nil, true, false, "mode"},
		{"plain", []string{"*"}, true, true, "mode"},
		{"write", []string{"s/write"}, true, true, "mode"},
		{"again", []string{"*"}, true, true, "mode"}, // idempotent
	} {
		asked := false
		h := &host.Host{Allow: tt.allow}
		if tt.person {
			h.Person = approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) {
				asked = true
				return host.Verdict{Answer: host.AllowAlways}, nil
			}}
		}
		s := inMemory("s", tools())
		s.Trusted = tt.trusted
		m := calls([]string{"s_" + tt.tool})
		h.Model = m
		h = newHost(t, h, s)
		d := &diary{}
		c := h.NewConversation()
		c.Mode, c.OnEvent = host.ModeReadOnly, d.note
		if _, err := c.Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		end := d.of(host.Resulted)[0].Call
		if end.By != tt.by || asked != (tt.by == "person") || (end.Outcome == host.Succeeded) == (tt.by == "mode" || tt.by == "nobody") {
			t.Errorf("%+v: %s by %q, asked %v", tt, end.Outcome, end.By, asked)
		}
		if said := m.result(t, "c1.1"); (tt.by == "mode") != strings.Contains(said, "read-only mode") {
			t.Errorf("%+v: the model is told %q", tt, said)
		}
		for _, tool := range h.AllTools(t.Context()) {
			if by := c.AllowedBy(tool); tool.Tool.Name == tt.tool && tt.by == "mode" && by != "" {
				t.Errorf("%+v: AllowedBy is %q", tt, by)
			}
		}
	}
}

// A mode that nobody knows is no wider than read-only.
func TestUnknownMode(t *testing.T) {
	m := calls([]string{"s_plain"})
	h := newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("s", tools()))
	c := h.NewConversation()
	c.Mode = "plan"
	if _, err := c.Send(t.Context(), "go"); err != nil || !strings.Contains(m.result(t, "c1.1"), "read-only mode") {
		t.Errorf("the model is told %q (%v)", m.result(t, "c1.1"), err)
	}
	for word, want := range map[string]host.Mode{"": host.ModeAsk, "ASK": host.ModeAsk, "read-only": host.ModeReadOnly, "plan": ""} {
		if got, err := host.ParseMode(word); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseMode(%q) = %q, %v, want %q", word, got, err, want)
		}
	}
}

// keeping is a model that records the parameters of its requests, and notes something.
type keeping struct{ got []model.Parameters }

func (k *keeping) Info() model.Info { return model.Info{Name: "fake/keeping", Window: 100_000} }

func (k *keeping) Generate(_ context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	k.got = append(k.got, req.Parameters)
	emit(model.Delta{Note: "it takes no seed"})
	return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "done"}}}, Stop: model.StopEnd}, nil
}

// The parameters of a conversation are those of its requests; the maximum of an answer does not bound a summary. Notes of the model
// are events.
func TestParametersOfConversation(t *testing.T) {
	m := &keeping{}
	h := newHost(t, &host.Host{Model: m})
	c, d := h.NewConversation(), &diary{}
	c.OnEvent = d.note
	c.Parameters = model.Parameters{Effort: model.LowEffort, MaxTokens: 5}
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Summarise(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if len(m.got) != 2 || m.got[0].Effort != model.LowEffort || m.got[0].MaxTokens != 5 || m.got[1].Effort != model.LowEffort || m.got[1].MaxTokens != 0 {
		t.Errorf("the requests have the parameters %+v", m.got)
	}
	if notes := d.of(host.Noted); len(notes) != 2 || notes[0].Text != "it takes no seed" {
		t.Errorf("noted: %+v", notes)
	}
}

// Save keeps settings that have changed since the last turn, and not in the middle of one.
func TestSave(t *testing.T) {
	kept := 0
	m := calls([]string{"s_plain"})
	h := &host.Host{Model: m}
	var c *host.Conversation
	h.Person = approver{approve: func(ctx context.Context, _ *host.Approval) (host.Verdict, error) {
		if err := c.Save(ctx); !errors.Is(err, host.ErrBusy) {
			t.Errorf("Save during a turn: %v", err)
		}
		return host.Verdict{}, nil
	}}
	h = newHost(t, h, inMemory("s", tools()))
	c = h.NewConversation()
	c.Keep = func(_ context.Context, at int, e *host.Entry) error {
		if e == nil && at == len(c.Entries) {
			kept++
		}
		return nil
	}
	if err := c.Save(t.Context()); err != nil || kept != 1 {
		t.Errorf("Save: %v, kept %d times", err, kept)
	}
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
}
