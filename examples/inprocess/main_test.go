package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct{ words, want string }{
		{"add a=2 b=3", "5"},
		{"add a=two b=3", "a"},
		{"add a=2", "b"},
		{"subtract", "subtract"},
	} {
		words := strings.Fields(tt.words)
		got, err := run(t.Context(), newServer(), words[0], words[1:])
		if err != nil {
			got = err.Error() // which names what is wrong
		}
		if !strings.Contains(got, tt.want) || (err == nil) != (tt.want == "5") {
			t.Errorf("%s = %q, %v, want %q", tt.words, got, err, tt.want)
		}
	}
}
