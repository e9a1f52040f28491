package mcp_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// statusWriter is what logging middleware has in half of all tutorials.
type statusWriter struct {
	inner  http.ResponseWriter
	status int
}

func (w *statusWriter) Header() http.Header         { return w.inner.Header() }
func (w *statusWriter) Write(b []byte) (int, error) { return w.inner.Write(b) }
func (w *statusWriter) WriteHeader(status int)      { w.status = status; w.inner.WriteHeader(status) }

// openWriter is the same with the cure.
type openWriter struct{ statusWriter }

func (w *openWriter) Unwrap() http.ResponseWriter { return w.inner }

// zipWriter compresses, and lets go of what it has when it is told to.
type zipWriter struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (w *zipWriter) WriteHeader(status int) {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(status)
}
func (w *zipWriter) Write(b []byte) (int, error) { return w.zip.Write(b) }
func (w *zipWriter) Flush()                      { w.zip.Flush(); _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Middleware that keeps what is written until the handler returns made questions hang
// (trap 18). They fail now with the cure, which the log has once; calls that need no
// stream work.
func TestBehindAMiddleware(t *testing.T) {
	mcptest.LeakCheck(t)
	plain := func(next http.Handler) http.Handler { return next }
	half := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&statusWriter{inner: w}, r) })
	}
	open := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&openWriter{statusWriter{inner: w}}, r)
		})
	}
	zipped := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				next.ServeHTTP(w, r)
				return
			}
			z := &zipWriter{w, gzip.NewWriter(w)}
			next.ServeHTTP(z, r)
			if w.Header().Get("Content-Encoding") != "" {
				z.zip.Close()
			}
		})
	}
	for _, tt := range []struct {
		name  string
		front func(http.Handler) http.Handler
		by    string // Go type that buffers; empty: none does
	}{
		{"nothing", plain, ""},
		{"a logger with Unwrap", open, ""},
		{"a compressor with Flush", zipped, ""},
		{"a logger without Unwrap", half, "*mcp_test.statusWriter"},
		{"a logger with Unwrap around one without", func(next http.Handler) http.Handler { return half(open(next)) }, "*mcp_test.statusWriter"},
		{"a time limit", func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Minute, "too slow") }, "*http.timeoutWriter"},
	} {
		for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(tt.name+"/"+string(rev), func(t *testing.T) {
				var log lockedBuffer
				s := one(func(ctx context.Context, in text) (string, error) {
					mcp.Progress(ctx, 1, 2, "half")
					if in.Text != "question" {
						return in.Text, nil
					}
					c, err := mcp.Elicit[color](ctx, "Which?")
					return c.Color, err
				})
				s.Logger = slog.New(slog.NewTextHandler(&log, nil))
				web := httptest.NewServer(tt.front(s))
				defer web.Close()
				c := nothing()
				c.Revisions = []mcp.Revision{rev}
				c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
				}
				session, err := c.Dial(t.Context(), web.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				for range 2 {
					if got, err := mcp.CallAs[string](t.Context(), session, "ask", text{"echo"}); err != nil || got != "echo" {
						t.Errorf("a call without a question = %q, %v", got, err)
					}
				}
				res, err := session.CallTool(t.Context(), "ask", text{"question"})
				switch streams := tt.by == "" || rev == mcp.V2026_07_28; {
				case err != nil:
					t.Error(err)
				case streams && (res.IsError || res.Text() != "red"):
					t.Errorf("the question = %+v", res)
				case !streams && (!res.IsError || !strings.Contains(res.Text(), tt.by) || !strings.Contains(res.Text(), "Unwrap() http.ResponseWriter")):
					t.Errorf("the question = %+v, want an error that names %s and the cure", res, tt.by)
				}
				lines := strings.Count(log.String(), "level=WARN")
				if want := min(len(tt.by), 1); lines != want || want == 1 && !strings.Contains(log.String(), tt.by) {
					t.Errorf("the log has %d warnings, want %d:\n%s", lines, want, log.String())
				}
			})
		}
	}
}

// Requests whose answer can only be a stream are refused with the cure: GET streams with the 405 of
// servers that have none, subscriptions of 2026-07-28, HTTP+SSE and WebSocket.
func TestStreamsBehindAMiddleware(t *testing.T) {
	var log lockedBuffer
	s := one(func(context.Context, text) (string, error) { return "", nil })
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	front := func(h http.Handler) string {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&statusWriter{inner: w}, r) }))
		t.Cleanup(web.Close)
		return web.URL
	}
	here := front(s)
	do := func(method, url, body string, header ...string) (*http.Response, string) {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("no answer"))
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		defer res.Body.Close()
		raw, _ := io.ReadAll(res.Body)
		return res, string(raw)
	}
	opened, _ := do("POST", here, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	for _, tt := range []struct {
		name, method, url, body string
		header                  []string
		status                  int
	}{
		{"GET", "GET", here, "", []string{"Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}, 405},
		{"listen", "POST", here, modern(1, "subscriptions/listen", `{}`, `"notifications":{"toolsListChanged":true}`), []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"}, 500},
		{"SSE", "GET", front(s.SSE("/m")), "", nil, 500},
		{"WebSocket", "GET", front(s.WebSocket()), "", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol", "mcp"}, 501},
	} {
		res, body := do(tt.method, tt.url, tt.body, tt.header...)
		if res.StatusCode != tt.status || !strings.Contains(body, "Unwrap() http.ResponseWriter") {
			t.Errorf("%s = %d %s, want %d and the cure", tt.name, res.StatusCode, body, tt.status)
		}
	}
	for _, want := range []string{"clients before 2026-07-28", "no client of 2024-11-05", "no WebSocket can"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log does not say %q once:\n%s", want, log.String())
		}
	}
}
