package chat

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// The last line has the settings that are not the default, and /new keeps them.
func TestSettingsInStatusLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host.Host{Model: actor{}}
		defer h.Close()
		u, p := newTestUI(t, h, Options{})
		last := func() string { return p.frame.lines[len(p.frame.lines)-1] }
		if got := last(); strings.Contains(got, "effort") || strings.Contains(got, "ask") {
			t.Errorf("with the defaults the last line is %q", got)
		}
		for _, tt := range []struct{ line, has, not string }{
			{"/mode read-only", "test/actor · read-only · 0 servers", "effort"},
			{"/effort high", "read-only · effort high · 0 servers", "/set"},
			{"/set temperature=0.2", "read-only · effort high · /set · 0 servers", ""},
			{"/new", "read-only · effort high · /set · 0 servers", ""},
			{"/effort default", "read-only · /set · 0 servers", "effort"},
			{"/mode ask", "test/actor · /set · 0 servers", "read-only"},
			{"/mode nothing", "test/actor · /set · 0 servers", "read-only"},
		} {
			u.input.set(tt.line)
			press(u, "enter")
			collectMail(u)
			if got := last(); !strings.Contains(got, tt.has) || tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("after %s the last line is %q, want %q in it", tt.line, got, tt.has)
			}
		}
	})
}

// /resume does not widen the mode.
func TestNarrower(t *testing.T) {
	for _, tt := range []struct{ a, b, want host.Mode }{
		{"", "", ""}, {host.ModeAsk, host.ModeReadOnly, host.ModeReadOnly}, {host.ModeReadOnly, host.ModeAsk, host.ModeReadOnly}, {"", host.ModeReadOnly, host.ModeReadOnly},
		{host.ModeReadOnly, "", host.ModeReadOnly},
	} {
		if got := narrower(tt.a, tt.b); got != tt.want {
			t.Errorf("narrower(%q, %q) = %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

// oddModel is a model with another description, and what it needs to know when it is asked.
type oddModel struct {
	actor
	info model.Info
}

func (m *oddModel) Info() model.Info { return m.info }

// The last line says what is left out of requests, and so do /effort and /set.
func TestLeftOutParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &oddModel{info: model.Info{Name: "test/odd"}}
		h := &host.Host{Model: m}
		defer h.Close()
		u, p := newTestUI(t, h, Options{})
		for _, line := range []string{"/effort high", "/set temperature=0.2", "/set topP=0.5"} {
			u.input.set(line)
			press(u, "enter")
			collectMail(u)
		}
		wants(t, p, "test/odd · effort high · /set · 0 servers")
		m.info.LeftOut = []string{"effort=high", "topP"}
		u.Update(ticked{})
		wants(t, p, "test/odd · effort high left out · /set · 0 servers")
		for _, line := range []string{"/effort", "/set"} {
			u.input.set(line)
			press(u, "enter")
			collectMail(u)
		}
		wants(t, p, "• effort: high, which test/odd does not take, so it is left out; /effort takes", "  effort=high, left out: test/odd takes none\n  temperature=0.2\n  topP=0.5, left out: test/odd takes none\n")
		m.info.LeftOut = append(m.info.LeftOut, "temperature")
		u.input.set("/effort low")
		press(u, "enter")
		collectMail(u)
		wants(t, p, "test/odd · effort low · 0 servers")
	})
}

// Without room for all, the last line lacks whole parts, and never the activity and the mode.
func TestLastLineFits(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		u.talk.Model = &oddModel{info: model.Info{Name: "openrouter/anthropic/claude-sonnet-4.5", Window: 200_000}}
		u.talk.Mode, u.talk.Parameters.Effort = host.ModeReadOnly, model.HighEffort
		line(t, u, "call lines")
		if u.talk.Mode = host.ModeAsk; len(u.questions) != 0 {
			t.Fatal("the mode does not refuse")
		}
		line(t, u, "call lines")
		u.talk.Mode = host.ModeReadOnly
		for _, tt := range []struct {
			width int
			want  string
		}{
			{200, "waiting for you 1.5 s · ctrl-C cancels · openrouter/anthropic/claude-sonnet-4.5 · read-only · effort high · 1 server · 0% of 200k tokens"},
			{130, "waiting for you 1.5 s · ctrl-C cancels · openrouter/anthropic/claude-sonnet-4.5 · read-only · effort high · 0% of 200k tokens"},
			{110, "waiting for you 1.5 s · ctrl-C cancels · openrouter/anthropic/claude-sonnet-4.5 · read-only · effort high"},
			{90, "waiting for you 1.5 s · openrouter/anthropic/claude-sonnet-4.5 · read-only · effort high"},
			{80, "waiting for you 1.5 s · openrouter/anthropic/claude-sonnet-4.5 · read-only"},
			{40, "waiting for you 1.5 s · read-only"},
			{20, "waiting f… 1.5 s…"},
		} {
			resize(u, tt.width, 24)
			last := p.frame.lines[len(p.frame.lines)-1]
			if _, got, _ := strings.Cut(last, " "); got != tt.want {
				t.Errorf("in %d columns the last line is %q, want %q", tt.width, got, tt.want)
			}
		}
		press(u, "n")
		settle(u)
	})
}

// While a hook decides about a call, the last line does not say that the model is thinking.
func TestLastLineDuringHook(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		over := make(chan struct{})
		u.c.h.Hooks = []host.Hook{{Before: func(context.Context, *host.HookedCall) error { <-over; return nil }}}
		line(t, u, "call lines")
		wants(t, p, "about to call theatre/lines ")
		close(over)
		settle(u)
		wants(t, p, "waiting for you ")
		press(u, "n")
		settle(u)
	})
}

// A message that follows a command at once waits until the command no longer holds the conversation.
func TestMessageRightAfterCommand(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		line(t, u, "hello")
		u.talk.Keep = func(context.Context, int, *host.Entry) error { time.Sleep(time.Second); return nil }
		for _, command := range []string{"/effort high", "/mode read-only", "/undo"} {
			for _, text := range []string{command, "after " + command[1:]} {
				u.input.set(text)
				press(u, "enter")
				collectMail(u)
			}
			for range 10 {
				settle(u)
			}
			wants(t, p, "You said: after "+command[1:])
		}
	})
}

// A conversation that has cost nothing yet does not have an unknown price, unless the model has none.
func TestCostBeforeTheFirstAnswer(t *testing.T) {
	for _, tt := range []struct {
		model model.Model
		want  string
	}{{actor{}, "  cost 0\n"}, {&oddModel{info: model.Info{Name: "test/odd"}}, "  unknown price; "}} {
		synctest.Test(t, func(t *testing.T) {
			h := &host.Host{Model: tt.model}
			defer h.Close()
			u, p := newTestUI(t, h, Options{})
			line(t, u, "/cost")
			wants(t, p, tt.want)
		})
	}
}

// A conversation that ended in the middle of calls says so when it continues.
func TestContinuesAfterLostCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host.Host{Model: actor{}}
		defer h.Close()
		u, p := newTestUI(t, h, Options{})
		const doubt = "each of these calls may or may not have happened"
		call := model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: "s_pay", Arguments: []byte(`{"sum":3}`)}}}}
		result := model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "s_pay"}}}}
		for _, entries := range [][]host.Entry{{{Message: model.UserText("pay")}, {Message: call}, {Message: result}}, {{Message: model.UserText("pay")}, {Message: call}}} {
			if strings.Contains(strings.Join(strings.Fields(p.text()), " "), doubt) {
				t.Errorf("calls with results are in doubt:\n%s", p.text())
			}
			conv := h.NewConversation()
			conv.Entries = entries
			u.goOn(conv)
			u.Update(ticked{})
		}
		wants(t, p, `· s_pay {"sum":3}`, "• the program ended before the results came: ")
		says(t, p, doubt)
	})
}
