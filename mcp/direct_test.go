package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Shutdown treats the calls of Client.Open and Server.Handle as those of a transport: it lets them
// finish, takes no new ones, ends subscriptions, and calls OnShutdown after the last.
func TestShutdownFinishesDirectCalls(t *testing.T) {
	for _, opened := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkshop()
			finished := false // set before the call may end
			w.OnShutdown = func(context.Context) error {
				if !finished {
					t.Error("OnShutdown is called with a call in progress")
				}
				return nil
			}
			s, err := (&mcp.Client{}).Open(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			watched, acknowledged := make(chan error, 1), make(chan struct{})
			go func() {
				for _, err := range s.Watch(t.Context()) {
					if err != nil {
						watched <- err
					} else {
						close(acknowledged)
					}
				}
			}()
			<-acknowledged
			answered := make(chan error, 1)
			go func() {
				if !opened {
					_, err := w.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"stuck"}`)})
					answered <- err
					return
				}
				_, err := s.CallTool(t.Context(), "stuck", nil)
				answered <- err
			}()
			<-w.started
			down := make(chan error, 1)
			go func() { down <- w.Shutdown(t.Context()) }()
			synctest.Wait()
			if err := <-watched; err == nil || !strings.Contains(err.Error(), "ended the subscription") {
				t.Errorf("Watch = %v, want that the server ended the subscription", err)
			}
			if _, err := s.CallTool(t.Context(), "stuck", nil); !errors.Is(err, mcp.ErrClosed) || !strings.Contains(err.Error(), "is shut down") {
				t.Errorf("a call during Shutdown = %v, want ErrClosed", err)
			}
			select {
			case err := <-down:
				t.Fatalf("Shutdown returned %v with a call in progress", err)
			case <-time.After(30 * time.Second):
			}
			finished = true
			close(w.release)
			if err := <-answered; err != nil {
				t.Errorf("the call in progress = %v", err)
			}
			if err := <-down; err != nil {
				t.Errorf("Shutdown = %v", err)
			}
			if s, err = (&mcp.Client{}).Open(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if _, err := s.CallTool(t.Context(), "stuck", nil); !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("a call after Shutdown = %v, want ErrClosed", err)
			}
			s.Close()
		})
	}
}

// The context of Shutdown cancels the calls of Client.Open, and bounds the wait for them.
func TestShutdownBoundsDirectCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		s, err := (&mcp.Client{}).Open(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"stuck", "wait"} {
			go func() { _, _ = s.CallTool(t.Context(), tool, nil) }()
			<-w.started
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err = w.Shutdown(ctx)
		if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d < 10*time.Second || d > 15*time.Second {
			t.Errorf("Shutdown = %v after %v, want that its time was up after 10 s and a little", err, d)
		}
		if cause := <-w.causes; cause == nil || !strings.Contains(cause.Error(), "shutting down") {
			t.Errorf("the handler's cause is %v", cause)
		}
		close(w.release)
		s.Close()
	})
}

// Close of a session of Client.Open ends the requests that it forwards, and refuses new ones.
func TestClosedSessionForwardsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		inner, err := (&mcp.Client{}).Open(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		outer, err := (&mcp.Client{}).Open(t.Context(), inner)
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		served, err := (&mcp.Client{}).Open(t.Context(), &mcp.Server{Name: "front", Handler: inner})
		if err != nil {
			t.Fatal(err)
		}
		defer served.Close()
		answered := make(chan error, 2)
		for _, s := range []*mcp.Session{outer, served} {
			go func() { _, err := s.CallTool(t.Context(), "wait", nil); answered <- err }()
			<-w.started
		}
		inner.Close()
		for range 2 {
			if cause := <-w.causes; !errors.Is(cause, mcp.ErrClosed) {
				t.Errorf("the cause of the call in progress is %v, want ErrClosed", cause)
			}
			<-answered
		}
		for _, s := range []*mcp.Session{inner, outer, served} {
			if _, err := s.CallTool(t.Context(), "wait", nil); !errors.Is(err, mcp.ErrClosed) {
				t.Errorf("a call after Close = %v, want ErrClosed", err)
			}
		}
		if _, err := inner.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Handle after Close = %v, want ErrClosed", err)
		}
	})
}
