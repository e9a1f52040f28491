package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A hook before a call refuses it before a person is asked, and cannot allow it; the first one that refuses is the last to run. It sees
// the arguments that are sent. Tools that no pattern names are left alone.
func TestHookBefore(t *testing.T) {
	for _, tt := range []struct {
		about string
		tools []string
		err   error
		allow []string
		asked bool
		by    string
	}{
		{"it lets the call go on to the person", nil, nil, nil, true, "person"},
		{"it lets the call go on to a rule", nil, nil, []string{"*"}, false, "rule"},
		{"it refuses what a rule allows", nil, errors.New("not on Sundays"), []string{"*"}, false, "hook"},
		{"it refuses before the person is asked", []string{"s/pl*"}, errors.New("not on Sundays"), nil, false, "hook"},
		{"it is for other tools", []string{"s/read", "other/*"}, errors.New("not on Sundays"), []string{"*"}, false, "rule"},
		{"it is for no tools", []string{}, errors.New("not on Sundays"), []string{"*"}, false, "rule"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			asked, ran, second := false, 0, 0
			m := calls([]string{`s_plain {"x":1}`})
			h := newHost(t, &host.Host{Model: m, Allow: tt.allow, Person: approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) {
				asked = true
				return host.Verdict{Answer: host.AllowOnce}, nil
			}}, Hooks: []host.Hook{
				{Tools: tt.tools, Before: func(_ context.Context, c *host.HookedCall) error {
					if ran++; c.Server != "s" || c.Tool != "plain" || string(c.Arguments) != `{"x":1}` || c.ID != "c1.1" || c.Conversation == "" {
						t.Errorf("the hook gets %+v", c)
					}
					return tt.err
				}},
				{Before: func(context.Context, *host.HookedCall) error { second++; return nil }},
				{},
			}}, inMemory("s", tools()))
			d := talk(t, h)
			end := d.of(host.Resulted)[0]
			if end.Call.By != tt.by || asked != tt.asked || (end.Call.Outcome == host.Denied) != (tt.by == "hook") || (second == 0) != (tt.by == "hook") {
				t.Errorf("%s by %q, asked %v, second hook %d; want by %q, asked %v", end.Call.Outcome, end.Call.By, asked, second, tt.by, tt.asked)
			}
			if said := m.result(t, "c1.1"); (tt.by == "hook") != strings.HasPrefix(said, "It was not called: not on Sundays\n") {
				t.Errorf("the model is told %q", said)
			}
			if tt.by == "hook" && (end.Error != "not on Sundays" || ran != 1 || len(d.of(host.Waiting)) > 0) {
				t.Errorf("the person is told %q, the hook ran %d times", end.Error, ran)
			}
		})
	}
}

// A hook after a call gets its result and may add a text for the model; its errors are noted. It does not run after calls that
// were refused, and calls of the host's own tools have no hooks.
func TestHookAfter(t *testing.T) {
	var mu sync.Mutex
	var got []string
	after := func(text string, err error) host.Hook {
		return host.Hook{After: func(_ context.Context, c *host.HookedCall) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%s %s %s %s", c.Tool, c.By, c.Outcome, c.Parts[0].Text))
			return text, err
		}}
	}
	m := calls([]string{"s_read", "s_plain", `read_more {"id":"x"}`})
	s := inMemory("s", tools())
	s.Trusted = true
	d := talk(t, newHost(t, &host.Host{Model: m, Hooks: []host.Hook{after("first\n", nil), after("", errors.New("it broke")), after("third", nil)}}, s))
	slices.Sort(got)
	if want := []string{"read read-only done ok", "read read-only done ok", "read read-only done ok"}; !slices.Equal(got, want) {
		t.Errorf("the hooks got %q, want %q", got, want)
	}
	if got, want := m.result(t, "c1.1"), "ok[A hook of the person says: first][A hook of the person says: third]"; got != want {
		t.Errorf("the model got %q, want %q", got, want)
	}
	if notes := d.of(host.Noted); len(notes) != 1 || notes[0].Text != "it broke" {
		t.Errorf("noted: %+v", notes)
	}
}

// A turn that is cancelled does not wait for a hook.
func TestCancelledInHook(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		over := make(chan struct{})
		defer close(over)
		hang := func() { cancel(errors.New("enough")); <-over }
		hook := host.Hook{Before: func(context.Context, *host.HookedCall) error { hang(); return nil }}
		if when == "after" {
			hook = host.Hook{After: func(context.Context, *host.HookedCall) (string, error) { hang(); return "", nil }}
		}
		m := calls([]string{"s_plain"})
		c := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Hooks: []host.Hook{hook}}, inMemory("s", tools())).NewConversation()
		if _, err := c.Send(ctx, "go"); err == nil || err.Error() != "enough" {
			t.Errorf("Send with a hook %s that hangs: %v", when, err)
		}
	}
}

// The hints of a tool are those that its server declares.
func TestHintsForHook(t *testing.T) {
	var hints *mcp.ToolAnnotations
	m := calls([]string{"s_write"})
	talk(t, newHost(t, &host.Host{Model: m, Hooks: []host.Hook{{Before: func(_ context.Context, c *host.HookedCall) error {
		hints = c.Hints
		return errors.New("no")
	}}}}, inMemory("s", tools())))
	if hints == nil || hints.Destructive == nil || !*hints.Destructive {
		t.Errorf("the hook gets the hints %+v", hints)
	}
}
