//go:build linux

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	if got, err := choose(""); err != nil || len(got) != len(rows) {
		t.Errorf("all: %d rows, %v", len(got), err)
	}
	got, err := choose("IDLE, list,")
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

// docs/performance.md explains each row, and no other.
func TestRowsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| row | what is done |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	used := map[string]bool{}
	for line := range strings.Lines(table) {
		used[strings.TrimSpace(strings.Split(line, "|")[1])] = false
	}
	for _, r := range rows {
		found := false
		for about := range used {
			if strings.HasPrefix(r.name, about) {
				found, used[about] = true, true
			}
		}
		if !found {
			t.Errorf("the row %q is not explained", r.name)
		}
	}
	for about, ok := range used {
		if !ok {
			t.Errorf("%q explains no row", about)
		}
	}
}
