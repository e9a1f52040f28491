package sse_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/transport/sse"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// stub is a server whose stream is written by hand.
func stub(t testing.TB, stream func(w http.ResponseWriter, r *http.Request), post http.HandlerFunc) *httptest.Server {
	t.Helper()
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			post(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		stream(w, r)
	}))
	t.Cleanup(func() { hs.CloseClientConnections(); hs.Close() })
	return hs
}

// say writes a part of a stream.
func say(w http.ResponseWriter, format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

func stay(r *http.Request) { <-r.Context().Done() }

// TestDial: SSE-24-006, and servers with all kinds of answers.
func TestDial(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stream func(w http.ResponseWriter, r *http.Request)
		want   string // part of the error; empty: none
		post   string // URL for messages
	}{
		{"relative", func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: m?s=1\n\n"); stay(r) }, "", "/a/m?s=1"},
		{"absolute path", func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: /m?s=1\n\n"); stay(r) }, "", "/m?s=1"},
		{"URL", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: http://%s/m?s=1#f\n\n", strings.ToUpper(r.Host))
			stay(r)
		}, "", "/m?s=1"},
		{"CRLF, comments and other events first", func(w http.ResponseWriter, r *http.Request) {
			say(w, ": hello\r\n\r\nevent: ping\r\ndata: x\r\n\r\ndata: garbage\r\n\r\nevent: endpoint\r\ndata: m\r\n\r\n")
			stay(r)
		}, "", "/a/m"},
		{"redirect within the origin", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/a/sse" {
				http.Redirect(w, r, "/b/sse", http.StatusPermanentRedirect)
				return
			}
			say(w, "event: endpoint\ndata: m\n\n")
			stay(r)
		}, "", "/b/m"},
		{"other host", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: http://evil.example.com/m\n\n")
		}, `"http://evil.example.com/m" does not have the origin`, ""},
		{"other host, no scheme", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: //evil.example.com/m\n\n")
		}, "does not have the origin", ""},
		{"other scheme", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: https://%s/m\n\n", r.Host)
		}, "does not have the origin", ""},
		{"other port", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: http://127.0.0.1:1/m\n\n")
		}, "does not have the origin", ""},
		{"user", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: http://eve:pw@%s/m\n\n", r.Host)
		}, "does not have the origin", ""},
		{"script", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: javascript:alert(1)\n\n")
		}, "does not have the origin", ""},
		{"no URI", func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: %%zz\n\n") }, "is not a URI", ""},
		{"end", func(w http.ResponseWriter, r *http.Request) { say(w, "data: x\n\n") }, "ended before its endpoint event", ""},
		{"huge", func(w http.ResponseWriter, r *http.Request) {
			say(w, "event: endpoint\ndata: %s\n\n", strings.Repeat("x", 2000))
		}, "over the limit", ""},
		{"page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			say(w, "<html>")
		}, `"text/html"`, ""},
		{"redirect to another origin", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.example.com/sse", http.StatusPermanentRedirect)
		}, "308", ""},
		{"404", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, "404", ""},
		{"silence", func(w http.ResponseWriter, r *http.Request) { say(w, ":\n\n"); stay(r) }, "too late", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			posted := make(chan string, 1)
			hs := stub(t, tt.stream, func(w http.ResponseWriter, r *http.Request) {
				posted <- r.URL.RequestURI() + " " + r.Header.Get("X-Extra") + " " + r.Header.Get("Content-Type")
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if tt.want == "too late" {
				defer time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("too late")) }).Stop()
			}
			conn, err := sse.Dial(ctx, sse.ClientOptions{URL: hs.URL + "/a/sse", Header: http.Header{"x-extra": {"1"}}, MaxMessage: 1000})
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("Dial = %v, want %q", err, tt.want)
				}
				var he *engine.HTTPError
				if status := errors.As(err, &he); status != (tt.want == "404" || tt.want == "308") {
					t.Errorf("Dial = %#v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			cancel(nil) // bounds only the opening
			if err := conn.Write([]byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			if got, want := <-posted, tt.post+" 1 application/json"; got != want {
				t.Errorf("posted to %q, want %q", got, want)
			}
		})
	}
}

// TestClientReads: the client reads the events of a stream to its end.
func TestClientReads(t *testing.T) {
	big := strings.Repeat("x", 2000)
	for _, tt := range []struct{ name, stream, want string }{
		{"messages", "data: {}\n\nevent: message\ndata: []\n\nid: 1\ndata: a\ndata: b\n\n", "{} [] a\nb EOF"},
		{"other events", "event: endpoint\ndata: http://evil.example.com\n\nevent: x\ndata: y\n\n:\n\nfoo\n\n", "EOF"},
		{"too large", "data: a\n\ndata: " + big + "\n\ndata: b\n\n", "a frame b EOF"},
		{"cut off", "data: a\n\ndata: b\n", "a EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hs := stub(t, func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: m\n\n%s", tt.stream) }, nil)
			conn, err := sse.Dial(t.Context(), sse.ClientOptions{URL: hs.URL, MaxMessage: 1000})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var got []string
			for len(got) < 10 {
				frame, err := conn.Read(nil)
				var big *jsonrpc.FrameTooLargeError
				switch {
				case errors.As(err, &big):
					got = append(got, "frame")
					continue
				case err == io.EOF:
					got = append(got, "EOF")
				case err != nil:
					got = append(got, err.Error())
				default:
					got = append(got, string(frame))
					continue
				}
				break
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("read %q, want %q", got, tt.want)
			}
		})
	}
}

// A refused message does not end the session, unless the server does not know the session.
func TestRefusedMessage(t *testing.T) {
	status := http.StatusUnauthorized
	hs := stub(t, func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: m\n\n"); stay(r) },
		func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-5,"message":"no"}}`)
		})
	conn, err := sse.Dial(t.Context(), sse.ClientOptions{URL: hs.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, status = range []int{401, 400, 413, 500, 200} {
		var he *engine.HTTPError
		err := conn.Write([]byte(`{}`))
		if errors.As(err, &he) != (status != 200) || he != nil && (he.Status != status || he.RPC == nil || he.RPC.Code != -5) {
			t.Errorf("Write = %v, want HTTP %d", err, status)
		}
	}
	status = 404
	if err := conn.Write([]byte(`{}`)); err == nil || !strings.Contains(err.Error(), "connect again") {
		t.Errorf("Write = %v", err)
	}
	if _, err := conn.Read(nil); err == nil || !strings.Contains(err.Error(), "connect again") {
		t.Errorf("Read = %v, want why the session is over", err)
	}
}

// Close unblocks Read and Write if the server does nothing.
func TestClientClose(t *testing.T) {
	posted := make(chan struct{})
	hs := stub(t, func(w http.ResponseWriter, r *http.Request) { say(w, "event: endpoint\ndata: m\n\n"); stay(r) },
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			close(posted)
			stay(r)
		})
	conn, err := sse.Dial(t.Context(), sse.ClientOptions{URL: hs.URL})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 2)
	go func() { _, err := conn.Read(nil); errs <- err }()
	go func() { errs <- conn.Write([]byte(`{}`)) }()
	<-posted
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}
	for range 2 {
		if err := <-errs; err != jsonrpc.ErrClosed {
			t.Errorf("Read or Write = %v, want ErrClosed", err)
		}
	}
	if err := conn.Write(nil); err != jsonrpc.ErrClosed {
		t.Errorf("Write after Close = %v", err)
	}
	if _, err := conn.Read(nil); err != jsonrpc.ErrClosed {
		t.Errorf("Read after Close = %v", err)
	}
}
