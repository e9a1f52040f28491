package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
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

// Serve ends while OnStart, or a handler, still thinks about initialize.
func TestServeEndsWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &mcp.Server{Name: "s", OnStart: func(context.Context) error { <-release; return nil }}
		near, far := jsonrpc.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, far) }()
		p := &peer{t: t, conn: near}
		p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
		synctest.Wait()
		cancel()
		select {
		case <-served:
		case <-time.After(time.Minute):
			t.Error("Serve waits for OnStart")
		}
		close(release)
		near.Close()
	})
}

// OnStart is not called after OnShutdown.
func TestNothingStartsAfterShutdown(t *testing.T) {
	starts := 0
	s := &mcp.Server{
		Name:       "s",
		OnStart:    func(context.Context) error { starts++; return nil },
		OnShutdown: func(context.Context) error { return nil },
	}
	discover := &mcp.Request{Method: "server/discover"}
	if _, err := s.Handle(t.Context(), discover); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handle(t.Context(), discover); !errors.Is(err, mcp.ErrClosed) || starts != 1 {
		t.Errorf("Handle after Shutdown = %v, %d starts; want ErrClosed and 1", err, starts)
	}
}

// BASE-2503-001, CANC: a request of a batch can be cancelled by the frame after it.
func TestCancelInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		p := rawClient(t, w.Server)
		p.initializeOnly(mcp.V2025_03_26)
		p.send(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if cause := <-w.causes; cause == nil {
			t.Error("no cause")
		}
		frame, err := p.conn.Read(nil)
		if err != nil || !strings.HasPrefix(string(frame), `[{"jsonrpc":"2.0","id":2,`) {
			t.Errorf("got %s, %v; want the answer to 2 alone", frame, err)
		}
	})
}

// slowWire takes its time to say that the first frame was sent, though the peer has
// it already.
type slowWire struct {
	jsonrpc.Conn
	once  sync.Once
	first chan struct{}
}

func (w *slowWire) Write(frame []byte) error {
	err := w.Conn.Write(frame)
	w.once.Do(func() { <-w.first })
	return err
}

// BASE-26: an id may be used again as soon as its answer is there.
func TestIDIsFreeOnceAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := jsonrpc.Pipe()
		slow := &slowWire{Conn: far, first: make(chan struct{})}
		served := make(chan error, 1)
		go func() { served <- newWorkshop().Serve(t.Context(), slow) }()
		p := &peer{t: t, conn: near}
		for range 2 {
			p.send(modern(1, "server/discover", `{}`, ""))
			if m := p.answer(1); m.Error != nil {
				t.Errorf("got %s", show(&m))
			}
		}
		close(slow.first)
		near.Close()
		<-served
	})
}
