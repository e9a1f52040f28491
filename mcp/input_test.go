package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/schema"
)

type search struct {
	Text  string `json:"text"`
	Limit int    `json:"limit" default:"10" max:"20"`
}

// changedSearch is the type of search with tags that only the running program knows.
func changedSearch(t *testing.T, tags string, path ...string) *schema.Type {
	t.Helper()
	typ, err := schema.For[search]()
	if err == nil {
		typ, err = typ.With(tags, path...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// Tool.Input changes the schema of a tool, and the decoder still checks the arguments, reads null as
// absence and fills in the default, on all revisions.
func TestInput(t *testing.T) {
	input := changedSearch(t, fmt.Sprintf(`max:"%d" default:"%d"`, 50, 30), "limit")
	newServer := func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1", Lenient: true}
		mcp.AddTool(s, mcp.Tool{Name: "search", Input: input}, func(_ context.Context, in search) (string, error) {
			return fmt.Sprint(in.Text, " ", in.Limit), nil
		})
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		for tool, err := range s.Tools(t.Context()) {
			if err != nil || !strings.Contains(string(tool.InputSchema), `"limit":{"type":"integer","default":30,"maximum":50}`) {
				t.Errorf("%v, %v", tool, err)
			}
		}
		for args, want := range map[string]string{
			`{"text":"a"}`:               "a 30",
			`{"text":"a","limit":null}`:  "a 30",
			`{"text":"a","limit":40}`:    "a 40",
			`{"text":"a","limit":"40"}`:  "a 40", // Server.Lenient
			`{"text":"a","limit":60}`:    "limit: must be at most 50, got 60",
			`{"text":"a","limits":1}`:    `unknown property "limits", did you mean "limit"?`,
			`{"text":"a","limit":"few"}`: `limit: must be an integer, got string`,
		} {
			res, err := s.CallTool(t.Context(), "search", json.RawMessage(args))
			if err != nil || res.Text() != want {
				t.Errorf("search %s = %v, %v, want %s", args, res, err, want)
			}
		}
	})
}

// An Input that does not belong to the tool is an error at the start.
func TestInputNonsense(t *testing.T) {
	input := changedSearch(t, `max:"50"`, "limit")
	for _, tt := range []struct {
		name string
		add  func(*mcp.Server)
		want string
	}{
		{"of another type", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", Input: input}, func(context.Context, struct{}) (string, error) { return "", nil })
		}, `mcp: AddTool "x": the type of Input is mcp_test.search, but the function takes struct {}; make it with schema.For[struct {}]`},
		{"beside InputSchema", func(s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "x", Input: input, InputSchema: input.JSON()}, func(context.Context, search) (string, error) { return "", nil })
		}, `mcp: AddTool "x": both Input and InputSchema are set; set one`},
		{"of an untyped tool", func(s *mcp.Server) {
			if err := s.HandleTool(mcp.Tool{Name: "x", Input: input}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) { return nil, nil }); err != nil {
				panic(err)
			}
		}, `mcp: HandleTool "x": Input is for AddTool; set InputSchema to its JSON`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if v := recover(); fmt.Sprint(v) != tt.want {
					t.Errorf("panic %v, want %s", v, tt.want)
				}
			}()
			tt.add(&mcp.Server{Name: "s", Version: "1"})
		})
	}
}
