package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// recording is that of a gateway with two clients: refund of shop reached the server, drop was refused, and look failed.
const recording = `{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"claude","version":"1"}}}}
{"dir":"out","conn":"shop/stdio-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
{"dir":"in","conn":"shop/stdio-1","msg":{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"look","annotations":{"readOnlyHint":true}},{"name":"refund"},{"name":"drop"}]}}}
{"dir":"in","conn":"http-1","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop_refund","arguments":{"amount":500}}}}
{"dir":"out","conn":"shop/stdio-1","for":{"conn":"http-1","id":1},"msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"refund","arguments":{"amount":500}}}}
{"dir":"in","conn":"shop/stdio-1","for":{"conn":"http-1","id":1},"msg":{"jsonrpc":"2.0","id":2,"result":{"content":[]}}}
{"dir":"out","conn":"http-1","msg":{"jsonrpc":"2.0","id":1,"result":{"content":[]}}}
{"dir":"in","conn":"http-2","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shop_drop","arguments":{"password":"[redacted]"}}}}
{"dir":"out","conn":"http-2","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no tool \"shop_drop\""}}}
{"dir":"in","conn":"http-2","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shop_look","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"vscode","version":"2"}}}}}
{"dir":"out","conn":"http-2","msg":{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no tool \"shop_look\""}}}
{"dir":"in","conn":"http-2","msg":{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"local_time"}}}
{"dir":"out","conn":"http-2","msg":{"jsonrpc":"2.0","id":3,"result":{"content":[]}}}
`

func parse(t *testing.T, text string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Each recorded call is decided by its name at its server, with its arguments, the hints of servers that are trusted, and
// its client; those for which the recording shows the contrary differ.
func TestReplay(t *testing.T) {
	set := parse(t, `default: deny
rules:
  - name: look
    when: server == "shop" && annotations.readOnlyHint && client.name == "vscode"
    effect: allow
  - name: small
    when: name == "refund" && arguments.amount <= 100
    effect: allow
`)
	words := func(recording string, p *verdict.Replay) string {
		t.Helper()
		p.Owners = func(servers []string) (func(string) (string, string), error) {
			return func(name string) (string, string) {
				server, own, _ := strings.Cut(name, "_")
				if !slices.Contains(servers, server) {
					return "", ""
				}
				return server, own
			}, nil
		}
		got, err := p.Run(t.Context(), strings.NewReader(recording+"no frame\n"))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range got.Calls {
			out = append(out, fmt.Sprintf("%d %s/%s %v %v %v %s %q", c.Line, c.Server, c.Tool, c.Reached, c.Allowed, c.Differs, c.Rule, c.Error))
		}
		if got.Redacted != 1 || len(got.Faults) != 1 || got.Allowed+got.Refused != 4 {
			t.Errorf("%+v", got)
		}
		return strings.Join(out, "\n")
	}
	want := `4 shop/refund true false true default ""
8 shop/drop false false false default "no tool \"shop_drop\""
10 shop/look false true true look "no tool \"shop_look\""
12 /local_time true false true default ""`
	// The second connection to a server has a number.
	again := strings.Replace(recording, `{"dir":"out","conn":"shop/stdio-1","for"`, `{"dir":"out","conn":"shop#2/stdio-1","for"`, 1)
	for _, recording := range []string{recording, again} {
		if got := words(recording, &verdict.Replay{Set: set, Trusted: []string{"shop"}}); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if got := words(recording, &verdict.Replay{Set: set}); !strings.Contains(got, `10 shop/look false false false default`) {
		t.Errorf("the hints of a server that is not trusted count: %s", got)
	}
}

// The recording of one client has the server that the flags name, and all its calls were sent.
func TestReplayOfClient(t *testing.T) {
	set := parse(t, "rules:\n  - name: shop\n    when: server == \"shop\"\n    effect: allow\n")
	p := &verdict.Replay{Set: set, Server: "shop"}
	got, err := p.Run(t.Context(), strings.NewReader(`{"dir":"out","conn":"stdio-1","msg":[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"refund"}},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"drop"}}]}`))
	if err != nil || len(got.Calls) != 2 || got.Allowed != 2 || got.Differ != 0 || !strings.Contains(got.Summary(), "2 calls: 2 allowed, 0 refused; 0 differ") {
		t.Errorf("%+v, %v", got, err)
	}
}

// A file that is not a recording is an error, or has no calls, and nothing ends the program.
func TestReplayOfNothing(t *testing.T) {
	p := &verdict.Replay{Set: parse(t, "rules: []\n")}
	for text, want := range map[string]string{"": "the recording is empty", "hello\n": "trace line 1"} {
		if _, err := p.Run(t.Context(), strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{`{"dir":"in","msg":null}`, `{"dir":"in","msg":{"method":"tools/call","params":[]}}`, `{"dir":"in","msg":[1,2]}`, `{"dir":"in","conn":"/","msg":{"id":1,"method":"tools/call","params":{"name":7}}}`} {
		if _, err := p.Run(t.Context(), strings.NewReader(text+"\n")); err != nil {
			t.Logf("%s: %v", text, err)
		}
	}
}
