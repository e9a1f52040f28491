package stdio

import (
	"errors"
	"os"
	"sync"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

var (
	servingMu sync.Mutex
	serving   bool // guarded by servingMu
)

// Own returns the connection over this process's standard streams and reserves them: os.Stdout is
// os.Stderr until restore is called. The streams can be served once at a time.
func Own(maxFrame int) (conn jsonrpc.Conn, restore func(), err error) {
	servingMu.Lock()
	defer servingMu.Unlock()
	if serving {
		return nil, nil, errors.New("the standard streams are being served already")
	}
	serving = true
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	catchPipe()
	conn = jsonrpc.NewLineConn(in, out, nil, maxFrame)
	return conn, func() {
		servingMu.Lock()
		defer servingMu.Unlock()
		os.Stdout = out
		serving = false
	}, nil
}
