package trace_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/trace"
)

func ExampleWriter() {
	w := trace.NewWriter(os.Stdout, &trace.WriterOptions{OmitTime: true})
	w.Record(trace.Frame{
		Dir:  trace.In,
		Msg:  []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"hunter2"}}}`),
		HTTP: &trace.HTTP{Method: "POST", Path: "/mcp", Headers: map[string][]string{"Authorization": {"Bearer abc"}}},
	})
	w.Record(trace.Frame{Dir: trace.Out, Raw: []byte("Listening on :8080")})
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"dir":"in","http":{"method":"POST","path":"/mcp","headers":{"Authorization":["[redacted]"]}},"msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"[redacted]"}}}}
	// {"dir":"out","raw":"Listening on :8080"}
}

func ExampleRead() {
	const file = `{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}
oops
{"dir":"out","msg":{"jsonrpc":"2.0","id":1,"result":{}}}
`
	for frame, err := range trace.Read(strings.NewReader(file)) {
		if err != nil {
			fmt.Println("bad line")
			continue
		}
		fmt.Println(frame.Dir, string(frame.Msg))
	}
	// Output:
	// in {"jsonrpc":"2.0","id":1,"method":"ping"}
	// bad line
	// out {"jsonrpc":"2.0","id":1,"result":{}}
}

func ExampleNormalise() {
	frames := []trace.Frame{
		{Dir: trace.Out, Conn: "a93f", Msg: []byte(`{"id":7712,"method":"ping"}`)},
		{Dir: trace.In, Conn: "a93f", Msg: []byte(`{"id":7712,"result":{}}`)},
	}
	for _, f := range trace.Normalise(frames, &trace.NormaliseOptions{IDs: true}) {
		fmt.Println(string(f.Append(nil)))
	}
	// Output:
	// {"dir":"out","conn":"conn-1","msg":{"id":1,"method":"ping"}}
	// {"dir":"in","conn":"conn-1","msg":{"id":1,"result":{}}}
}
