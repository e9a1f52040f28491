package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// At a terminal, log records of libraries look like the program's own lines; elsewhere they have
// the form of log/slog.
func TestLogIsForPeople(t *testing.T) {
	var stderr strings.Builder
	a := newApp(t.Context(), strings.NewReader(""), &strings.Builder{}, &stderr)
	a.logger().Warn("notifications dropped", "count", 3)
	if got := stderr.String(); !strings.Contains(got, `level=WARN msg="notifications dropped" count=3`) {
		t.Errorf("without a terminal it logs %q", got)
	}
	a.tty.err = true
	log := a.logger()
	tests := []struct {
		log  func()
		want string
	}{
		{func() { log.Warn("notifications dropped", "count", 3) }, "patchbay: warning: notifications dropped (count 3)\n"},
		{func() { log.With("server", "shop").Error("lost", "err", errors.New("EOF"), "id", 7, "method", "ping") }, "patchbay: error: shop: lost: EOF (id 7, method ping)\n"},
		{func() { log.WithGroup("g").With("a", 1).Warn("x", slog.Group("h", "b", "two words")) }, "patchbay: warning: x (g.a 1, g.h.b two words)\n"},
		{func() { log.Warn("from a peer", "text", "a\nb\x1b[2J") }, "patchbay: warning: from a peer (text a b␛[2J)\n"},
		{func() { log.Info("quiet"); log.Debug("quiet") }, ""},
	}
	for _, tt := range tests {
		stderr.Reset()
		if tt.log(); stderr.String() != tt.want {
			t.Errorf("it logs %q, want %q", stderr.String(), tt.want)
		}
	}
	with := log.With("a", 1)
	one, two := with.With("b", 2), with.With("c", 3)
	stderr.Reset()
	one.Warn("one")
	two.Warn("two")
	if got := stderr.String(); got != "patchbay: warning: one (a 1, b 2)\npatchbay: warning: two (a 1, c 3)\n" {
		t.Errorf("loggers that were made of one: %q", got)
	}
}
