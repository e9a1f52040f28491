package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/serverid"
)

// script is a model that returns its answers in turn, one per request, and records the requests.
type script struct {
	answers []model.Message
	asked   []*model.Request
}

func (*script) Info() model.Info { return model.Info{Name: "test/script"} }

func (m *script) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	m.asked = append(m.asked, req)
	return &model.Response{Message: m.answers[len(m.asked)-1]}, nil
}

func says(text string) model.Message {
	return model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text}}}
}

func calls(tool, args string) model.Message {
	return model.Message{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: tool, Arguments: json.RawMessage(args)}}}}
}

// testApp returns a run of the program without a person.
func testApp(t *testing.T) (*app, *bytes.Buffer) {
	t.Helper()
	var stderr bytes.Buffer
	a := newApp(t.Context(), strings.NewReader(""), &bytes.Buffer{}, &stderr)
	a.Timeout = time.Minute
	return a, &stderr
}

func TestHostingServesBuiltinsAndCommands(t *testing.T) {
	a, stderr := testApp(t)
	h, err := a.newHost(new(callRules), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave()
	m := &script{answers: []model.Message{calls("stub_args", `{"n": 2}`), says("done")}}
	h.Model, h.Allow = m, []string{"stub/*"}
	a.Env = []string{testRun + "=stub"}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = h.start([]config.Server{
		{Name: "shop", Builtin: "shop"},
		{Name: "stub", Command: self, Source: "mcp.json:1"},
		{Name: "gone", Command: "no-such-command", Source: "mcp.json:2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := stderr.String(); !strings.Contains(text, `gone: failing: the command "no-such-command" was not found`) {
		t.Errorf("stderr = %q; it does not say why a server is missing", text)
	}
	reply, err := h.NewConversation().Send(t.Context(), "call args")
	if err != nil || reply.Text != "done" {
		t.Fatalf("Send = %+v, %v", reply, err)
	}
	last := m.asked[1].Messages
	if res := last[len(last)-1].Parts[0].Result; res == nil || res.Error || !strings.Contains(res.Parts[0].Text, "2") {
		t.Errorf("the model was given %+v", res)
	}
}

func TestHostingWithoutAnyServer(t *testing.T) {
	a, _ := testApp(t)
	h, err := a.newHost(new(callRules), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave()
	if err := h.start([]config.Server{{Name: "gone", Command: "no-such-command"}}); err != nil {
		t.Fatal(err)
	}
	if got := a.explain(h.wait(t.Context())); got.Code != exitUnreachable || !strings.HasPrefix(got.Error(), "no-such-command: failing") {
		t.Errorf("wait = %v with code %d, want one of an unreachable server", got, got.Code)
	}
}

// Identities for approvals distinguish servers, also by parts that are not shown, and contain no
// secrets.
func TestIdentities(t *testing.T) {
	a, _ := testApp(t)
	h, err := a.newHost(new(callRules), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave()
	identityOf := func(s config.Server) string {
		t.Helper()
		id, err := h.identityOf(s)
		if err != nil || strings.Contains(id, "s3cret") || len(id) < 5 {
			t.Errorf("identity %q (%v) is none, or has a secret in it", id, err)
		}
		if again, _ := h.identityOf(s); again != id {
			t.Errorf("identity %q is then %q", id, again)
		}
		return id
	}
	command := func(dir string, args ...string) config.Server {
		return config.Server{Name: "a", Command: "node", Args: args, Dir: dir}
	}
	seen := map[string]config.Server{}
	for _, s := range []config.Server{
		command("/one", "server.js", "--token", "s3cret"),
		command("/two", "server.js", "--token", "s3cret"),
		command("/one", "server.js", "--token", "s3cret2"),
		command("/one", "server.js", "https://s3cret@example.com/a?b=1"),
		command("/one", "server.js", "https://s3cret@example.com/a?b=2"),
		{Name: "b", URL: "https://user:s3cret@example.com/mcp?key=s3cret"},
		{Name: "b", URL: "https://other:s3cret@example.com/mcp?key=s3cret"},
		{Name: "b", URL: "https://example.com/mcp?project=dev"},
		{Name: "b", URL: "https://example.com/mcp?project=prod"},
		{Name: "c", Builtin: "files", Args: []string{"--token=s3cret"}},
	} {
		id := identityOf(s)
		if other, ok := seen[id]; ok {
			t.Errorf("%v and %v are both %s", other.CommandLine(), s.CommandLine(), id)
		}
		seen[id] = s
	}
	plain := config.Server{Name: "d", URL: "https://example.com/mcp"}
	if id := identityOf(plain); id != "d https://example.com/mcp" {
		t.Errorf("a server of which all is shown is %q", id)
	}
	if asked, err := serverid.Of(plain, func(config.Server) (config.Server, error) {
		return config.Server{Name: "d", URL: "https://example.com/mcp/s3cret"}, nil
	}, h.approvals.Digest); asked == identityOf(plain) || strings.Contains(asked, "s3cret") || err != nil {
		t.Errorf("a server with an input is %q, %v", asked, err)
	}
}

// Tool filters of mcp.json apply to a model.
func TestHostingOffersWhatIsEnabled(t *testing.T) {
	a, _ := testApp(t)
	h, err := a.newHost(new(callRules), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.leave()
	m := &script{answers: []model.Message{says("hello")}}
	h.Model = m
	err = h.start([]config.Server{
		{Name: "some", Builtin: "shop", EnabledTools: []string{"*cart*"}, DisabledTools: []string{"*items*"}},
		{Name: "everything", Builtin: "everything", EnabledTools: []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.NewConversation().Send(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range m.asked[0].Tools {
		names = append(names, tool.Name)
		if strings.HasPrefix(tool.Name, "everything") || strings.HasPrefix(tool.Name, "some_") && (!strings.Contains(tool.Name, "cart") || strings.Contains(tool.Name, "items")) {
			t.Errorf("the model is offered %s", tool.Name)
		}
	}
	if !strings.Contains(strings.Join(names, " "), "some_") {
		t.Errorf("the model is offered %s, and nothing of the shop", names)
	}
}
