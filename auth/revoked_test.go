package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// hold opens a request at a guard whose handler goes on until its context ends, and returns what
// is closed then.
func hold(g *auth.Guard, method, mcpMethod, authorization string) (ctx context.Context, cancel context.CancelFunc, over <-chan struct{}) {
	ctx, cancel = context.WithCancel(context.Background())
	r := httptest.NewRequestWithContext(ctx, method, "/mcp", nil)
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Mcp-Method", mcpMethod)
	done := make(chan struct{})
	let := make(chan context.Context, 1)
	go func() {
		defer close(done)
		w := httptest.NewRecorder()
		g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			let <- r.Context()
			<-r.Context().Done()
		})).ServeHTTP(w, r)
		if w.Code != 200 {
			let <- nil // it was refused
		}
	}()
	return <-let, cancel, done
}

func isOver(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Trap 4: a stream ends when its credential is revoked or has other rights, and goes on while the
// credential cannot be checked. A call goes on.
func TestStreamsEndWhenTheCredentialIsTakenBack(t *testing.T) {
	alice := auth.Principal{ID: "as#alice", Scopes: []string{"read"}, Roles: []string{"editor"}}
	changed := func(f func(*auth.Principal)) *auth.Principal {
		p := alice
		f(&p)
		return &p
	}
	for _, tt := range []struct {
		name, method, mcp string
		now               *auth.Principal
		err               error
		ends              bool
	}{
		{"nothing has changed", "GET", "", &alice, nil, false},
		{"the same in another place", "GET", "", changed(func(p *auth.Principal) { p.Name = "Alice" }), nil, false},
		{"taken back", "GET", "", nil, auth.ErrNoCredential, true},
		{"taken back, a subscription", "POST", "subscriptions/listen", nil, auth.ErrNoCredential, true},
		{"taken back, a call", "POST", "tools/call", nil, auth.ErrNoCredential, false},
		{"refused", "GET", "", nil, errors.New("no"), true},
		{"nobody can tell", "GET", "", nil, fmt.Errorf("%w: it is away", auth.ErrUnavailable), false},
		{"of somebody else", "GET", "", changed(func(p *auth.Principal) { p.ID = "as#bob" }), nil, true},
		{"fewer scopes", "GET", "", changed(func(p *auth.Principal) { p.Scopes = nil }), nil, true},
		{"other roles", "GET", "", changed(func(p *auth.Principal) { p.Roles = []string{"reader"} }), nil, true},
		{"expired", "GET", "", changed(func(p *auth.Principal) { p.Expires = time.Now().Add(-time.Hour) }), nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.now != nil && !tt.now.Expires.IsZero() {
					tt.now.Expires = time.Now() // of the bubble
				}
				var later atomic.Bool
				var body atomic.Bool // the verifier has seen one
				g := &auth.Guard{Verifiers: []auth.Verifier{verifyFunc(func(r *http.Request) (*auth.Principal, error) {
					if !later.Load() {
						return &alice, nil
					}
					if n, _ := io.Copy(io.Discard, r.Body); n > 0 {
						body.Store(true)
					}
					return tt.now, tt.err
				})}}
				_, cancel, over := hold(g, tt.method, tt.mcp, "Bearer x")
				defer func() { cancel(); <-over }()
				time.Sleep(time.Minute)
				if isOver(over) {
					t.Fatal("it ended while its credential was good")
				}
				later.Store(true)
				time.Sleep(time.Second)
				if got := isOver(over); got != tt.ends {
					t.Errorf("it has ended: %t, want %t", got, tt.ends)
				}
				time.Sleep(time.Minute)
				if got := isOver(over); got != tt.ends {
					t.Errorf("after a minute, it has ended: %t, want %t", got, tt.ends)
				}
				if body.Load() {
					t.Error("a verifier was given the body, which the handler reads")
				}
			})
		})
	}
}

// A file that an editor empties before it writes it takes nothing from anybody.
func TestFileThatIsBeingWritten(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	write := func(s string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file, []byte(s), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		write(string(line), time.Now())
		known := &auth.APIKeys{File: file}
		good := func() bool {
			r := httptest.NewRequest("POST", "/mcp", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			_, err := known.Verify(r)
			return err == nil
		}
		if !good() {
			t.Fatal("the key is not known")
		}
		time.Sleep(2 * time.Second)
		write("", time.Now())
		for range 3 {
			if !good() {
				t.Error("a key is refused while its file is written")
			}
			time.Sleep(50 * time.Millisecond)
		}
		write(string(line)+"\n", time.Now())
		time.Sleep(2 * time.Second)
		if !good() {
			t.Error("the key is refused after its file was written")
		}
		write("", time.Now())
		time.Sleep(150 * time.Millisecond)
		for range 10 { // written again and again: it is read all the same
			write("", time.Now())
			good()
			time.Sleep(300 * time.Millisecond)
		}
		if good() {
			t.Error("the key is known after it was taken out")
		}
	})
}

// Trap 4: a stream ends within two seconds after its key, or its user, has left the file; the log
// says so. Those of others go on.
func TestStreamsEndWithTheEntryInTheFile(t *testing.T) {
	key, entry := auth.NewAPIKey("alice")
	other, kept := auth.NewAPIKey("bob")
	lineOf := func(k auth.APIKey) string {
		line, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n"
	}
	reduced := entry
	reduced.Scopes = []string{"read"}
	password := func(p string) string {
		h, err := auth.HashPassword(p)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	alice, bob := "alice:"+password("a")+"\n", "bob:"+password("b")+"\n"
	for _, tt := range []struct {
		name, before, after string
		gone, stays         string // Authorization
		verifier            func(file string) auth.Verifier
	}{
		{"key taken out", lineOf(entry) + lineOf(kept), lineOf(kept), "Bearer " + key, "Bearer " + other, func(f string) auth.Verifier { return &auth.APIKeys{File: f} }},
		{"key with other scopes", lineOf(entry) + lineOf(kept), lineOf(reduced) + lineOf(kept), "Bearer " + key, "Bearer " + other, func(f string) auth.Verifier { return &auth.APIKeys{File: f} }},
		{"user taken out", alice + bob, bob, "Basic YWxpY2U6YQ==", "Basic Ym9iOmI=", func(f string) auth.Verifier { return &auth.Basic{File: f} }},
		{"key taken out, and lines with faults", lineOf(entry) + lineOf(kept), "{\"id\":\n" + lineOf(kept) + "x", "Bearer " + key, "Bearer " + other, func(f string) auth.Verifier { return &auth.APIKeys{File: f} }},
		{"key twice", lineOf(entry) + lineOf(kept), lineOf(entry) + lineOf(entry) + lineOf(kept), "Bearer " + key, "Bearer " + other, func(f string) auth.Verifier { return &auth.APIKeys{File: f} }},
		{"user taken out, and lines with faults", alice + bob, "carol:x\n" + bob + "dave", "Basic YWxpY2U6YQ==", "Basic Ym9iOmI=", func(f string) auth.Verifier { return &auth.Basic{File: f} }},
		{"user twice", alice + bob, alice + alice + bob, "Basic YWxpY2U6YQ==", "Basic Ym9iOmI=", func(f string) auth.Verifier { return &auth.Basic{File: f} }},
		{"another password", alice + bob, "alice:" + password("other") + " \n" + bob, "Basic YWxpY2U6YQ==", "Basic Ym9iOmI=", func(f string) auth.Verifier { return &auth.Basic{File: f} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "entries")
			write := func(s string) {
				if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(tt.before)
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				g := &auth.Guard{Verifiers: []auth.Verifier{tt.verifier(file)}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
				_, cancel, over := hold(g, "GET", "", tt.gone)
				_, cancelOther, otherOver := hold(g, "GET", "", tt.stays)
				defer func() { cancel(); cancelOther(); <-over; <-otherOver }()
				time.Sleep(10 * time.Second)
				if isOver(over) || isOver(otherOver) {
					t.Fatal("a stream ended while its credential was good")
				}
				write(tt.after)
				time.Sleep(2 * time.Second)
				if !isOver(over) || isOver(otherOver) {
					t.Errorf("the stream has ended: %t, want true; that of another: %t, want false", isOver(over), isOver(otherOver))
				}
				if !strings.Contains(log.String(), "stream ended with its credential") {
					t.Errorf("the log says %q", &log)
				}
			})
		})
	}
}

// Trap 4: the streams of every wire over HTTP end when the credential is taken back.
func TestStreamsOfEveryWireEndWhenTheCredentialIsTakenBack(t *testing.T) {
	srv := &mcp.Server{Name: "guarded", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ nothing) (string, error) { return auth.From(ctx).ID, nil })
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	mux.Handle("/ws", srv.WebSocket())
	mux.Handle("/sse", srv.SSE("/messages"))
	var gone atomic.Bool
	g := &auth.Guard{Verifiers: []auth.Verifier{verifyFunc(func(*http.Request) (*auth.Principal, error) {
		if gone.Load() {
			return nil, auth.ErrNoCredential
		}
		return &auth.Principal{ID: "as#alice"}, nil
	})}}
	web := httptest.NewServer(g.Protect(mux))
	defer web.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
	}()
	open := func(method, path, body string, header ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer x")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if res.StatusCode != 200 {
			t.Fatalf("%s %s: %s", method, path, res.Status)
		}
		return res
	}
	id := open("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	streams := map[string]*http.Response{
		"GET":    open("GET", "/mcp", "", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"),
		"listen": open("POST", "/mcp", listenBody, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"),
		"sse":    open("GET", "/sse", ""),
	}
	s, err := (&mcp.Client{Name: "test", Header: http.Header{"Authorization": {"Bearer x"}}}).Dial(t.Context(), "ws"+strings.TrimPrefix(web.URL, "http")+"/ws")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "whoami", nothing{}); err != nil {
		t.Fatal(err)
	}
	gone.Store(true)
	limit := time.AfterFunc(30*time.Second, func() { web.CloseClientConnections(); t.Error("streams go on without their credential") })
	defer limit.Stop()
	for _, res := range streams {
		io.Copy(io.Discard, res.Body)
	}
	select {
	case <-s.Done():
	case <-time.After(30 * time.Second):
		t.Error("the WebSocket goes on without its credential")
	}
}

const listenBody = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
	`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}`
