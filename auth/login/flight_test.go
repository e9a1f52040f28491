package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server is a server of 2025-03-26 that is nowhere: a Base.
type server struct {
	good    string // the access token that it takes
	given   int    // tokens
	refused int    // requests
	forms   []url.Values
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	status, body := 404, ""
	switch req.URL.Path {
	case "/mcp":
		if status = 200; req.Header.Get("Authorization") != "Bearer "+s.good || s.good == "" {
			status = 401
			s.refused++
		}
	case "/register":
		status, body = 201, `{"client_id":"c"}`
	case "/token":
		raw, _ := io.ReadAll(req.Body)
		form, _ := url.ParseQuery(string(raw))
		s.forms = append(s.forms, form)
		s.given++
		s.good = fmt.Sprint("access-", s.given)
		status, body = 200, fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":100,"refresh_token":"refresh-%d"}`, s.good, s.given)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func (s *server) transport(visit func(ctx context.Context, page string) (*url.URL, error)) *Transport {
	return &Transport{Server: "https://mcp.example.com/mcp", RedirectURL: "http://127.0.0.1:9/callback", Visit: visit, Base: s}
}

// agree is a user who agrees.
func agree(_ context.Context, page string) (*url.URL, error) {
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	return url.Parse(u.Query().Get("redirect_uri") + "?code=x&state=" + u.Query().Get("state"))
}

func get(ctx context.Context, t *Transport) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Server, nil)
	if err != nil {
		return 0, err
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}

var errLeft = errors.New("left")

// A login is shared by all requests that wait: it ends when the last leaves, and its end does not
// fail requests that come then.
func TestAbandonedLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, visits := &server{}, 0
		var ended error
		unblock := make(chan struct{})
		tr := s.transport(func(ctx context.Context, page string) (*url.URL, error) {
			if visits++; visits > 1 {
				return agree(ctx, page)
			}
			<-ctx.Done()
			ended = context.Cause(ctx)
			<-unblock
			return nil, ended
		})
		results := make(chan error, 3)
		start := func() context.CancelCauseFunc {
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() { _, err := get(ctx, tr); results <- err }()
			synctest.Wait()
			return cancel
		}
		first, second := start(), start()
		first(errLeft)
		if err := <-results; !errors.Is(err, errLeft) {
			t.Errorf("error %v, want the reason of the caller", err)
		}
		if synctest.Wait(); ended != nil {
			t.Errorf("the login ended, %v, though one waits", ended)
		}
		second(errLeft)
		<-results
		if synctest.Wait(); !errors.Is(ended, errAbandoned) {
			t.Errorf("the login ended with %v, want %v", ended, errAbandoned)
		}
		third := start() // while the visit has not returned yet
		defer third(nil)
		close(unblock)
		if err := <-results; err != nil || visits != 2 {
			t.Errorf("error %v after %d visits, want none after 2", err, visits)
		}
	})
}

// A login that no one ends is over after 10 minutes.
func TestLoginIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := (&server{}).transport(func(ctx context.Context, _ string) (*url.URL, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		start := time.Now()
		_, err := get(t.Context(), tr)
		if err == nil || !strings.Contains(err.Error(), "no login within 10m") || time.Since(start) != loginTimeout {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

// Tokens are refreshed 10 seconds before they end, and not sooner.
func TestRefreshMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		tr := s.transport(agree)
		for _, step := range []struct {
			wait  time.Duration
			given int
		}{{0, 1}, {90 * time.Second, 1}, {time.Nanosecond, 2}, {time.Hour, 3}} {
			time.Sleep(step.wait)
			if status, err := get(t.Context(), tr); status != 200 || err != nil || s.given != step.given || s.refused != 1 {
				t.Errorf("after %v more: %d, %v; %d tokens, want %d; %d refusals, want the first alone", step.wait, status, err, s.given, step.given, s.refused)
			}
		}
		if f := s.forms[2]; f.Get("refresh_token") != "refresh-2" { // rotation
			t.Errorf("refreshed with %q, want the newest", f)
		}
	})
}

// A new token that is refused leads to another login after a minute, not before.
func TestFreshTokenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, visits := &server{}, 0
		tr := s.transport(func(ctx context.Context, page string) (*url.URL, error) { visits++; return agree(ctx, page) })
		tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/mcp" {
				s.good = ""
			}
			return s.RoundTrip(req)
		})
		for _, step := range []struct {
			wait   time.Duration
			visits int
		}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}} {
			time.Sleep(step.wait)
			if status, err := get(t.Context(), tr); status != 401 || err != nil || visits != step.visits {
				t.Errorf("after %v more: %d, %v; %d visits, want %d", step.wait, status, err, visits, step.visits)
			}
		}
	})
}
