package interop

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
)

// eras are the eras that the inspector can be set to speak.
var eras = []string{"legacy", "modern", "auto"}

// inspect runs the inspector's command line and returns the result it printed.
// to is the server: a command, or "--server-url URL --transport http".
func inspect(t *testing.T, era string, to []string, args ...string) (result map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	command := append(npmProgram(t, "inspector"), "--cli", "--format", "json", "--quiet", "--protocol-era", era)
	if to[0] == "--server-url" {
		command = slices.Concat(command, args, to)
	} else {
		command = slices.Concat(command, args, []string{"--"}, to)
	}
	stdout, stderr, err := run(ctx, command, append(home(t), nodePath(t))...)
	if err != nil {
		t.Fatalf("%q: %v\nstdout: %s\nstderr: %s", command[2:], err, stdout, stderr)
	}
	var out struct {
		Result map[string]any `json:"result"`
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || out.Result == nil {
		t.Fatalf("%q printed no result (error %v): %s", command[2:], err, stdout)
	}
	return out.Result
}

// toolNames are the names in the result of tools/list.
func toolNames(result map[string]any) (names []string) {
	tools, _ := result["tools"].([]any)
	for _, t := range tools {
		if t, ok := t.(map[string]any); ok {
			names = append(names, t["name"].(string))
		}
	}
	return names
}

// resultText is the text of the result of tools/call.
func resultText(result map[string]any) string {
	var texts []string
	blocks, _ := result["content"].([]any)
	for _, b := range blocks {
		if b, ok := b.(map[string]any); ok {
			text, _ := b["text"].(string)
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// TestInspectorServe inspects "serve sqlite" with the inspector, on both wires and in both
// eras.
func TestInspectorServe(t *testing.T) {
	db := database(t)
	targets := map[wire][]string{
		stdio: patchbay(t, "serve", "sqlite", "--db", db),
		web:   {"--server-url", startServer(t, patchbay(t, "serve", "sqlite", "--db", db, "--http", "127.0.0.1:0"), home(t)...), "--transport", "http"},
	}
	for w, to := range targets {
		for _, era := range eras {
			t.Run(string(w)+"/"+era, func(t *testing.T) {
				t.Parallel()
				tools := toolNames(inspect(t, era, to, "--method", "tools/list"))
				if !slices.Contains(tools, "read_query") {
					t.Fatalf("tools/list has %q, want read_query among them", tools)
				}
				got := resultText(inspect(t, era, to, "--method", "tools/call", "--tool-name", "read_query",
					"--tool-args-json", `{"query":"select name, metres from cords"}`))
				if !strings.Contains(got, "blue") {
					t.Errorf("tools/call read_query = %q, want the row of the blue cord", got)
				}
			})
		}
	}
}

// TestInspectorUp inspects the servers of TestGateway, one more foreign one and a bundled
// one through the gateway, behind one endpoint.
func TestInspectorUp(t *testing.T) {
	everything := npmProgram(t, "mcp-server-everything")
	url := up(t, map[string]any{
		"foreign": map[string]any{"command": everything[0], "args": everything[1:]},
		"ours":    map[string]any{"command": patchbay(t)[0], "args": []string{"serve", "sqlite", "--db", database(t)}},
	})
	to := []string{"--server-url", url, "--transport", "http"}
	for n, era := range eras {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			tools := toolNames(inspect(t, era, to, "--method", "tools/list"))
			for _, want := range []string{"foreign_echo", "ours_read_query", "conjugate_conjugate"} {
				if !slices.Contains(tools, want) {
					t.Errorf("tools/list has %q, want %s among them", tools, want)
				}
			}
			for i, s := range behind {
				if !long.On() && i%len(eras) != n { // each process of the inspector takes a second of CPU
					continue
				}
				got := resultText(inspect(t, era, to, "--method", "tools/call", "--tool-name", s.name+"_echo", "--tool-arg", "message=plug"))
				if got != "plug" {
					t.Errorf("tools/call %s_echo = %q, want %q", s.name, got, "plug")
				}
			}
			got := resultText(inspect(t, era, to, "--method", "tools/call", "--tool-name", "foreign_echo", "--tool-arg", "message=hi"))
			if want := "Echo: hi"; got != want {
				t.Errorf("tools/call foreign_echo = %q, want %q", got, want)
			}
			got = resultText(inspect(t, era, to, "--method", "tools/call", "--tool-name", "ours_read_query",
				"--tool-args-json", `{"query":"select name, metres from cords"}`))
			if !strings.Contains(got, "blue") {
				t.Errorf("tools/call ours_read_query = %q, want the row of the blue cord", got)
			}
		})
	}
}

// database is a SQLite file with one table in it.
func database(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cords.db")
	const script = `
		const { DatabaseSync } = require('node:sqlite');
		new DatabaseSync(process.argv[1]).exec("create table cords (name text, metres int); insert into cords values ('blue', 3)");`
	if out, err := exec.Command(node(t), "--no-warnings", "-e", script, path).CombinedOutput(); err != nil {
		t.Fatalf("make a database: %v\n%s", err, out)
	}
	return path
}
