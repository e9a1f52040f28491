package main

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// After a command fails, the report names the variables of the person's environment that it seems
// to need, never their values.
func TestDoctorOfEnvironment(t *testing.T) {
	t.Setenv("ACMEHUB_TOKEN", "planted-right")
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"hub": map[string]any{"command": "sh", "args": []string{"-c", "echo ACMEHUB_TOKEN is missing >&2; exit 2"}}})
	got := typedRun(t, "", exitLocal, "config", "doctor", "--config", file)
	if one := strings.Join(strings.Fields(got), " "); !strings.Contains(one, `ACMEHUB_TOKEN is set here but not passed to it; if it needs that, add "env": {"ACMEHUB_TOKEN": "${ACMEHUB_TOKEN}"} to hub (`) {
		t.Errorf("doctor: %s", got)
	}
}
