package gateway_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// TestFramesNameTheirCauseOnEveryWire: a tool opens a session with a server over each transport and
// calls it. The opening, the call with its question and progress, and the end of the connection name
// the request of the tool's caller; other frames of the connection name none.
func TestFramesNameTheirCauseOnEveryWire(t *testing.T) {
	serve := func(t *testing.T, h http.Handler, scheme string) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return scheme + strings.TrimPrefix(srv.URL, "http")
	}
	for name, dial := range map[string]func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error){
		"memory": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			near, far := jsonrpc.Pipe()
			go markedServer().Serve(context.WithoutCancel(ctx), far)
			return c.Connect(ctx, mcptest.Wire(near))
		},
		"stdio": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(context.WithoutCancel(ctx), self)
			cmd.Env = append(os.Environ(), childVar+"=marked")
			return c.Start(ctx, cmd)
		},
		"http": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			return c.Dial(ctx, serve(t, markedServer(), "http"))
		},
		"sse": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			return c.Dial(ctx, serve(t, markedServer().SSE("/messages"), "http"))
		},
		"websocket": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			return c.Dial(ctx, serve(t, markedServer().WebSocket(), "ws"))
		},
		"questions on the GET stream": func(t *testing.T, ctx context.Context, c *mcp.Client) (*mcp.Session, error) {
			return c.Dial(ctx, serve(t, newOldServer().handler(), "http"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var frames markedFrames
			s := &mcp.Server{Name: "front", Version: "1", OnFrame: frames.taker("front/")}
			var back *mcp.Session
			mcp.AddTool(s, mcp.Tool{Name: "open"}, func(ctx context.Context, in numbered) (_ string, err error) {
				c := (&person{}).client(mcp.V2025_11_25)
				c.OnFrame = frames.taker("up/")
				back, err = dial(t, ctx, c)
				return "", err
			})
			mcp.AddTool(s, mcp.Tool{Name: "call"}, func(ctx context.Context, in numbered) (string, error) {
				tool := "work"
				if strings.HasPrefix(name, "questions") {
					tool = "form"
				}
				return text(ctx, back, tool, in.Text), nil
			})
			caller := (&person{}).dial(t, s, "pipe", mcp.V2025_11_25, nil)
			if res, err := caller.CallTool(t.Context(), "open", numbered{"x"}); err != nil || res.IsError {
				t.Fatal(res, err)
			}
			const marked = "mark-1-1-ask"
			if got := text(t.Context(), caller, "call", marked); got != marked {
				t.Fatalf("the call says %q", got)
			}
			if _, err := back.ReadResource(context.Background(), "x:y"); err == nil { // for nobody
				t.Error("the server has a resource")
			}
			back.Close()
			var opened, called trace.Cause
			for _, f := range frames.all() {
				if !strings.HasPrefix(f.Conn, "front/") || f.Dir != trace.In || !bytes.Contains(f.Msg, []byte(`"tools/call"`)) {
					continue
				}
				m, err := jsonrpc.Decode(f.Msg, jsonrpc.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				cause := trace.Cause{Conn: strings.TrimPrefix(f.Conn, "front/"), ID: string(m.ID.AppendJSON(nil))}
				if bytes.Contains(f.Msg, []byte(marked)) {
					called = cause
				} else {
					opened = cause
				}
			}
			seen := map[string]int{}
			check := func(f trace.Frame, what string, want trace.Cause) {
				if seen[what]++; f.For != want {
					t.Errorf("%s is for %q, want %q: %s %s %s", what, f.For, want, f.Dir, f.Note, f.Msg)
				}
			}
			for _, f := range frames.all() {
				switch {
				case !strings.HasPrefix(f.Conn, "up/"):
				case f.Kind == trace.KindSession:
					check(f, "the session", opened)
				case f.Kind == trace.KindStart:
					check(f, "the start of the process", opened)
				case bytes.Contains(f.Msg, []byte(`"method":"initialize"`)) && f.Dir == trace.Out:
					check(f, "initialize", opened)
				case bytes.Contains(f.Msg, []byte(marked)):
					check(f, "a frame of the call", called)
				case bytes.Contains(f.Msg, []byte(`"resources/read"`)):
					check(f, "a frame for nobody", trace.Cause{})
				}
			}
			if (seen["the start of the process"] == 1) != (name == "stdio") {
				t.Errorf("%d starts of a process", seen["the start of the process"])
			}
			if seen["the session"] != 1 || seen["initialize"] == 0 || seen["a frame of the call"] < 4 || seen["a frame for nobody"] != 1 {
				t.Errorf("seen: %v", seen)
			}
		})
	}
}
