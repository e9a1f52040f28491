package record_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/trace"
	"github.com/patchbay-dev/patchbay/trace/record"
)

func Example() {
	dir, err := os.MkdirTemp("", "frames")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder, err := record.Open(dir, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	folder.Record(trace.Frame{Dir: trace.In, Conn: "http-1", Msg: []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)})
	if err := folder.Close(); err != nil {
		fmt.Println(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	f, err := os.Open(files[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	for frame, err := range trace.Read(f) {
		fmt.Println(frame.Conn, string(frame.Msg), err)
	}
	// Output: http-1 {"jsonrpc":"2.0","id":1,"method":"ping"} <nil>
}
