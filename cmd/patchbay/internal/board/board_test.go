package board

import "testing"

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
