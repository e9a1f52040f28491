package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

const good = `{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}}
{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"n":1}}}}
{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}
{"dir":"out","conn":"c","msg":{"jsonrpc":"2.0","id":7,"result":{"action":"accept","content":{}}}}
{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}}
{"dir":"in","conn":"c","msg":{"jsonrpc":"2.0","id":2,"result":{"content":[]}}}
`

// outlineOf summarizes a recording.
func outlineOf(r *Recording) string {
	var b strings.Builder
	for _, x := range r.Exchanges {
		fmt.Fprintf(&b, "%s %v", x.Label(), x.Done)
		for _, s := range x.Steps {
			if s.Note != nil {
				fmt.Fprintf(&b, " note %s", s.Note.Method)
			}
			for _, q := range s.Questions {
				fmt.Fprintf(&b, " asked %s=%s", q.Method, q.Answer)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestHostileRecordings: faults of a trace are reported, the rest is used, and nothing panics.
func TestHostileRecordings(t *testing.T) {
	lines := strings.SplitAfter(good, "\n")
	all := "tools/call a true asked elicitation/create={\"action\":\"accept\",\"content\":{}} note notifications/message\n"
	tests := []struct {
		name, trace string
		want        string // outline, or the error
		faults      int
	}{
		{"good", good, all, 0},
		{"garbage between", "oops\n" + strings.Join(lines[:3], "\x00\xff\n[]\n") + strings.Join(lines[3:], ""), all, 5},
		{"last line cut", good[:len(good)-20], strings.Replace(all, " true", " false", 1), 1},
		{"unknown members", strings.ReplaceAll(good, `"dir"`, `"later":{"version":9},"dir"`), all, 0},
		{"answer before its request", lines[6] + strings.Join(lines[:6], ""), strings.Replace(all, " true", " false", 1), 0},
		{"everything backwards", lines[6] + lines[5] + lines[4] + lines[3] + lines[2] + lines[1] + lines[0], "tools/call a false\n", 0},
		{"answered twice", good + lines[6], all, 0},
		{"no message", lines[2] + `{"dir":"in","conn":"c","msg":{"id":2}}` + "\n" + `{"dir":"in","conn":"c","msg":"hello"}`, "tools/call a false\n", 2},
		{"cut and lost", lines[2] + `{"dir":"in","conn":"c","lost":3,"cut":9,"raw":"{\"jsonrpc"}`, "tools/call a false\n", 2},
		{"refused without an id", `{"dir":"out","conn":"c","http":{"exchange":4,"method":"POST"},"msg":{"jsonrpc":"2.0","id":1,"method":"x"}}
{"dir":"out","conn":"c","http":{"exchange":5,"method":"POST"},"msg":{"jsonrpc":"2.0","id":2,"method":"y"}}
{"dir":"in","conn":"c","http":{"exchange":4,"status":400},"msg":{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}}`, "x true\ny false\n", 0},
		{"empty", "", "no request of a client is recorded in 0 frames", 0},
		{"server alone", lines[1] + lines[6], "no request of a client is recorded in 2 frames", 0},
		{"params of other kinds", `{"dir":"out","msg":{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"result":7}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":2,"method":"y","params":{"_meta":3,"name":4}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":[1],"requestState":{}}}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":3,"method":"y","params":{"_meta":3,"name":4,"inputResponses":5,"requestState":{}}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"m"}}}`, "x true\ny true\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rec, err := Read(strings.NewReader(tt.trace), "")
			if err != nil {
				if !strings.HasPrefix(err.Error(), tt.want) {
					t.Errorf("Read: %v, want %q", err, tt.want)
				}
				return
			}
			if got := outlineOf(rec); got != tt.want {
				t.Errorf("found\n%swant\n%s", got, tt.want)
			}
			if len(rec.Faults) != tt.faults {
				t.Errorf("faults %q, want %d", rec.Faults, tt.faults)
			}
		})
	}
}

// TestFaultsAreBounded: the faults reported for a file of garbage are bounded.
func TestFaultsAreBounded(t *testing.T) {
	rec, err := Read(strings.NewReader(strings.Repeat("x\n", 5000)+good), "")
	if err != nil || len(rec.Faults) > maxFaults+1 {
		t.Errorf("%d faults, %v; want at most %d", len(rec.Faults), err, maxFaults+1)
	}
}

// TestBothSidesOfAGateway: the clients' side is used, or the chosen one.
func TestBothSidesOfAGateway(t *testing.T) {
	request := func(dir, conn, name string) string {
		return `{"dir":"` + dir + `","conn":"` + conn + `","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}}` + "\n"
	}
	file := request("out", "up/stdio-1", "back") + request("in", "http-1", "front")
	for pattern, want := range map[string]string{"": "tools/call front false\n", "up/*": "tools/call back false\n", "*1": "tools/call front false\n"} {
		rec, err := Read(strings.NewReader(file), pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := outlineOf(rec); got != want {
			t.Errorf("pattern %q: found %q, want %q", pattern, got, want)
		}
	}
	if _, err := Read(strings.NewReader(file), "["); err == nil {
		t.Error("a bad pattern gave no error")
	}
}

// FuzzRead: an exchange that is done has one answer, params are always an object, and a mock of
// any recording answers or refuses.
func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.ReplaceAll(good, `"out"`, `"in"`)))
	f.Add([]byte(`{"dir":"out","msg":[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":3}}}]}
{"dir":"in","http":{"exchange":3,"status":200},"event":"1","msg":{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","inputResponses":{"k":{"roots":[]}},"requestState":"s"}}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t"}}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		rec, err := Read(bytes.NewReader(in), "")
		if err != nil {
			return
		}
		m := NewMock(rec)
		for _, x := range rec.Exchanges {
			if x.Done && (x.Error == nil) == (x.Result == nil) {
				t.Fatalf("%q: %s has result %s and error %v", in, x.Label(), x.Result, x.Error)
			}
			if jsonx.KindOf(x.Params) != '{' || !json.Valid(x.Params) {
				t.Fatalf("%q: %s has the params %s", in, x.Label(), x.Params)
			}
			_, err := m.Handle(t.Context(), &mcp.Request{Method: x.Method, Params: x.Params})
			if err != nil && x.Done && x.Error == nil && x.Method != "subscriptions/listen" {
				t.Fatalf("%q: the mock refuses %s: %v", in, x.Label(), err)
			}
		}
	})
}
