package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A command that fails is told of what it seems to need of the person's environment, by name
// and never by value.
func TestDoctorOfEnvironment(t *testing.T) {
	t.Setenv("ACMEHUB_TOKEN", "planted-right")
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"hub": map[string]any{"command": "sh", "args": []string{"-c", "echo ACMEHUB_TOKEN is missing >&2; exit 2"}}})
	got := typedRun(t, "", exitLocal, "config", "doctor", "--config", file)
	if one := strings.Join(strings.Fields(got), " "); !strings.Contains(one, `ACMEHUB_TOKEN is set here and not passed on to it; if it needs that, add "env": {"ACMEHUB_TOKEN": "${ACMEHUB_TOKEN}"} to hub (`) {
		t.Errorf("doctor: %s", got)
	}
}
