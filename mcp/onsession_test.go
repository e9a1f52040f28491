package mcp_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// OnSession is called for each session before 2026-07-28, before the first call in it, and its
// context ends with the session.
func TestOnSession(t *testing.T) {
	type told struct {
		client  string
		rev     mcp.Revision
		session context.Context
	}
	var mu sync.Mutex
	var sessions []told
	newServer := func() *mcp.Server {
		mu.Lock()
		sessions = nil
		mu.Unlock()
		srv := &mcp.Server{Name: "s", Version: "1", OnSession: func(session context.Context) {
			call := mcp.CallFrom(session)
			mu.Lock()
			defer mu.Unlock()
			sessions = append(sessions, told{call.Client.Name, call.Revision, call.Session()})
		}}
		mcp.AddTool(srv, mcp.Tool{Name: "same"}, func(ctx context.Context, _ struct{}) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(sessions) == 1 && sessions[0].session == mcp.CallFrom(ctx).Session(), nil
		})
		return srv
	}
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }, func(t *testing.T, s *mcp.Session) {
		same, err := mcp.CallAs[bool](t.Context(), s, "same", nil)
		mu.Lock()
		all := sessions
		mu.Unlock()
		if !s.Revision().Sessions() {
			if len(all) > 0 {
				t.Errorf("told of %+v", all)
			}
			return
		}
		if err != nil || !same || len(all) != 1 || all[0].client != "c" || all[0].rev != s.Revision() {
			t.Fatalf("told of %+v; the session of the call is that one: %v, %v", all, same, err)
		}
		s.Close()
		select {
		case <-all[0].session.Done():
		case <-time.After(time.Minute):
			t.Error("the session goes on for OnSession")
		}
	})
}

// A session cannot be asked while OnSession runs, nor notified after its end, on any transport. Both
// fail at once.
func TestOnSessionAsks(t *testing.T) {
	type told struct {
		session context.Context
		header  bool
		asked   error
		took    time.Duration
	}
	sessions := make(chan told, 10)
	newServer := func() *mcp.Server {
		srv := &mcp.Server{Name: "s", Version: "1", OnSession: func(session context.Context) {
			began := time.Now()
			_, err := mcp.Roots(session)
			sessions <- told{session, mcp.CallFrom(session).Header != nil, err, time.Since(began)}
		}}
		mcp.AddTool(srv, mcp.Tool{Name: "roots"}, func(ctx context.Context, _ struct{}) (int, error) {
			roots, err := mcp.Roots(ctx)
			return len(roots), err
		})
		return srv
	}
	client := func() *mcp.Client {
		return &mcp.Client{Name: "c", Version: "1", Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///r"}}, nil }}
	}
	mcptest.Every(t, newServer, client, func(t *testing.T, s *mcp.Session) {
		if !s.Revision().Sessions() {
			return
		}
		if n, err := mcp.CallAs[int](t.Context(), s, "roots", nil); err != nil || n != 1 {
			t.Errorf("roots in a call = %d, %v", n, err)
		}
		told := <-sessions
		if told.header || told.took > 20*time.Second || told.asked == nil || !strings.Contains(told.asked.Error(), "OnSession") {
			t.Errorf("in OnSession: a header %v, Roots = %v after %v; want an error that names OnSession, at once", told.header, told.asked, told.took)
		}
		s.Close()
		select {
		case <-told.session.Done():
		case <-time.After(time.Minute):
			t.Fatal("the session goes on")
		}
		if err := forward.Notify(told.session, "notifications/x", nil); err == nil || !strings.Contains(err.Error(), "the session has ended") {
			t.Errorf("Notify after the end = %v", err)
		}
	})
}

// A panic of OnSession fails nothing else.
func TestOnSessionPanics(t *testing.T) {
	srv := &mcp.Server{Name: "s", Version: "1", OnSession: func(context.Context) { panic("no") }, OnPanic: func(context.Context, any, []byte) {}}
	mcp.AddTool(srv, mcp.Tool{Name: "t"}, func(context.Context, struct{}) (string, error) { return "", nil })
	s := mcptest.Connect(t, srv, &mcp.Client{Name: "c"}, mcp.V2025_11_25)
	for _, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
}
