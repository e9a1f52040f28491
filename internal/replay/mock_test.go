package replay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/replay"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// mockOf makes the server of a recording of tools/call and others, each line a request
// and its result.
func mockOf(t *testing.T, lines ...string) *mcp.Server {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"dir":"out","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"rec","title":"Rec","version":"9"},"instructions":"Be brief."}}}
`)
	for i, line := range lines {
		b.WriteString(strings.ReplaceAll(line, "ID", fmt.Sprint(i+1)) + "\n")
	}
	rec, err := replay.Read(strings.NewReader(b.String()), "")
	if err != nil {
		t.Fatal(err)
	}
	return replay.NewMock(rec).Server()
}

func asked(params string) string {
	return `{"dir":"out","msg":{"jsonrpc":"2.0","id":ID,"method":"tools/call","params":` + params + `}}`
}

func answered(text string) string {
	return `{"dir":"in","msg":{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + text + `"}]}}}`
}

func call(params, text string) string { return asked(params) + "\n" + answered(text) }

// TestMockPicks: an exact match first, then by name, in recorded order; the last answer
// repeatedly.
func TestMockPicks(t *testing.T) {
	s := mockOf(t,
		call(`{"name":"a","arguments":{"n":1,"m":[1,2]}}`, "first"),
		call(`{"name":"a","arguments":{"n":2}}`, "second"),
		call(`{"name":"a","arguments":{"m":[1,2],"n":1}}`, "third"),
		call(`{"name":"b","arguments":{"password":"[redacted]"}}`, "logged in"),
		call(`{"name":"b","arguments":{"password":"[redacted]","x":1}}`, "x"),
	)
	session := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	if info := session.Server(); info.Name != "rec" || info.Version != "9" || info.Title != "Rec" || info.Instructions != "Be brief." || !info.Capabilities.Has("tools") {
		t.Errorf("the mock says it is %+v", info)
	}
	for i, tt := range []struct{ name, args, want string }{
		{"a", `{"n":2}`, "second"},
		{"a", `{"n":1,"m":[1,2]}`, "first"},
		{"a", `{"m":[1,2], "n":1}`, "third"},
		{"a", `{"n":1,"m":[1,2]}`, "third"},
		{"a", `{"n":5}`, "first"},
		{"a", `{"n":6}`, "second"},
		{"a", `{"n":7}`, "third"},
		{"a", `{"n":8}`, "third"},
		{"b", `{"x":1,"password":"hunter2"}`, "x"},
		{"b", `{"password":"hunter2"}`, "logged in"},
	} {
		res, err := session.CallTool(t.Context(), tt.name, rawJSON(tt.args))
		if err != nil || res.Text() != tt.want {
			t.Errorf("call %d of %s %s = %v, %v; want %q", i, tt.name, tt.args, res, err, tt.want)
		}
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// TestMockNamesWhatIsThere: a request that was not recorded is refused with the names of recorded
// ones.
func TestMockNamesWhatIsThere(t *testing.T) {
	s := mockOf(t, call(`{"name":"a"}`, "x"), call(`{"name":"b"}`, "x"),
		`{"dir":"out","msg":{"jsonrpc":"2.0","id":ID,"method":"resources/read","params":{"uri":"test://r"}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":ID,"result":{"contents":[]}}}`,
		`{"dir":"out","msg":{"jsonrpc":"2.0","id":ID,"method":"tools/list"}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"nextCursor":"2"}}}`)
	session := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	refused := func(err error, code int, words ...string) {
		t.Helper()
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || rpc.Code != code {
			t.Errorf("error %v, want the code %d", err, code)
			return
		}
		for _, w := range words {
			if !strings.Contains(rpc.Message, w) {
				t.Errorf("error %q, want %q in it", rpc.Message, w)
			}
		}
	}
	_, err := session.CallTool(t.Context(), "c", nil)
	refused(err, jsonrpc.CodeInvalidParams, `no tools/call of "c"`, "a, b")
	_, err = session.ReadResource(t.Context(), "test://x")
	refused(err, jsonrpc.CodeInvalidParams, `no resources/read of "test://x"`, "test://r")
	_, err = session.Raw(t.Context(), "prompts/list", nil)
	refused(err, jsonrpc.CodeMethodNotFound, "no prompts/list", "tools/call, resources/read, tools/list")
	_, err = session.Raw(t.Context(), "tools/list", map[string]string{"cursor": "2"})
	refused(err, jsonrpc.CodeInvalidParams, `no page "2"`)
}

// TestMockAsksAgain: a recorded question is asked in every revision that can; any answer leads to
// the recorded result.
func TestMockAsksAgain(t *testing.T) {
	const question = `{"dir":"in","msg":{"jsonrpc":"2.0","id":"qID","method":"elicitation/create","params":{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":"qID","result":{"action":"accept","content":{"name":"Ada"}}}}
`
	for _, rev := range mcp.Revisions() {
		s := mockOf(t, asked(`{"name":"ask"}`)+"\n"+question+answered("hello Ada"))
		var questions []string
		c := &mcp.Client{Name: "c", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			questions = append(questions, r.Message)
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}
		res, err := mcptest.Connect(t, s, c, rev).CallTool(t.Context(), "ask", nil)
		if rev < mcp.V2025_06_18 {
			if err == nil || !strings.Contains(err.Error(), "the recorded server asked here") {
				t.Errorf("%s: %v, %v; want a refusal", rev, res, err)
			}
			continue
		}
		if err != nil || res.Text() != "hello Ada" || !slices.Equal(questions, []string{"Your name?"}) {
			t.Errorf("%s: %v, %v after the questions %q", rev, res, err, questions)
		}
		// A client that cannot answer gets an error that says so.
		if _, err := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, rev).CallTool(t.Context(), "ask", nil); err == nil {
			t.Errorf("%s: a client that cannot be asked got an answer", rev)
		}
	}
}

// TestMockNotifies: notifications outside of requests go to subscribers after as many answers as
// in the recording.
func TestMockNotifies(t *testing.T) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			s := mockOf(t, call(`{"name":"a"}`, "x"),
				`{"dir":"in","msg":{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
{"dir":"in","msg":{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://r"}}}
{"dir":"in","msg":{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://other"}}}`,
				call(`{"name":"b"}`, "x"))
			session := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, rev)
			var got []string
			for e, err := range session.Watch(t.Context(), "test://r") {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.TrimPrefix(e.Method, "notifications/")+e.URI)
				if len(got) == 1 {
					if _, err := session.CallTool(t.Context(), "a", nil); err != nil {
						t.Fatal(err)
					}
				}
				if len(got) == 3 {
					break
				}
			}
			slices.Sort(got)
			want := []string{"resources/updatedtest://r", "subscriptions/acknowledged", "tools/list_changed"}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestMockDoesWithoutRoots: a server of an older revision asks for roots at any time, so a client
// without roots gets its answer.
func TestMockDoesWithoutRoots(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		s := mockOf(t, asked(`{"name":"a"}`)+`
{"dir":"in","msg":{"jsonrpc":"2.0","id":"qID","method":"roots/list"}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":"qID","result":{"roots":[]}}}
`+answered("x"))
		for _, roots := range []bool{false, true} {
			c := &mcp.Client{Name: "c"}
			calls := 0
			if roots {
				c.Roots = func(context.Context) ([]mcp.Root, error) { calls++; return nil, nil }
			}
			res, err := mcptest.Connect(t, s, c, rev).CallTool(t.Context(), "a", nil)
			if err != nil || res.Text() != "x" || roots && calls != 1 {
				t.Errorf("%s, with roots %v: %v, %v, asked %d times", rev, roots, res, err, calls)
			}
		}
	}
}
