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
	readyz := func(origin string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/readyz", nil)
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
		return res.Status + " " + string(body)
	}
	const ready, ending = "200 OK {\"state\":\"ready\"}\n", "503 Service Unavailable {\"state\":\"ending\"}\n"
	if got := readyz(""); got != ready {
		t.Errorf("/readyz = %s", got)
	}
	if got := readyz("https://evil.example"); !strings.HasPrefix(got, "403 ") {
		t.Errorf("/readyz for another origin = %s", got)
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
	for got := readyz(""); got != ending; got = readyz("") {
		if got != ready {
			t.Fatalf("/readyz while the server ends = %s", got)
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
