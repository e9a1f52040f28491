package login_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth/login"
)

// ask gets a URL as a browser with a Host header of its own.
func ask(t *testing.T, target, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// Only the answer to the login that waits ends the wait, and it may wait again.
func TestLoopback(t *testing.T) {
	var l *login.Loopback
	opened := func(_ context.Context, page string) error {
		u, err := url.Parse(page)
		if err != nil {
			return err
		}
		go func() {
			back, state := l.RedirectURL(), u.Query().Get("state")
			for _, wrong := range []struct{ url, host string }{
				{back + "?code=x&state=other", ""},
				{back + "?code=x", ""},
				{strings.Replace(back, "callback", "favicon.ico", 1) + "?state=" + state, ""},
				{back + "?code=x&state=" + state, "evil.example.com"},
			} {
				if status, _ := ask(t, wrong.url, wrong.host); status != 400 {
					t.Errorf("GET %s of %q = %d, want 400", wrong.url, wrong.host, status)
				}
			}
			if status, text := ask(t, back+"?code=c%20d&state="+state, ""); status != 200 || !strings.Contains(text, "close this page") {
				t.Errorf("the answer is %d %q", status, text)
			}
		}()
		return nil
	}
	l, err := login.NewLoopback(opened)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(l.RedirectURL()); err != nil || u.Hostname() != "127.0.0.1" || u.Port() == "" {
		t.Errorf("RedirectURL() = %q", l.RedirectURL())
	}
	for _, state := range []string{"one", "two"} {
		back, err := l.Visit(t.Context(), "https://login.example.com/?state="+state)
		if err != nil || back.Query().Get("code") != "c d" || back.Query().Get("state") != state {
			t.Fatalf("Visit = %v, %v", back, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(l.RedirectURL()); err == nil {
		t.Error("it listens after Close")
	}
}

// A visit ends with its context, with Close, and with a page that cannot be opened.
func TestLoopbackEnds(t *testing.T) {
	var l *login.Loopback
	var open func() error
	l, err := login.NewLoopback(func(context.Context, string) error { return open() })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open = func() error { return errNo }
	if _, err := l.Visit(t.Context(), "https://login.example.com/?state=x"); !errors.Is(err, errNo) {
		t.Errorf("error %v, want that of the program", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	open = func() error { cancel(errNo); return nil }
	if _, err := l.Visit(ctx, "https://login.example.com/?state=x"); !errors.Is(err, errNo) {
		t.Errorf("error %v, want that of the context", err)
	}
	open = l.Close
	if _, err := l.Visit(t.Context(), "https://login.example.com/?state=x"); err == nil {
		t.Error("the visit survives Close")
	}
}
