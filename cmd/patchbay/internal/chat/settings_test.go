package chat

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/host"
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
