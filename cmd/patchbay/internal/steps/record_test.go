package steps

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A login has at most 64 steps and 64 kB of a message, and who reads an answer still gets all of it.
func TestBounds(t *testing.T) {
	l := &Log{Server: "https://mcp.example/mcp"}
	long := strings.Repeat("x", 3*maxBytes)
	send := l.Around(roundTripper(func(req *http.Request) (*http.Response, error) {
		if got, err := io.ReadAll(req.Body); err != nil || string(got) != long {
			t.Fatalf("%d bytes were sent, error %v", len(got), err)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(long))}, nil
	}))
	for range maxSteps + 6 {
		req, err := http.NewRequest(http.MethodGet, "https://as.example/.well-known/openid-configuration?key=planted", strings.NewReader(long))
		if err != nil {
			t.Fatal(err)
		}
		res, err := send.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != long {
			t.Fatalf("%d bytes were received, error %v", len(got), err)
		}
	}
	list, _ := l.Steps(true)
	if len(list) != maxSteps+1 || list[maxSteps].Sent != "6 exchanges after the first 64 were not recorded" {
		t.Errorf("%d steps, the last one %+v", len(list), list[len(list)-1])
	}
	for _, s := range list {
		if len(s.Sent)+len(s.Got) > maxBytes+1000 || strings.Contains(s.Sent, "planted") {
			t.Fatalf("a step has %d and %d bytes: %.200s", len(s.Sent), len(s.Got), s.Sent)
		}
	}
}

// An answer that is a stream of events is not waited for, however the server writes its type.
func TestStreamIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, end := io.Pipe() // nothing comes
		l := &Log{Server: "https://mcp.example/mcp"}
		send := l.Around(roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"Text/Event-Stream; charset=utf-8"}}, Body: body}, nil
		}))
		req, err := http.NewRequest(http.MethodPost, "https://mcp.example/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Minute, func() { end.Close() })
		began := time.Now()
		if _, err := send.RoundTrip(req); err != nil || time.Since(began) > 0 {
			t.Errorf("the answer came after %v, error %v", time.Since(began), err)
		}
		list, _ := l.Steps(true)
		if got := list[0].Got; !strings.Contains(got, "(a stream of events, which is not shown)") {
			t.Errorf("the step shows %q", got)
		}
	})
}
