package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// Log messages of a call of 2026-07-28 come on the stream of its answer and on no other:
// not of another call, not of a subscription (LOG-26-005).
func TestLogStaysWithItsCall(t *testing.T) {
	var both sync.WaitGroup // both calls are in progress
	both.Add(2)
	s := library()
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, in text) (string, error) {
		both.Done()
		both.Wait()
		mcp.Log(ctx).Error("log of " + in.Text)
		return "done", nil
	})
	srv := httptest.NewServer(s)
	defer srv.Close()
	start := func(ctx context.Context, frame string) io.ReadCloser {
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, strings.NewReader(frame))
		if err != nil {
			t.Fatal(err)
		}
		method := "tools/call"
		if strings.Contains(frame, "subscriptions/listen") {
			method = "subscriptions/listen"
		} else {
			req.Header.Set("Mcp-Name", "ask")
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} {
			req.Header.Set(k, v)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Error(err)
			return http.NoBody
		}
		return res.Body
	}
	logged := func(id int64, method, more string) string {
		return strings.Replace(modern(id, method, `{}`, more), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"debug",`, 1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listen := start(ctx, logged(1, "subscriptions/listen", listenTo))
	defer listen.Close()
	bodies := make(chan string, 2)
	for i, frame := range []string{
		logged(2, "tools/call", `"name":"ask","arguments":{"text":"first"}`),
		modern(3, "tools/call", `{}`, `"name":"ask","arguments":{"text":"second"}`),
	} {
		go func() {
			r := start(ctx, frame)
			defer r.Close()
			b, err := io.ReadAll(r)
			if err != nil {
				t.Error(err)
			}
			bodies <- fmt.Sprint(i, string(b))
		}()
	}
	for range 2 {
		body := <-bodies
		if first := body[0] == '0'; strings.Contains(body, "log of first") != first || strings.Contains(body, "log of second") {
			t.Errorf("call %s", body)
		}
	}
	s.ResourceUpdated("lib:text")
	lines := bufio.NewScanner(listen)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "log of") {
			t.Errorf("the subscription has %s", lines.Text())
		}
		if strings.Contains(lines.Text(), updated) {
			return
		}
	}
	t.Errorf("the subscription ended: %v", lines.Err())
}

// An invalid level is refused, in _meta (LOG-26-006) and in logging/setLevel (LOG-25-001); a level
// that was set passes its own messages and those above it (LOG-25-002).
func TestLogLevels(t *testing.T) {
	levels := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, level.Notice, slog.LevelWarn, slog.LevelError, level.Critical, level.Alert, level.Emergency} {
			mcp.Log(ctx).Log(ctx, l, "x")
		}
		return "", nil
	})
	legacy, now := rawClient(t, s), rawClient(t, s)
	legacy.initialize(mcp.V2025_11_25, `{}`)
	for i, level := range []string{`"verbose"`, `"Info"`, `""`, `3`, `null`, `{}`} {
		id := int64(i + 1)
		legacy.sendf(`{"jsonrpc":"2.0","id":%d,"method":"logging/setLevel","params":{"level":%s}}`, id, level)
		wantError(t, legacy.answer(id), jsonrpc.CodeInvalidParams)
		now.send(strings.Replace(modern(id, "tools/call", `{}`, `"name":"ask"`), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":`+level+`,`, 1))
		wantError(t, now.answer(id), jsonrpc.CodeInvalidParams)
	}
	for i, level := range levels {
		id := int64(100 + 2*i)
		legacy.notes, now.notes = nil, nil
		legacy.sendf(`{"jsonrpc":"2.0","id":%d,"method":"logging/setLevel","params":{"level":%q}}`, id, level)
		legacy.answer(id)
		legacy.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask"}}`, id+1)
		legacy.answer(id + 1)
		now.send(strings.Replace(modern(id, "tools/call", `{}`, `"name":"ask"`), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":`+quote(level)+`,`, 1))
		now.answer(id)
		if want := len(levels) - i; len(legacy.notes) != want || len(now.notes) != want {
			t.Errorf("at %s came %d and %d messages, want %d", level, len(legacy.notes), len(now.notes), want)
		}
	}
}
