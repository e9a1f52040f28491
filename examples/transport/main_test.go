package main

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A transport from outside the SDK carries every revision, in both directions.
func TestEveryRevision(t *testing.T) {
	mcptest.LeakCheck(t)
	ctx, stop := context.WithCancel(t.Context())
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer()
	mcp.AddTool(s, mcp.Tool{Name: "whose"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 1, "")
		roots, err := mcp.Roots(ctx)
		if err != nil {
			return "", err
		}
		return roots[0].Name, nil
	})
	served := make(chan error, 1)
	go func() { served <- serve(ctx, s, ln) }()
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{rev}, Roots: func(context.Context) ([]mcp.Root, error) {
				return []mcp.Root{{URI: "file:///x", Name: "x"}}, nil
			}}
			near, err := c.Connect(t.Context(), dialer(ln.Addr().String()))
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			if near.Revision() != rev {
				t.Errorf("revision = %s", near.Revision())
			}
			steps := 0
			res, err := near.CallTool(t.Context(), "whose", nil, mcp.OnProgress(func(float64, float64, string) { steps++ }))
			if err != nil || res.Text() != "x" || steps == 0 {
				t.Errorf("whose = %v, %v; %d steps", res, err, steps)
			}
			big := strings.Repeat("x", 1<<20)
			if got, err := mcp.CallAs[string](t.Context(), near, "greet", map[string]string{"name": big}); err != nil || len(got) < len(big) {
				t.Errorf("greet = %d bytes, %v", len(got), err)
			}
		})
	}
	if err := run(t.Context(), []string{"greet", ln.Addr().String(), "Ada"}); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestFrames(t *testing.T) {
	a, b := net.Pipe()
	near, far := newFrames(a), newFrames(b)
	go func() {
		a.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1))
		for range 1<<10 + 1 {
			if _, err := a.Write(make([]byte, 1<<14)); err != nil {
				return
			}
		}
	}()
	var large *jsonrpc.FrameTooLargeError
	if _, err := far.Read(nil); !errors.As(err, &large) {
		t.Errorf("a frame over the bound: %v", err)
	}
	near.Close()
	if _, err := near.Read(nil); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Read after Close = %v", err)
	}
	if err := near.Write([]byte("x")); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Write after Close = %v", err)
	}
	if err := near.Close(); err != nil {
		t.Errorf("Close again = %v", err)
	}
}
