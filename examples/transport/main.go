// Transport sends MCP over a custom transport: length-prefixed frames over TCP. It
// uses only public packages, and could be a module of its own.
//
//	go run ./examples/transport serve 127.0.0.1:7777 &
//	go run ./examples/transport greet 127.0.0.1:7777 Ada
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "transport:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "serve":
		ln, err := net.Listen("tcp", args[1])
		if err != nil {
			return err
		}
		return serve(ctx, newServer(), ln)
	case len(args) == 3 && args[0] == "greet":
		s, err := (&mcp.Client{Name: "greeter"}).Connect(ctx, dialer(args[1]))
		if err != nil {
			return err
		}
		defer s.Close()
		text, err := mcp.CallAs[string](ctx, s, "greet", map[string]string{"name": args[2]})
		if err != nil {
			return err
		}
		fmt.Println(text)
		return nil
	}
	return errors.New("usage: transport serve ADDRESS | transport greet ADDRESS NAME")
}

func newServer() *mcp.Server {
	type person struct {
		Name string `json:"name" doc:"name to greet"`
	}
	s := &mcp.Server{Name: "frames", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "greet", Description: "Says hello"},
		func(_ context.Context, in person) (string, error) { return "Hello " + in.Name + ".", nil })
	return s
}

// serve serves each connection of ln until ctx ends.
func serve(ctx context.Context, s *mcp.Server, ln net.Listener) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		c, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return s.Shutdown(context.WithoutCancel(ctx))
			}
			return err
		}
		go func() { // it ends with the connection, or with Shutdown
			if err := s.Serve(ctx, newFrames(c)); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "connection:", err)
			}
		}()
	}
}

// dialer is a mcp.Transport: the address of a server.
type dialer string

// Connect opens a connection.
func (d dialer) Connect(ctx context.Context) (jsonrpc.Conn, error) {
	var nd net.Dialer
	c, err := nd.DialContext(ctx, "tcp", string(d))
	if err != nil {
		return nil, err
	}
	return newFrames(c), nil
}
