package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A command that floods either stream, with or without lines, that starts other processes, or that
// prints invalid messages, harms neither the program nor the servers beside it. TestUpLeavesNothing
// and TestKilledProgramLeavesNothing check that the processes end with the program.
//
// Ledger: STDIO-26-002, STDIO-26-004.
func TestHostileChildren(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell := func(script string) map[string]any {
		within := "2s"                        // short, as each flood takes a processor
		if strings.Contains(script, "STUB") { // it has to be ready, beside floods
			within = "1m"
		}
		script = strings.ReplaceAll(script, "STUB", fmt.Sprintf("env %s=stub %s", testRun, self))
		return map[string]any{"command": "sh", "args": []string{"-c", script}, "patchbay": map[string]any{"startTimeout": within}}
	}
	r := startUp(t, map[string]any{
		"lines":  shell("exec yes noise"),
		"noend":  shell(`exec tr '\0' a </dev/zero`),
		"deep":   shell(`exec tr '\0' '[' </dev/zero`),
		"said":   shell("yes noise >&2 & exec STUB"),
		"forks":  shell("for i in 1 2 3 4 5 6 7 8 9; do (sleep 1000 &); done; exec STUB"),
		"greets": shell("echo ready; echo '{}'; echo; exec STUB"),
		"all":    map[string]any{"builtin": "everything"},
	})
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tool := range []string{"said_args", "forks_args", "greets_args"} {
		if res, err := s.CallTool(t.Context(), tool, map[string]any{"count": 3}); err != nil || res.Text() != `{"count":3}` {
			t.Errorf("%s = %v, %v", tool, res, err)
		}
	}
	if res, err := s.CallTool(t.Context(), "all_echo", map[string]any{"message": "hi"}); err != nil || !strings.Contains(res.Text(), "hi") {
		t.Errorf("all_echo = %v, %v", res, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no memory in %s", status)
	}
	most := 400 // MiB
	if racing() {
		most *= 3 // the race detector needs a multiple of the memory
	}
	if kb, _ := strconv.Atoi(string(m[1])); kb > most<<10 {
		t.Errorf("the program took %d MiB, want %d at most", kb>>10, most)
	}
}

// racing reports whether the race detector is on.
func racing() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
