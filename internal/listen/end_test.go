package listen

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// End waits for a call in progress, which gets its answer.
func TestEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	called, finish := make(chan struct{}), make(chan struct{})
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "slow"}, func(context.Context, struct{}) (string, error) {
		close(called)
		<-finish
		return "done", nil
	})
	key, entry := auth.NewAPIKey("alice")
	e := New(srv, l, Options{Log: slog.New(slog.DiscardHandler), Guard: &auth.Guard{Verifiers: []auth.Verifier{&auth.APIKeys{Keys: []auth.APIKey{entry}}}}})
	served := e.Serve()
	s, err := (&mcp.Client{Header: http.Header{"Authorization": {"Bearer " + key}}}).Dial(t.Context(), e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answered := make(chan error, 1)
	go func() { _, err := s.CallTool(t.Context(), "slow", nil); answered <- err }()
	<-called
	ended := make(chan error, 1)
	go func() { ended <- e.End(t.Context(), time.Minute) }()
	select {
	case err := <-ended:
		t.Errorf("End = %v during a call", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	if err := <-answered; err != nil {
		t.Errorf("the call in progress = %v", err)
	}
	s.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := <-ended; err != nil {
		t.Errorf("End = %v", err)
	}
	<-served
}
