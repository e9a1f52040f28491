//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-dur", "0"}, {"-clients", "1"}, {"x"}, {"-upstream", "pigeon"}, {"-only", "pigeon"}, {"-only", "before"}, {"-nonsense"}} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), args, &out, &talk); code != 2 || talk.Len() == 0 || out.Len() > 0 {
			t.Errorf("gateway %v: exit %d, %q", args, code, talk.String())
		}
	}
}

func TestChoose(t *testing.T) {
	for list, want := range map[string]string{
		"":                  "direct, bare, pausing, jwt, policy, disk, audit, telemetry, everything",
		"bare, everything,": "bare, everything",
	} {
		if got, err := choose(list, false); err != nil || names(got) != want {
			t.Errorf("%q chooses %s, %v, want %s", list, names(got), err, want)
		}
	}
	if got, err := choose("bare", true); err != nil || names(got) != "before, bare" {
		t.Errorf("with -before: %s, %v", names(got), err)
	}
	if _, err := choose("pigeon", false); err == nil || !strings.Contains(err.Error(), "everything") {
		t.Errorf("an unknown way: %v", err)
	}
}
