package listen

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Requests for the health of a server need no credential and tell only its state. The server is not
// ready while a call in progress delays its end.
func TestHealth(t *testing.T) {
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
	e.HandleHealth()
	served := e.Serve()
	base := strings.TrimSuffix(e.URL, Path)
	get := func(method, path, origin string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	for _, tt := range []struct {
		method, path, origin string
		status               int
		body                 string
	}{
		{"GET", "/healthz", "", 200, "{\"state\":\"alive\"}\n"},
		{"GET", "/readyz", "", 200, "{\"state\":\"ready\"}\n"},
		{"HEAD", "/readyz", "", 200, ""},
		{"POST", "/readyz", "", 405, "/readyz is read with GET\n"},
		{"GET", "/readyz", "https://evil.example", 403, "evil.example"},
	} {
		if status, body := get(tt.method, tt.path, tt.origin); status != tt.status || !strings.Contains(body, tt.body) || status == 200 && body != tt.body {
			t.Errorf("%s %s from %q = %d %q, want %d %q", tt.method, tt.path, tt.origin, status, body, tt.status, tt.body)
		}
	}
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
	for {
		status, body := get("GET", "/readyz", "")
		if status == 503 && body == "{\"state\":\"ending\"}\n" {
			break
		}
		if status != 200 {
			t.Fatalf("/readyz while the server ends = %d %q", status, body)
		}
		time.Sleep(time.Millisecond)
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

// A call that is canceled because the time for the end is over is still answered.
func TestEndAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan struct{})
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "slow"}, func(ctx context.Context, _ struct{}) (string, error) {
		close(called)
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	e := New(srv, l, Options{Log: slog.New(slog.DiscardHandler)})
	e.Serve()
	s, err := new(mcp.Client).Dial(t.Context(), e.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if res, err := s.CallTool(t.Context(), "slow", nil); err != nil || !res.IsError || !strings.Contains(res.Text(), "shutting down") {
			t.Errorf("the call = %v, %v", res, err)
		}
	}()
	<-called
	if err := e.End(t.Context(), 50*time.Millisecond); err != nil {
		t.Errorf("End = %v", err)
	}
	<-answered
}
