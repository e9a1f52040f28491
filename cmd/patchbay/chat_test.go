package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/modeltest"
)

const dolphinModel = `
turns:
  - when: {user: "which tables"}
    answer:
      - call: {name: sqlite_list_tables, arguments: {}}
  - when: {results: {sqlite_list_tables: "dolphin"}}
    answer: [text: "There is **dolphin_species**."]
    usage: {input: 20, output: 3}
  - when: {user: "again"}
    answer: [text: "As I said."]
`

// Without a terminal, chat reads lines, prints answers, and continues kept conversations.
func TestChatLines(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(dolphinModel))
	dolphins(t, "dolphins.db")
	config := `{"mcpServers": {"sqlite": {"builtin": "sqlite", "args": ["--db", "dolphins.db"]}}}`
	if err := os.WriteFile("mcp.json", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	typed(t, "", "config", "trust")
	out := typed(t, "which tables are there?\n/cost\n/resume\n", "chat", "-m", "openai/scripted")
	if out.code != exitOK || !strings.Contains(out.stdout, "✓ sqlite/list_tables") || !strings.Contains(out.stdout, "There is **dolphin_species**.\n") {
		t.Fatalf("exit code %d, stdout:\n%s\nstderr:\n%s", out.code, out.stdout, out.stderr)
	}
	id := ""
	for line := range strings.Lines(out.stdout) {
		if strings.Contains(line, "which tables are there?") {
			id, _, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
	}
	if id == "" {
		t.Fatalf("the conversation is not listed:\n%s", out.stdout)
	}
	cost := regexp.MustCompile(`(?m)^ +[1-9]\d* tokens in, .*$`).FindString(out.stdout)
	out = typed(t, "/cost\nonce again\n/save talk.md\n/forget "+id+"\n", "chat", "-m", "openai/scripted", "--resume", id[:6])
	if cost == "" || !strings.Contains(out.stdout, cost) || !strings.Contains(out.stdout, id+" is this conversation") {
		t.Errorf("it has used %q before, and is deleted while it goes on:\n%s", cost, out.stdout)
	}
	if out.code != exitOK || !strings.Contains(out.stdout, "continuing "+id) || !strings.Contains(out.stdout, "As I said.") {
		t.Fatalf("exit code %d, stdout:\n%s\nstderr:\n%s", out.code, out.stdout, out.stderr)
	}
	saved, err := os.ReadFile("talk.md")
	if err != nil || !strings.Contains(string(saved), "which tables are there?") || !strings.Contains(string(saved), "As I said.") {
		t.Errorf("what was saved is %q (%v)", saved, err)
	}
	out = typed(t, "/forget\n/forget "+id[:6]+"\n/forget "+id+"\n/resume\n", "chat", "-m", "openai/scripted")
	for _, want := range []string{"takes the whole ID", "give the whole ID", "deleted " + id, "no stored conversations yet"} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("/forget: stdout is without %q:\n%s", want, out.stdout)
		}
	}
}

// Without a model, chat is a console, and says how to configure a model.
func TestChatConsole(t *testing.T) {
	alone(t)
	out := typed(t, "hello\n/call everything/add a=2 b=3\n/call everything/add a=x\n/read everything:test://static-text\n/quit\n/servers\n", "chat", "-s", "everything")
	for _, want := range []string{
		"• no model is configured; /call, /read and /prompt work without one.\n  To use a model: set OPENAI_API_KEY or ANTHROPIC_API_KEY, then patchbay chat -s everything --model openai/NAME",
		"✓ everything/add", "must be a number", "test://static-text",
	} {
		if !strings.Contains(out.stdout, want) {
			t.Errorf("stdout is without %q", want)
		}
	}
	if strings.Contains(out.stdout+out.stderr, "host: ") {
		t.Error("an error names the package that it is of")
	}
	if strings.Contains(out.stdout, "ready") {
		t.Error("it goes on behind /quit")
	}
	if t.Failed() || out.code != exitOK {
		t.Fatalf("exit code %d, stdout:\n%s\nstderr:\n%s", out.code, out.stdout, out.stderr)
	}
}

// Without a terminal, the exit code says that the model failed at the last message.
func TestChatLinesFail(t *testing.T) {
	for script, code := range map[string]int{
		"rules: [fault: {status: 401}]":                             exitModel,
		"turns: [{answer: [text: Hello.]}, {fault: {status: 401}}]": exitModel,
		"turns: [{fault: {status: 401}}, {answer: [text: Hello.]}]": exitOK,
	} {
		alone(t)
		scripted(t, modeltest.MustParse(script))
		out := typed(t, "one\ntwo\n", "chat", "-m", "openai/scripted", "-s", "shop", "--no-memory")
		if out.code != code || !strings.Contains(out.stdout, "not authorized") || code != exitOK && !strings.Contains(out.stderr, "config doctor") {
			t.Errorf("%s: exit code %d, want %d; stdout:\n%s\nstderr:\n%s", script, out.code, code, out.stdout, out.stderr)
		}
	}
}

// Without a terminal nobody can be asked: a tool that needs approval is not called, and the model
// gets that as the result.
func TestChatAsksNobody(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(`
turns:
  - when: {user: "cart"}
    answer:
      - call: {name: shop_add-to-cart, arguments: {product: prd-1001}}
  - when: {results: {shop_add-to-cart: "nobody"}}
    answer: [text: "I may not."]
`))
	out := typed(t, "fill a cart\n", "chat", "-m", "openai/scripted", "-s", "shop", "--no-memory")
	if out.code != exitOK || !strings.Contains(out.stdout, "⊘ shop/add-to-cart") || !strings.Contains(out.stdout, "I may not.") {
		t.Fatalf("exit code %d, stdout:\n%s\nstderr:\n%s", out.code, out.stdout, out.stderr)
	}
	if found, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_DATA_HOME"), "patchbay", "conversations*")); len(found) > 0 {
		t.Errorf("--no-memory keeps %v", found)
	}
}

// Without a terminal, chat says that it waits for a silent model. The model gets the parameters of
// mcp.json, and the tools in place of {tools}.
func TestChatLinesWaits(t *testing.T) {
	was := silentTime
	silentTime = 50 * time.Millisecond
	t.Cleanup(func() { silentTime = was })
	alone(t)
	model := scripted(t, modeltest.MustParse(`rules: [{answer: [text: "So it is, and always was."], fault: {slow: 600ms}}]`))
	config := strings.ReplaceAll(`{"mcpServers": {"shop": {"builtin": "shop"}}, "patchbay": {"model": "own", "models": {
  "own": {"provider": "openai", "name": "own", "baseUrl": "BASE", "key": "${OPENAI_API_KEY}", "temperature": 0.125, "parameters": {"top_p": 0.5}}
}}}`, "BASE", os.Getenv("OPENAI_BASE_URL"))
	if err := os.WriteFile("mcp.json", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	typed(t, "", "config", "trust")
	out := typed(t, "is it so?\n", "chat", "--no-memory", "--system", "You have:\n{tools}")
	if line := "patchbay: waiting for openai/own, which has sent nothing for 50ms\n"; out.code != exitOK || !strings.Contains(out.stderr, line) || strings.Contains(out.stdout, "waiting") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want %q on stderr", out.code, out.stdout, out.stderr, line)
	}
	requests := model.Requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	if body := string(requests[0].Body); !strings.Contains(body, `"temperature":0.125`) || !strings.Contains(body, `"top_p":0.5`) {
		t.Errorf("the request is %s", body)
	}
	if system := requests[0].System; !strings.HasPrefix(system, "You have:\n- shop_add-to-cart: \"") {
		t.Errorf("the system prompt is %q", system)
	}
}
