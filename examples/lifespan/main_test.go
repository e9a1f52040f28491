package main

import (
	"bytes"
	"log"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// lines is a log that goroutines write and a test reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Notes outlive the server, and each revision with sessions has one.
func TestLifespan(t *testing.T) {
	var logged lines
	log.SetOutput(&logged)
	file, kept := filepath.Join(t.TempDir(), "notes.db"), 0
	for _, rev := range mcp.Revisions() {
		srv := newServer(file)
		s := mcptest.Connect(t, srv, &mcp.Client{Name: string(rev)}, rev)
		for range 2 {
			kept++
			if got, err := mcp.CallAs[int](t.Context(), s, "note", Note{"milk"}); err != nil || got != kept {
				t.Errorf("%s: note %d is number %d, %v", rev, kept, got, err)
			}
		}
		s.Close()
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Errorf("%s: Shutdown: %v", rev, err)
		}
	}
	logged.mu.Lock()
	defer logged.mu.Unlock()
	if got := logged.text.String(); strings.Count(got, " session of 20") != 4+strings.Count(got, "end of the session of 20") || strings.Contains(got, "2026-07-28") {
		t.Errorf("the log:\n%s", got)
	}
}

// A database that cannot be opened fails requests with the reason.
func TestNoDatabase(t *testing.T) {
	s, err := new(mcp.Client).Open(t.Context(), newServer(filepath.Join(t.TempDir(), "none", "notes.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "note", Note{"milk"}); err == nil || !strings.Contains(err.Error(), "unable to open database file") {
		t.Errorf("a call = %v", err)
	}
}
