package mcp_test

import (
	"bufio"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A client that closes its side while it takes nothing more, with a subscription about
// to tell it something: Serve ends all the same.
func TestServeEndsWithADeafSubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddResource(s, mcp.Resource{URI: "test://x", Name: "x"}, func(context.Context) (string, error) { return "", nil })
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		conn := jsonrpc.NewLineConn(in, out, func() error { in.Close(); return out.Close() }, 0)
		served := make(chan error, 1)
		go func() { served <- s.Serve(t.Context(), conn) }()
		r := bufio.NewReader(fromServer)
		for _, frame := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://x"}}`,
		} {
			io.WriteString(toServer, frame+"\n")
			if _, err := r.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		s.ResourceUpdated("test://x")
		time.Sleep(time.Second) // it is being written now
		toServer.Close()
		start := time.Now()
		select {
		case err := <-served:
			if err != nil {
				t.Errorf("Serve = %v", err)
			}
		case <-time.After(time.Minute):
			t.Errorf("Serve goes on after %v", time.Since(start))
			fromServer.Close()
		}
	})
}
