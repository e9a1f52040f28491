package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// laxPeers are servers that ignore the case of names: of name and Name the last counts. Each has a
// harmless tool and a destructive one.
var laxPeers = []struct {
	name       string
	mild, wild string
	ranWild    string // in the result of wild
	command    func(t *testing.T) []string
}{
	{"lax", "mild", "wild", "ran wild", func(*testing.T) []string { return goServer("lax")(stdio) }},
	{"gosdk12", "mild", "wild", "ran wild", goSDK12},
	{"mcpgo", "echo", "steps", "done", func(*testing.T) []string { return goServer("mcpgo")(stdio) }},
}

// goSDK12 builds the server on the Go SDK 1.2.0, which is a module of its own.
func goSDK12(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gosdk12.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	build.Dir = "gosdk12"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gosdk12: %v\n%s", err, out)
	}
	return []string{path}
}

// serveLax is a server that decodes only by encoding/json.
func serveLax(context.Context, wire) error {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal(in.Bytes(), &msg); err != nil || msg.ID == nil {
			continue
		}
		result := `{}`
		switch msg.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lax","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"mild","inputSchema":{"type":"object"}},{"name":"wild","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, "ran "+msg.Params.Name)
		case "server/discover":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", msg.ID)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", msg.ID, result)
	}
	return nil
}

// TestLaxServers sends servers that ignore case a call with two names, of which an exact decoder,
// such as a policy, sees the harmless one. Called directly, each server runs the other; behind up
// and bridge the call is refused.
func TestLaxServers(t *testing.T) {
	const call = `{"name":"%s","Name":"%s","arguments":{"message":"hi"}%s}`
	configured := map[string]any{}
	for _, p := range laxPeers {
		command := p.command(t)
		configured[p.name] = map[string]any{"command": command[0], "args": command[1:]}
		t.Run(p.name+" alone", func(t *testing.T) {
			if answer := askLines(t, command, fmt.Sprintf(call, p.mild, p.wild, "")); !strings.Contains(answer, p.ranWild) {
				t.Errorf("it is not lax any more, it answers %s", answer)
			}
		})
		t.Run(p.name+" behind bridge", func(t *testing.T) {
			url := startServer(t, patchbay(t, append([]string{"bridge", "--http", "127.0.0.1:0", "--"}, command...)...), home(t)...)
			refusedTwice(t, url, p.mild, p.wild, call)
		})
	}
	text, err := json.Marshal(map[string]any{"mcpServers": configured})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	url := startServer(t, patchbay(t, "up", "--config", config, "--http", "127.0.0.1:0"), home(t)...)
	for _, p := range laxPeers {
		t.Run(p.name+" behind up", func(t *testing.T) { refusedTwice(t, url, p.name+"_"+p.mild, p.wild, call) })
	}
}

// refusedTwice checks that a call passes, and that it is refused with a second name.
func refusedTwice(t *testing.T, url, mild, wild, call string) {
	t.Helper()
	const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	post := func(params string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {mild}}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	if answer := post(fmt.Sprintf(`{"name":"%s","arguments":{"message":"hi"}%s}`, mild, meta)); !strings.Contains(answer, `"content"`) {
		t.Errorf("a plain call is answered %s", answer)
	}
	if answer := post(fmt.Sprintf(call, mild, wild, meta)); !strings.Contains(answer, "-32602") || !strings.Contains(answer, "must be written") {
		t.Errorf("a call with two names is answered %s", answer)
	}
}

// askLines opens a session with a server on standard streams, calls a tool, and returns the line of
// the answer.
func askLines(t *testing.T, command []string, params string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := inGroup(ctx, command)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); endGroup(cmd); cmd.Wait() }()
	lines := bufio.NewScanner(out)
	answer := func(id string) string {
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"id":`+id) {
				return lines.Text()
			}
		}
		t.Fatalf("no answer to request %s: %v", id, lines.Err())
		return ""
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	answer("1")
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":`+params+`}`)
	return answer("2")
}
