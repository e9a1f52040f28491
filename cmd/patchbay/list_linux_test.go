package main

import (
	"strings"
	"testing"
	"time"
)

// A verb that needs an entry of a ready server does not wait for another server that is starting.
func TestListWaitsForNoOther(t *testing.T) {
	t.Parallel()
	r := startUp(t, map[string]any{
		"late": map[string]any{"command": "sleep", "args": []string{"1000"}},
		"one":  stubServer(t),
	})
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "one_args", "count=1", "-s", r.url}, `{"count":1}`},
		{[]string{"call", "one_missing", "count=1", "-s", r.url}, "one_missing"},
		{[]string{"tools", "one_args", "-s", r.url}, "one_args"},
		{[]string{"tools", "other_args", "-s", r.url}, "has no tool"},
		{[]string{"prompts", "one_missing", "-s", r.url}, "one_missing"},
	} {
		t.Run(strings.Join(tt.args[:2], " "), func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			text, _ := runProgram(t, tt.args...)
			if took := time.Since(began); took >= restTime || !strings.Contains(text, tt.want) {
				t.Errorf("patchbay %s took %v and printed %s, want %q soon", strings.Join(tt.args, " "), took, text, tt.want)
			}
		})
	}
}

func TestMayBeOf(t *testing.T) {
	for _, tt := range []struct {
		servers []string
		name    string
		want    bool
	}{
		{nil, "one_args", true},
		{[]string{"late"}, "late_args", true},
		{[]string{"late"}, "later_args", false},
		{[]string{"my_late"}, "my_late__args", true},
		{[]string{"other", "late"}, "one_args", false},
	} {
		if got := mayBeOf(tt.servers, tt.name); got != tt.want {
			t.Errorf("mayBeOf(%q, %q) = %v", tt.servers, tt.name, got)
		}
	}
}
