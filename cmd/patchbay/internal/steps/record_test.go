package steps

import (
	"io"
	"net/http"
	"strings"
	"testing"
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
