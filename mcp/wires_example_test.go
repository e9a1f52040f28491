package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// One server on every wire that has an address; a client finds out by itself what is
// behind a URL.
func ExampleServer_SSE() {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add"}, add)

	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	mux.Handle("/ws", srv.WebSocket())
	old := srv.SSE("/messages") // for clients of 2024-11-05
	mux.Handle("/sse", old)
	mux.Handle("/messages", old)
	hs := httptest.NewServer(mux)
	defer hs.Close()
	defer srv.Shutdown(context.Background())

	client := &mcp.Client{Name: "desk"}
	for _, url := range []string{hs.URL + "/mcp", hs.URL + "/sse", strings.Replace(hs.URL, "http", "ws", 1) + "/ws"} {
		s, err := client.Dial(context.Background(), url)
		if err != nil {
			log.Fatal(err)
		}
		sum, err := mcp.CallAs[float64](context.Background(), s, "add", Sum{1, 2})
		fmt.Println(s.Revision(), sum, err)
		s.Close()
	}
	// Output:
	// 2026-07-28 3 <nil>
	// 2025-11-25 3 <nil>
	// 2026-07-28 3 <nil>
}

// A Unix socket, or TCP on loopback, with one message a line.
func ExampleServer_ServeListener() {
	srv := &mcp.Server{Name: "calc", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "add"}, add)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	over := make(chan error)
	go func() { over <- srv.ServeListener(context.Background(), l) }()

	client := &mcp.Client{Name: "desk"}
	s, err := client.Dial(context.Background(), "tcp://"+l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	sum, err := mcp.CallAs[float64](context.Background(), s, "add", Sum{1, 2})
	fmt.Println(sum, err)
	s.Close()

	srv.Shutdown(context.Background())
	fmt.Println(<-over)
	// Output:
	// 3 <nil>
	// mcp: closed
}
