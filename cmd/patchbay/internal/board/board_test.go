package board

import (
	"slices"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
)

// Apart splits the reason of a state and the last lines of the server, which package gateway joins.
func TestApart(t *testing.T) {
	tests := []struct {
		reason, why string
		said        int
	}{
		{"", "", 0},
		{"it was not ready within 1m0s", "it was not ready within 1m0s", 0},
		{`exit status 3; it last said: "a\nb"`, "exit status 3", 2},
		{`x; it last said: "a" and more`, `x; it last said: "a" and more`, 0},
		{`; it last said: `, `; it last said: `, 0},
	}
	for _, tt := range tests {
		if why, said := Apart(tt.reason); why != tt.why || len(said) != tt.said {
			t.Errorf("Apart(%q) = %q, %q; want %q and %d lines", tt.reason, why, said, tt.why, tt.said)
		}
	}
}

// The status of a server says how many calls wait for their turn, and for whose answer.
func TestTurns(t *testing.T) {
	now := time.Now()
	asked := now.Add(-58 * time.Second)
	for _, tt := range []struct {
		s    health.Server
		want string
	}{
		{health.Server{}, ""},
		{health.Server{Waiting: 2}, "2 calls wait for their turn"},
		{health.Server{Waiting: 1, Question: asked}, "1 call waits for its turn; a question to another caller has been open for 58s"},
		{health.Server{Question: asked, Asked: "carl"}, "a question to carl has been open for 58s"},
		{health.Server{Question: asked}, "a question to a caller has been open for 58s"},
		{health.Server{Waiting: 1, Question: asked, Asked: "carl"}, "1 call waits for its turn; a question to carl has been open for 58s"},
	} {
		if got := Turns(&tt.s, now); got != tt.want {
			t.Errorf("Turns = %q, want %q", got, tt.want)
		}
	}
}

// The status of a server has the addresses at which a debugger can attach.
func TestRemarksOfDebuggers(t *testing.T) {
	got := Remarks(&health.Server{Debug: []string{"127.0.0.1:1", "127.0.0.1:2"}}, time.Time{})
	if want := "a debugger can attach to 127.0.0.1:1, 127.0.0.1:2"; len(got) != 1 || got[0] != want {
		t.Errorf("remarks %q, want %q", got, want)
	}
}

// A server that prints to its standard output gets the number of lines, the first one made harmless, and the next step.
func TestStrays(t *testing.T) {
	const advice = "standard output is only for messages: log to standard error"
	for _, tt := range []struct {
		s    health.Server
		want []string
	}{
		{health.Server{}, nil},
		{health.Server{Strays: 1, Stray: "Listening \x1b[2J\u202e"}, []string{`it printed 1 line besides messages, first "Listening \x1b[2J\u202e"`, advice}},
		{health.Server{Strays: 20}, []string{"it printed 20 lines besides messages", advice}},
	} {
		if got := Strays(&tt.s); !slices.Equal(got, tt.want) {
			t.Errorf("Strays = %q, want %q", got, tt.want)
		}
		if got := Remarks(&tt.s, time.Time{}); !slices.Equal(got, tt.want) {
			t.Errorf("Remarks = %q, want %q", got, tt.want)
		}
	}
}

// Remarks about one thing are in the singular.
func TestRemarksOfOne(t *testing.T) {
	got := Remarks(&health.Server{Losses: 1, Evicted: 1, Refused: 1}, time.Time{})
	want := []string{"clients lost their state 1 time, and got an error each time", "closed 1 quiet connection to make room for others", `1 request got no connection; "clients" sets the maximum`}
	if !slices.Equal(got, want) {
		t.Errorf("remarks %q, want %q", got, want)
	}
}
