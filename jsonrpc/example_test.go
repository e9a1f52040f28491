package jsonrpc_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A peer that answers one method, over lines.
func Example() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"hello","params":{"name":"Ada"}}
{"jsonrpc":"2.0","id":"b","method":"goodbye"}
{"jsonrpc":"2.0","id":3}
`)
	conn := jsonrpc.NewLineConn(in, os.Stdout, func() error { return nil }, 0)
	defer conn.Close()
	var frame, out []byte
	for {
		var err error
		if frame, err = conn.Read(frame); err == io.EOF {
			return
		} else if err != nil {
			fmt.Println(err)
			return
		}
		m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
		var bad *jsonrpc.DecodeError
		switch {
		case errors.As(err, &bad):
			out = jsonrpc.AppendError(out[:0], bad.ID, bad.Err)
		case m.Method == "hello":
			name, _ := m.Param("name")
			out = jsonrpc.AppendResult(out[:0], m.ID, name)
		default:
			out = jsonrpc.AppendError(out[:0], m.ID, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method"})
		}
		if err := conn.Write(out); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":"Ada"}
	// {"jsonrpc":"2.0","id":"b","error":{"code":-32601,"message":"no such method"}}
	// {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"message has no method, result or error"}}
}

func ExampleDecode() {
	m, err := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call",
		"params":{"name":"add","_meta":{"progressToken":5}}}`), jsonrpc.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, _ := m.ParamIn("_meta", "progressToken")
	fmt.Println(m.Kind(), m.ID, m.Method, string(token))

	_, err = jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}`), jsonrpc.Limits{})
	fmt.Println(err)
	// Output:
	// request 9007199254740993 tools/call 5
	// member "Method" must be written "method"
}

func ExampleDecodeBatch() {
	batch, err := jsonrpc.DecodeBatch([]byte(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":2}]`), jsonrpc.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range batch {
		if e.Err != nil {
			fmt.Println(e.Err.ID, e.Err)
		} else {
			fmt.Println(e.Message.ID, e.Message.Method)
		}
	}
	// Output:
	// 1 ping
	// 2 jsonrpc is missing, want "2.0"
}

func ExamplePipe() {
	a, b := jsonrpc.Pipe()
	defer a.Close()
	if err := a.Write(jsonrpc.AppendNotification(nil, "notifications/initialized", nil)); err != nil {
		fmt.Println(err)
	}
	frame, err := b.Read(nil)
	fmt.Println(string(frame), err)
	// Output: {"jsonrpc":"2.0","method":"notifications/initialized"} <nil>
}
