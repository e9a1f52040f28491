package config_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/config"
)

func TestLoadOwnSettings(t *testing.T) {
	file, faults, _ := load(t, `{
  "patchbay": {"share": "principal", "servers": {
    "a": {"share": "shared", "idle": "10m", "callTimeout": "never", "callLimit": "30m"},
    "db": {"builtin": "sqlite", "args": ["x.db"], "idle": "1s", "patchbay": {"share": "auto", "clients": 500, "queue": "5s"}}
  }},
  "mcpServers": {
    "a": {"command": "x", "patchbay": {"share": "per-client", "startTimeout": "1m30s"}},
    "b": {"command": "y"}
  }
}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	want := []config.Server{
		{Name: "a", Command: "x", Transport: "stdio", Share: "session", Idle: 10 * time.Minute, StartTimeout: 90 * time.Second, CallTimeout: -1, CallLimit: 30 * time.Minute, Source: "DIR/mcp.json:7"},
		{Name: "b", Command: "y", Transport: "stdio", Source: "DIR/mcp.json:8"},
		{Name: "db", Builtin: "sqlite", Args: []string{"x.db"}, Share: "auto", Clients: 500, Queue: 5 * time.Second, Idle: time.Second, Source: "DIR/mcp.json:4"},
	}
	if diff := cmp.Diff(plain(want), plain(file.Servers), cmpopts.IgnoreUnexported(fields{})); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if len(file.Warnings) > 0 || file.Share != "principal" {
		t.Errorf("warnings %v, share %q; want none, and that of the file", file.Warnings, file.Share)
	}
}

func TestLoadOwnFaults(t *testing.T) {
	file, faults, _ := load(t, `{
  "patchbay": {"servers": {
    "a": {"command": "z"},
    "b": {"share": "both", "idle": 5, "clients": 0, "queue": "-1s"},
    "c": 1
  }, "servers": {}},
  "mcpServers": {
    "a": {"command": "x"},
    "b": {"command": "y", "patchbay": {"startTimeout": "-1s", "callTimeout": "soon"}},
    "d": {"command": "y", "patchbay": true}
  }
}`, nil)
	want := []string{
		`3:5: the server "a" is here and in a list`,
		`4:20: "share" has an unknown value`,
		`4:36: "idle" is not a duration`,
		`4:50: "clients" is not a number of clients`,
		`4:62: "queue" is not a duration`,
		`5:10: the server "c" is not an object`,
		`6:6: the member "servers" is here twice, first in line 2`,
		`9:56: "startTimeout" is not a duration`,
		`9:78: "callTimeout" is not a duration`,
		`10:39: "patchbay" is not an object`,
	}
	if diff := cmp.Diff(want, faults); diff != "" || file != nil {
		t.Errorf("faults (-want +got):\n%s", diff)
	}

	file, faults, _ = load(t, `{"patchbay": {"server": {}, "servers": {"bb": {"idle": "1s"}, "s": {"builtin": "sqlite", "idel": "1s"}}},
"servers": {"ab": {"command": "x", "patchbay": {"idel": "1s", "colour": "red"}}}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	var got []string
	for _, w := range file.Warnings {
		got = append(got, fmt.Sprintf("%d:%d: %s: %s", w.Line, w.Column, w.Text, w.Fix))
	}
	want = []string{
		`1:15: the member "server" of "patchbay" is not read: Patchbay has "servers", "share", "models", "model" and "hooks"`,
		`1:41: there is no server "bb": did you mean "ab"?`,
		`1:90: the member "idel" is not read: did you mean "idle"?`,
		`2:49: the member "idel" of "patchbay" is not read: did you mean "idle"?`,
		`2:63: the member "colour" of "patchbay" is not read: Patchbay has share, clients, queue, replicas, breaker, memory, processes, idle, startTimeout, callTimeout, callLimit, inheritEnv, ca, cert, key, trusted, required, group, cache, tools`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// The TLS files are for servers with a URL, and relative to the folder of the configuration.
func TestTLSFiles(t *testing.T) {
	env := map[string]string{"DIR": "certs"}
	file, faults, _ := load(t, `{"servers": {
		"web": {"url": "https://x.example/mcp", "patchbay": {"ca": "${DIR}/ca.pem", "cert": "/abs/me.pem", "key": "me.key"}},
		"cmd": {"command": "x", "patchbay": {"ca": "ca.pem"}}}}`, env)
	if faults != nil {
		t.Fatal(faults)
	}
	s := file.Servers[0]
	folder := filepath.Dir(file.Path)
	if s.CA != filepath.Join(folder, "certs", "ca.pem") || s.Key != filepath.Join(folder, "me.key") || !filepath.IsAbs(s.Cert) && runtime.GOOS != "windows" {
		t.Errorf("ca %q, cert %q, key %q", s.CA, s.Cert, s.Key)
	}
	if len(file.Warnings) != 1 || file.Warnings[0].Text != `"ca" is for a server with a "url"` {
		t.Errorf("warnings %v", file.Warnings)
	}
	other := s
	other.CA = "else"
	if s.Equal(other) {
		t.Error("servers with different authorities are Equal")
	}
	_, faults, _ = load(t, `{"inputs": [{"id": "i"}], "servers": {
		"a": {"url": "https://x.example/mcp", "patchbay": {"key": "me.key"}},
		"b": {"url": "https://x.example/mcp", "patchbay": {"cert": 5, "ca": "${NOT_SET}"}},
		"c": {"url": "https://x.example/mcp", "patchbay": {"ca": "${input:i}"}}}}`, env)
	want := []string{
		`2:61: "key" without "cert"`,
		`3:62: "cert" is not the path of a file`,
		`3:71: the environment variable NOT_SET is not set`,
		`4:60: "ca" has an input in it`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestServerEqual(t *testing.T) {
	text := `{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "v"}, "patchbay": {"idle": "1s"}}}}`
	one, _, _ := load(t, text, nil)
	two, _, _ := load(t, "\n\n"+text, nil)
	if !one.Servers[0].Equal(two.Servers[0]) {
		t.Error("the same server in another line is not Equal")
	}
	for _, other := range []string{
		`{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "w"}, "patchbay": {"idle": "1s"}}}}`,
		`{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "v"}, "patchbay": {"idle": "2s"}}}}`,
		`{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "v"}, "disabled": true, "patchbay": {"idle": "1s"}}}}`,
		`{"servers": {"a": {"command": "x", "args": ["1"], "env": {"K": "v"}, "dev": {"watch": "*.js"}, "patchbay": {"idle": "1s"}}}}`,
		`{"servers": {"b": {"command": "x", "args": ["1"], "env": {"K": "v"}, "patchbay": {"idle": "1s"}}}}`,
	} {
		three, _, _ := load(t, other, nil)
		if one.Servers[0].Equal(three.Servers[0]) {
			t.Errorf("Equal to %s", other)
		}
	}
}
