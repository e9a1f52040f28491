package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/config"
)

func TestReplicasAndBreaker(t *testing.T) {
	file, faults, _ := load(t, `{"servers": {
		"a": {"url": "https://a.example/mcp", "patchbay": {"replicas": ["https://${NAME}.example/mcp"], "breaker": {"open": "50% of 21 in 30s", "for": "15s"}}},
		"b": {"command": "x", "patchbay": {"breaker": true}},
		"c": {"command": "x", "patchbay": {"breaker": false}},
		"d": {"command": "x", "patchbay": {"breaker": {"open": "3 of 4 in 1m", "four": "1s"}}}}}`, map[string]string{"NAME": "b"})
	if faults != nil {
		t.Fatal(faults)
	}
	want := []config.Breaker{
		{On: true, Failures: 11, Calls: 21, Window: 30 * time.Second, For: 15 * time.Second},
		{On: true}, {Off: true},
		{On: true, Failures: 3, Calls: 4, Window: time.Minute},
	}
	for i, s := range file.Servers {
		if s.Breaker != want[i] {
			t.Errorf("%s: %+v, want %+v", s.Name, s.Breaker, want[i])
		}
	}
	a := file.Servers[0]
	if !cmp.Equal(a.Replicas, []string{"https://b.example/mcp"}) || len(file.Warnings) != 1 {
		t.Errorf("replicas %q, warnings %v", a.Replicas, file.Warnings)
	}
	other := a
	other.Replicas = nil
	if a.Equal(other) {
		t.Error("servers with different replicas are Equal")
	}
	if other = a; true {
		other.Breaker.For = time.Second
	}
	if a.Equal(other) {
		t.Error("servers with different breakers are Equal")
	}
}

func TestReplicaFaults(t *testing.T) {
	_, faults, _ := load(t, `{"inputs": [{"id": "i"}], "servers": {
		"a": {"command": "x", "patchbay": {"replicas": ["https://a.example/mcp"]}},
		"b": {"url": "https://a.example/mcp", "patchbay": {"replicas": 3}},
		"c": {"url": "https://a.example/mcp", "patchbay": {"replicas": ["ftp://b", 5, "https://a.example/mcp", "https://${input:i}/"]}},
		"d": {"command": "x", "patchbay": {"breaker": "yes"}},
		"e": {"command": "x", "patchbay": {"breaker": {"open": "half of 20 in 30s", "for": "never"}}},
		"f": {"command": "x", "patchbay": {"breaker": {"open": "21 of 20 in 30s"}}}}}`, nil)
	want := []string{
		`2:50: "replicas" is for a server with a "url"`,
		`3:66: "replicas" is not a list`,
		`4:67: the replica "ftp://b" is not an http or https URL`,
		`4:78: an element of "replicas" is not a URL`,
		`4:81: the replica "https://a.example/mcp" is given twice`,
		`4:106: "replicas" has an input in it`,
		`5:49: "breaker" is not an object, true or false`,
		`6:58: "open" does not say when the breaker opens`,
		`6:86: "for" is "never"`,
		`7:58: "open" does not say when the breaker opens`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
