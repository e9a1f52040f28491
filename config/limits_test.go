package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLimits(t *testing.T) {
	file, faults, _ := load(t, `{"servers": {
		"a": {"command": "x", "patchbay": {"memory": "512MB", "processes": 64}},
		"b": {"command": "x", "patchbay": {"memory": "1.5 GiB"}},
		"c": {"url": "https://a.example/mcp", "patchbay": {"memory": "1GB", "processes": 1}}}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	a, b := file.Servers[0], file.Servers[1]
	if a.Memory != 512_000_000 || a.Processes != 64 || b.Memory != 3<<29 || b.Processes != 0 {
		t.Errorf("%d bytes, %d processes; %d bytes, %d processes", a.Memory, a.Processes, b.Memory, b.Processes)
	}
	if len(file.Warnings) != 2 || file.Warnings[0].Text != `"memory" is for a server with a "command"` {
		t.Errorf("warnings %v", file.Warnings)
	}
	other := a
	other.Memory++
	if a.Equal(other) {
		t.Error("servers with different memory are Equal")
	}
	other = a
	other.Processes++
	if a.Equal(other) {
		t.Error("servers with different processes are Equal")
	}
}

func TestLimitFaults(t *testing.T) {
	_, faults, _ := load(t, `{"servers": {
		"a": {"command": "x", "patchbay": {"memory": 512, "processes": "64"}},
		"b": {"command": "x", "patchbay": {"memory": "512", "processes": 0}},
		"c": {"command": "x", "patchbay": {"memory": "512KB", "processes": 1.5}},
		"d": {"command": "x", "patchbay": {"memory": "-1GB", "processes": -1}},
		"e": {"command": "x", "patchbay": {"memory": "NaNGB", "processes": 2000000}}}}`, nil)
	want := []string{
		`2:48: "memory" is not a size`,
		`2:66: "processes" is not a number of processes`,
		`3:48: "memory" is not a size`,
		`3:68: "processes" is not a number of processes`,
		`4:48: "memory" is "512KB", which is out of bounds`,
		`4:70: "processes" is not a number of processes`,
		`5:48: "memory" is "-1GB", which is out of bounds`,
		`5:69: "processes" is not a number of processes`,
		`6:48: "memory" is not a size`,
		`6:70: "processes" is not a number of processes`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
