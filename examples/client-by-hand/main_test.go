package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" { // the test started itself as the server
		if err := newLibrary().ServeStdio(context.Background()); err != nil {
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// newLibrary is a server of the SDK with two pages of tools, one of which logs and asks before it answers.
func newLibrary() *mcp.Server {
	srv := &mcp.Server{Name: "library", Version: "1.0.0", Limits: mcp.Limits{PageSize: 1}}
	mcp.AddTool(srv, mcp.Tool{Name: "burn"}, func(context.Context, struct{}) (string, error) { return "", errors.New("books do not burn here") })
	mcp.AddTool(srv, mcp.Tool{Name: "lend"}, func(ctx context.Context, in struct {
		Title string `json:"title"`
	}) (string, error) {
		if _, err := mcp.Elicit[struct{ Name string }](ctx, "Who are you?"); !errors.Is(err, mcp.ErrNotSupported) {
			return "", err
		}
		return "lent " + in.Title, nil
	})
	return srv
}

func TestCall(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, args, want, fault string }{
		{"lend", `{"title":"Emma"}`, "lent Emma", ""},
		{"burn", `{}`, "", "books do not burn here"},
		{"lend", `{"title":1}`, "", "title"},
		{"read", `{}`, "", "the server has no tool read"},
	} {
		got, err := run(tt.tool, json.RawMessage(tt.args), exec.Command(self, "serve"))
		if got != tt.want || (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s %s = %q, %v; want %q, %q", tt.tool, tt.args, got, err, tt.want, tt.fault)
		}
	}
}

// A server may send a ping, a request for something that was not declared, and a notification before its answer.
func TestServerSpeaksFirst(t *testing.T) {
	var sent strings.Builder
	w := &wire{out: json.NewEncoder(&sent), in: json.NewDecoder(strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}
{"jsonrpc":"2.0","id":"a","method":"ping"}
{"jsonrpc":"2.0","id":"b","method":"roots/list"}
{"jsonrpc":"2.0","id":1,"result":{"ok":true}}
`))}
	var result struct{ OK bool }
	if err := w.request("x", nil, &result); err != nil || !result.OK {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, want := range []string{`{"id":"a","jsonrpc":"2.0","result":{}}`, `"code":-32601`} {
		if !strings.Contains(sent.String(), want) {
			t.Errorf("sent %s, which lacks %s", &sent, want)
		}
	}
	if err := w.request("y", nil, &result); err == nil {
		t.Error("the end of the input gave no error")
	}
}
