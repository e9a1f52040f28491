package board

import (
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

// The status of a server has the addresses at which a debugger can attach.
func TestRemarksOfDebuggers(t *testing.T) {
	got := Remarks(&health.Server{Debug: []string{"127.0.0.1:1", "127.0.0.1:2"}}, time.Time{})
	if want := "a debugger can attach to 127.0.0.1:1, 127.0.0.1:2"; len(got) != 1 || got[0] != want {
		t.Errorf("remarks %q, want %q", got, want)
	}
}
