//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	if got, err := choose(""); err != nil || len(got) != len(rows) {
		t.Errorf("all: %d rows, %v", len(got), err)
	}
	got, err := choose("IDLE, gateway,")
	if err != nil || len(got) != 3 {
		t.Errorf("chose %d rows, %v", len(got), err)
	}
	if _, err := choose("carrier pigeon"); err == nil || !strings.Contains(err.Error(), "idle session") {
		t.Errorf("an unknown row: %v", err)
	}
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.name] {
			t.Errorf("two rows are called %q", r.name)
		}
		names[r.name] = true
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-dur", "0"}, {"x"}, {"-only", "carrier pigeon"}, {"-peers", "bare,nobody"}, {"-peers", "bare,bare"}, {"-nonsense"}} {
		var out, talk bytes.Buffer
		if code := run(t.Context(), args, &out, &talk); code != 2 || talk.Len() == 0 || out.Len() > 0 {
			t.Errorf("compare %v: exit %d, %q", args, code, talk.String())
		}
	}
}
