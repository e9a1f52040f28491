package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The time-out of a call starts again with progress, and stands still while a question
// is being answered. Each call has one, and may say its length (INIT-24-001, INIT-25-017,
// -019, CANC-26-004, -006).
func TestIdleTimeout(t *testing.T) {
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		synctest.Test(t, func(t *testing.T) {
			s := one(func(ctx context.Context, in text) (string, error) {
				switch in.Text {
				case "progress":
					for i := range 10 {
						time.Sleep(50 * time.Second)
						mcp.Progress(ctx, float64(i), 10, "")
					}
				case "question":
					c, err := mcp.Elicit[color](ctx, "Which?")
					return c.Color, err
				case "silence":
					<-ctx.Done()
					return "", ctx.Err()
				}
				return in.Text, nil
			})
			c := nothing()
			c.OnElicit = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(10 * time.Minute) // longer than the silence allowed, shorter than StateConfig.TTL
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"color": "red"}}, nil
			}
			session := mcptest.Connect(t, s, c, rev)
			for arg, want := range map[string]string{"progress": "progress", "question": "red"} {
				if got, err := mcp.CallAs[string](t.Context(), session, "ask", text{arg}); err != nil || got != want {
					t.Errorf("%s = %q, %v", arg, got, err)
				}
			}
			for d, opts := range map[time.Duration][]mcp.CallOption{time.Minute: nil, 5 * time.Second: {mcp.IdleTimeout(5 * time.Second)}} {
				start := time.Now()
				_, err := session.CallTool(t.Context(), "ask", text{"silence"}, opts...)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != d {
					t.Errorf("silence = %v after %v, want a time-out after %v", err, time.Since(start), d)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			start := time.Now()
			if _, err := session.CallTool(ctx, "ask", text{"silence"}, mcp.IdleTimeout(-1)); err == nil || time.Since(start) != time.Hour {
				t.Errorf("silence without a bound = %v after %v", err, time.Since(start))
			}
		})
	})
}

// BASE-26, MRTR-26: results of the modern era that make no sense are errors.
func TestForeignResults(t *testing.T) {
	tests := []struct {
		name, method, result, want string
	}{
		{"an unknown type", "tools/call", `{"resultType":"surprise","content":[]}`, "surprise"},
		{"a type that is no string", "tools/call", `{"resultType":7,"content":[]}`, "resultType"},
		{"input for a list", "tools/list", `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`, "input"},
		{"input of nothing", "tools/call", `{"resultType":"input_required"}`, "neither"},
		{"input that is none", "tools/call", `{"resultType":"input_required","inputRequests":{"a":{}}}`, "no method"},
		{"input that was not declared", "tools/call", `{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"x"}`, "roots/list"},
		{"an unknown question", "tools/call", `{"resultType":"input_required","inputRequests":{"a":{"method":"ask/anything"}}}`, "ask/anything"},
		{"a result that is not an object", "tools/call", `[1]`, "not an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.LeakCheck(t)
			s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
				if m.Method == "server/discover" {
					return result(m, discovered)
				}
				return result(m, tt.result)
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Raw(t.Context(), tt.method, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	// BASE-26-011
	t.Run("no type is complete", func(t *testing.T) {
		s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			if m.Method == "server/discover" {
				return result(m, discovered)
			}
			return result(m, `{"content":[{"type":"new","x":1}],"more":true}`)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		res, err := s.CallTool(t.Context(), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if raw, ok := res.Content[0].(mcp.RawContent); !ok || string(raw) != `{"type":"new","x":1}` {
			t.Errorf("content %#v", res.Content)
		}
	})
}

// Load shedding: a state without questions means to come again later.
func TestComeAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			if m.Method == "server/discover" {
				return result(m, discovered)
			}
			state, _ := m.Param("requestState")
			if calls++; calls < 4 {
				return result(m, `{"resultType":"input_required","requestState":"later"}`)
			}
			return result(m, `{"resultType":"complete","content":[{"type":"text","text":`+string(state)+`}]}`)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		if got, err := mcp.CallAs[string](t.Context(), s, "x", nil); err != nil || got != "later" || calls != 4 {
			t.Errorf("got %q, %v after %d calls", got, err, calls)
		}
		if time.Since(start) == 0 {
			t.Error("the client did not wait between the calls")
		}
	})
}

// A duplicated, delayed or lost frame, and a wire that breaks, end in an answer or an
// error, never in a hang.
func TestFaultyWire(t *testing.T) {
	for name, fault := range map[string]mcptest.Fault{
		"drop":      {Frame: 3, Do: mcptest.Drop},
		"delay":     {Do: mcptest.Delay, Wait: 10 * time.Second},
		"duplicate": {Do: mcptest.Duplicate},
		"garbage":   {Do: mcptest.Garbage},
		"truncate":  {Frame: 3, Do: mcptest.Truncate},
		"close":     {Frame: 3, Do: mcptest.Close},
	} {
		for _, side := range []string{"client", "server"} {
			t.Run(name+" of the "+side, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					near, far := jsonrpc.Pipe()
					if side == "client" {
						near = mcptest.Faults(near, fault)
					} else {
						far = mcptest.Faults(far, fault)
					}
					w := newWorkshop()
					done := make(chan struct{})
					go func() { defer close(done); w.Serve(t.Context(), far) }()
					c := nothing()
					c.Revisions = []mcp.Revision{mcp.V2025_11_25}
					s, err := c.Connect(t.Context(), mcptest.Wire(near))
					if err != nil {
						t.Fatal(err)
					}
					failed := 0
					for range 4 {
						res, err := s.CallTool(t.Context(), "echo", text{"x"})
						if err != nil {
							failed++
						} else if res.Text() != "x" {
							t.Errorf("echo = %q", res.Text())
						}
					}
					most := map[string]int{"drop": 1, "truncate": 1, "close": 4}[name]
					if name == "duplicate" && side == "client" {
						most = 4 // an id that is in progress is refused, and that answer may come first
					}
					if failed > most {
						t.Errorf("%d of 4 calls failed, want at most %d", failed, most)
					}
					s.Close()
					<-done
				})
			})
		}
	}
}

// A Session says why it is over.
func TestSessionErr(t *testing.T) {
	mcptest.LeakCheck(t)
	mcptest.Every(t, library, nothing, func(t *testing.T, s *mcp.Session) {
		if err := s.Err(); err != nil {
			t.Errorf("Err of an open session = %v", err)
		}
		s.Close()
		<-s.Done()
		if err := s.Err(); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Err = %v, want ErrClosed", err)
		}
		if _, err := s.CallTool(t.Context(), "x", nil); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a call after Close = %v, want ErrClosed", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("a second Close = %v", err)
		}
	})
}

// ServerInfo is the same, however the session was opened.
func TestServerInfoEverywhere(t *testing.T) {
	newServer := func() *mcp.Server {
		s := library()
		s.Title, s.Instructions = "The library", "Read more."
		return s
	}
	mcptest.Every(t, newServer, nothing, func(t *testing.T, s *mcp.Session) {
		info := s.Server()
		if info.Name != "library" || info.Version != "1" || info.Instructions != "Read more." {
			t.Errorf("info %+v", info)
		}
		if info.Title != "The library" && s.Revision() >= mcp.V2025_06_18 {
			t.Errorf("title %q", info.Title)
		}
		for _, c := range []string{"resources", "prompts", "logging"} {
			if !info.Capabilities.Has(c) {
				t.Errorf("no capability %s in %s", c, info.Capabilities)
			}
		}
		if !info.Capabilities.Has("resources", "subscribe") || info.Capabilities.Has("tools") {
			t.Errorf("capabilities %s", info.Capabilities)
		}
		if s.Revision() < mcp.V2026_07_28 { // which lacks ping
			if raw, err := s.Raw(t.Context(), "ping", nil); err != nil || string(raw) != "{}" {
				t.Errorf("ping = %s, %v", raw, err)
			}
		}
		raw, err := s.Raw(t.Context(), "resources/list", nil)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil || members["resultType"] != nil || members["_meta"] != nil {
			t.Errorf("Raw shows what belongs to the wire: %.100s", raw)
		}
	})
}
