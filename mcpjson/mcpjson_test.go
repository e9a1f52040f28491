package mcpjson_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcpjson"
)

// env has one built-in server, whose tool says the arguments of the server.
var env = &launch.Env{Builtin: func(name string, args []string, _ *slog.Logger) (mcp.Handler, error) {
	srv := &mcp.Server{Name: name, Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "args"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint(args), nil })
	return srv, nil
}}

// caller is a model that calls a tool once and repeats its result.
type caller string

func (caller) Info() model.Info { return model.Info{Name: "test/caller"} }

func (m caller) Generate(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Response, error) {
	part := model.Part{Call: &model.Call{ID: "1", Name: string(m), Arguments: json.RawMessage(`{}`)}}
	if last := req.Messages[len(req.Messages)-1].Parts[0]; last.Result != nil {
		part = model.Part{Text: last.Result.Parts[0].Text}
	}
	return &model.Response{Message: model.Message{Role: model.Assistant, Parts: []model.Part{part}}}, nil
}

func write(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The servers of a file are added with their settings; a faulty one and a disabled one are not.
func TestAdd(t *testing.T) {
	path := write(t, t.TempDir(), `{"mcpServers": {"a": {"builtin": "x", "args": ["one"]}, "bad": {"command": 7}, "off": {"builtin": "x", "disabled": true}}}`)
	h := &host.Host{Model: caller("a_args"), Allow: []string{"a/*"}}
	defer h.Close()
	var faults config.Problems
	if err := mcpjson.Add(h, path, env); !errors.As(err, &faults) || !strings.Contains(err.Error(), `"command" is not a string`) {
		t.Errorf("Add = %v, want the fault of bad", err)
	}
	if list := h.Servers(); len(list) != 1 || list[0].Name != "a" {
		t.Errorf("the servers are %+v, want a alone", list)
	}
	if r, err := h.NewConversation().Send(t.Context(), "go"); err != nil || r.Text != "[one]" {
		t.Errorf("Send = %+v, %v", r, err)
	}
	if err := mcpjson.Add(h, path+"x", env); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

// An approval for always is kept for a server with its name, arguments and folder: not for another file's server of the
// same name, nor for the same one under another name.
func TestApprovalsAreOfOneServer(t *testing.T) {
	kept, err := approval.Open(filepath.Join(t.TempDir(), "approvals.json"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		dir, name, args string
		asked           bool
	}{
		{first, "a", "one", true},
		{first, "a", "one", false},
		{second, "a", "one", true},
		{first, "b", "one", true},
		{first, "a", "two", true},
		{first, "a", "--token=s3cret", true},
		{first, "a", "--token=s3cret", false},
		{first, "a", "--token=other", true},
	} {
		t.Chdir(tt.dir) // in which the server starts
		asked := false
		h := &host.Host{Model: caller(tt.name + "_args"), Approvals: kept, Person: host.Approver(func(context.Context, *host.Approval) (host.Verdict, error) {
			asked = true
			return host.Verdict{Answer: host.AllowAlways}, nil
		})}
		if err := mcpjson.Add(h, write(t, tt.dir, `{"mcpServers": {"`+tt.name+`": {"builtin": "x", "args": ["`+tt.args+`"]}}}`), env); err != nil {
			t.Fatal(err)
		}
		if _, err := h.NewConversation().Send(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		h.Close()
		if asked != tt.asked {
			t.Errorf("%s %s in folder %d: asked %v, want %v", tt.name, tt.args, map[string]int{first: 1, second: 2}[tt.dir], asked, tt.asked)
		}
	}
	data, err := os.ReadFile(kept.Path())
	if err != nil || strings.Contains(string(data), "s3cret") {
		t.Errorf("the file of approvals has a secret, or %v", err)
	}
}

func Example() {
	h := &host.Host{Model: caller("db_args"), Allow: []string{"db/*"}}
	defer h.Close()
	if err := mcpjson.Add(h, "testdata/mcp.json", env); err != nil {
		log.Fatal(err)
	}
	reply, err := h.NewConversation().Send(context.Background(), "Which arguments has the server?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text)
	// Output: [--demo]
}
