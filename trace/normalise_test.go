package trace_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/trace"
)

func frames(t *testing.T, text string) []trace.Frame {
	t.Helper()
	var out []trace.Frame
	for f, err := range trace.Read(strings.NewReader(text)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func TestNormalise(t *testing.T) {
	in := frames(t, `
{"dir":"in","time":"2026-07-28T09:30:00Z","conn":"127.0.0.1:4711","http":{"method":"POST","path":"/m?sessionId=abc","headers":{"Mcp-Session-Id":["abc"],"Date":["today"],"Content-Length":["9"],"Host":["127.0.0.1:4711"]}},"msg":{"id":77,"method":"tools/call","params":{"_meta":{"progressToken":"p9"}}}}
{"dir":"out","msg":{"method":"notifications/progress","params":{"progressToken":"p9","progress":1}}}
{"dir":"out","conn":"127.0.0.1:4711","msg":{"id":"77","method":"sampling/createMessage"}}
{"dir":"in","conn":"127.0.0.1:4711","msg":{"id":"77","result":{"id":5,"at":"2026-07-28T09:30:00.5Z"}}}
{"dir":"in","conn":"127.0.0.1:4711","msg":{"method":"notifications/cancelled","params":{"requestId":77}}}
{"dir":"out","conn":"127.0.0.1:4711","msg":{"id":77,"result":{"requestState":"xyz","taskId":"T","nonce":"n"}}}
{"dir":"in","conn":"other","http":{"headers":{"Mcp-Name":["T"]}},"msg":{"id":78,"params":{"requestState":"xyz","taskId":"T"},"method":"tasks/get"}}
{"dir":"out","conn":"other","msg":{"method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":78}}}}
`)
	want := frames(t, `
{"dir":"in","conn":"conn-1","http":{"method":"POST","path":"/m?sessionId=session-1","headers":{"Mcp-Session-Id":["session-1"],"Host":["127.0.0.1:PORT"]}},"msg":{"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"id-1"}}}}
{"dir":"out","msg":{"method":"notifications/progress","params":{"progressToken":"id-1","progress":1}}}
{"dir":"out","conn":"conn-1","msg":{"id":"id-1","method":"sampling/createMessage"}}
{"dir":"in","conn":"conn-1","msg":{"id":"id-1","result":{"id":5,"at":"2000-01-01T00:00:00Z"}}}
{"dir":"in","conn":"conn-1","msg":{"method":"notifications/cancelled","params":{"requestId":1}}}
{"dir":"out","conn":"conn-1","msg":{"id":1,"result":{"requestState":"state-1","taskId":"task-1","nonce":"nonce-1"}}}
{"dir":"in","conn":"conn-2","http":{"headers":{"Mcp-Name":["task-1"]}},"msg":{"id":1,"params":{"requestState":"state-1","taskId":"task-1"},"method":"tasks/get"}}
{"dir":"out","conn":"conn-2","msg":{"method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}}
`)
	before := lines(in)
	got := trace.Normalise(in, &trace.NormaliseOptions{IDs: true, Names: map[string]string{"nonce": "nonce"}})
	if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
		t.Errorf("Normalise (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, lines(in)); diff != "" {
		t.Errorf("Normalise changed its input (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(lines(want), lines(trace.Normalise(got, &trace.NormaliseOptions{IDs: true}))); diff != "" {
		t.Errorf("Normalise of the normalised (-want +got):\n%s", diff)
	}
}

func TestNormaliseKeepsIDsUnlessAsked(t *testing.T) {
	in := frames(t, `{"dir":"in","msg":{"id":77,"method":"ping","params":{"_meta":{"progressToken":9}}}}`)
	if diff := cmp.Diff(lines(in), lines(trace.Normalise(in, nil))); diff != "" {
		t.Errorf("Normalise (-want +got):\n%s", diff)
	}
}

func lines(frames []trace.Frame) []string {
	var out []string
	for _, f := range frames {
		out = append(out, string(f.Append(nil)))
	}
	return out
}

// Normalise is idempotent, and messages keep their shape.
func FuzzNormalise(f *testing.F) {
	f.Add([]byte(`{"dir":"in","conn":"a","http":{"path":"/m?sessionId=abc","headers":{"Mcp-Session-Id":["abc"]}},"msg":{"id":77,"method":"x","params":{"requestState":"s","_meta":{"progressToken":"p"}}}}
{"dir":"out","conn":"a","event":"e9","msg":[{"id":77,"result":{"at":"2026-07-28T09:30:00.5Z","taskId":"t"}}]}`))
	f.Add([]byte(`{"dir":"in","msg":{"id":"id-2","method":"a"}}
{"dir":"in","msg":{"id":1,"method":"b"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var frames []trace.Frame
		for frame, err := range trace.Read(bytes.NewReader(in)) {
			if err == nil {
				frames = append(frames, frame)
			}
		}
		opts := &trace.NormaliseOptions{IDs: true}
		once := trace.Normalise(frames, opts)
		if diff := cmp.Diff(lines(once), lines(trace.Normalise(once, opts))); diff != "" {
			t.Fatalf("%q normalised again (-once +twice):\n%s", in, diff)
		}
		for i, frame := range frames {
			var before, after any
			if json.Unmarshal(frame.Msg, &before) != nil || !utf8.Valid(frame.Msg) {
				continue
			}
			if err := json.Unmarshal(once[i].Msg, &after); err != nil {
				t.Fatalf("%q normalised to %q: %v", frame.Msg, once[i].Msg, err)
			}
			if diff := cmp.Diff(shape(before), shape(after)); diff != "" {
				t.Fatalf("%q normalised to %q (-before +after):\n%s", frame.Msg, once[i].Msg, diff)
			}
		}
	})
}
