package process

import "testing"

func TestExitCode(t *testing.T) {
	for state, want := range map[string]int{"exit status 3": 3, "exit status 0": 0, "signal: killed": -1, "": -1} {
		got, ok := ExitCode(state)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("ExitCode(%q) = %d, want %d", state, got, want)
		}
	}
}
