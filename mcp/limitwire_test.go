package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Limits of calls, against servers written by hand (F2).

// handmade opens a session with a server of one revision that does with requests what answer does;
// the opening is answered already.
func handmade(t *testing.T, c *mcp.Client, rev mcp.Revision, capabilities string, answer func(m *jsonrpc.Message, id string, send func(format string, args ...any))) *mcp.Session {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	send := func(format string, args ...any) { far.Write(fmt.Appendf(nil, format, args...)) }
	go func() {
		defer close(done)
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil {
				t.Errorf("server got %s: %v", frame, err)
				return
			}
			m = m.Clone()
			id := string(m.ID.AppendJSON(nil))
			switch method := m.Method; {
			case method == "server/discover":
				send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":%s}}`, id, capabilities)
			case method == "initialize":
				send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"raw","version":"1"}}}`, id, rev, capabilities)
			case method == "subscriptions/listen" && !strings.Contains(capabilities, "subscribe"):
				send(acknowledge, id)
			default:
				answer(&m, id, send)
			}
		}
	}()
	c.Revisions = []mcp.Revision{rev}
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); far.Close(); <-done })
	return s
}

const acknowledge = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"resourceSubscriptions":["x://heard"]}}}`

const done = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":%q}]}}`

// The answer to a call that was given up is dropped, and the next call gets its own.
func TestLateAnswers(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			synctest.Test(t, func(t *testing.T) {
				answered := false
				late := "none" // the id of the call, which is answered when it is cancelled
				s := handmade(t, &mcp.Client{Name: "gw"}, back, `{"tools":{}}`, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
					name, _ := m.Param("name")
					cancelled, _ := m.Param("requestId")
					switch {
					case string(name) == `"late"`:
						late = id
					case string(cancelled) == late: // the other one is that of a subscription
						answered = true
						send(done, late, "late")
					case string(name) == `"next"`:
						send(done, id, "next")
					}
				})
				gw := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: s}, &mcp.Client{Name: "c", Limits: mcp.Limits{CallTimeout: -1}}, front)
				start := time.Now()
				res, err := gw.CallTool(t.Context(), "late", nil)
				if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "sent nothing for 5m0s") || took != 5*time.Minute {
					t.Errorf("%s on %s: the silent call = %v, %v after %v", front, back, res, err, took)
				}
				synctest.Wait()
				if !answered {
					t.Errorf("%s on %s: the server was not told", front, back)
				}
				for range 2 {
					if got, err := mcp.CallAs[string](t.Context(), gw, "next", nil); err != nil || got != "next" {
						t.Errorf("%s on %s: the next call = %q, %v", front, back, got, err)
					}
				}
			})
		}
	}
}

// A subscription that is never acknowledged ends at the limit, in words; one that is goes on.
func TestSubscriptionThatIsNeverAcknowledged(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			synctest.Test(t, func(t *testing.T) {
				s := handmade(t, &mcp.Client{Name: "gw"}, back, `{"resources":{"subscribe":true}}`, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
					switch {
					case !strings.Contains(string(m.Params), "x://heard"):
					case m.Method == "subscriptions/listen":
						send(acknowledge, id)
					case m.Method == "resources/subscribe":
						send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
					}
				})
				gw := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: s}, &mcp.Client{Name: "c", Limits: mcp.Limits{CallTimeout: -1}}, front)
				start := time.Now()
				var err error
				for _, err = range gw.Watch(t.Context(), "x://silent") {
				}
				if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "sent nothing for 1m0s") || took < time.Minute || took > time.Minute+time.Second {
					t.Errorf("%s on %s: the subscription = %v after %v", front, back, err, took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				events := 0
				for e, err := range gw.Watch(ctx, "x://heard") {
					if events++; err != nil || e.Method != "notifications/subscriptions/acknowledged" {
						t.Errorf("%s on %s: %v, %v", front, back, e, err)
					}
				}
				if took := time.Since(start); events != 1 || took < time.Hour+time.Minute {
					t.Errorf("%s on %s: %d events, and the end after %v", front, back, events, took)
				}
			})
		}
	}
}

// A server that declares logging and never answers logging/setLevel costs no call its limit: not
// the opening of a session, not a call.
func TestLevelThatIsNeverAnswered(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions()[:4] {
			for _, opening := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					start, told := time.Now(), 0
					c := &mcp.Client{Name: "gw"}
					if opening {
						c.LogLevel = slog.LevelWarn
					}
					s := handmade(t, c, back, `{"tools":{},"logging":{}}`, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
						switch m.Method {
						case "logging/setLevel":
							told++
						case "tools/call":
							send(done, id, "done")
						}
					})
					gw := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: s}, &mcp.Client{Name: "c", LogLevel: slog.LevelDebug}, front)
					if got, err := mcp.CallAs[string](t.Context(), gw, "any", nil); err != nil || got != "done" {
						t.Errorf("the call = %q, %v", got, err)
					}
					if took := time.Since(start); told == 0 || took > time.Second {
						t.Errorf("%s on %s: told %d times, %v until the answer; want at most 1s", front, back, told, took)
					}
				})
			}
		}
	}
}

// A message that names no call counts for all calls in progress: a log message restarts their
// limits, and an open question pauses them.
func TestSignsOfLifeOfNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var open []string // ids of calls
		asked := false
		c := &mcp.Client{Name: "c", LogLevel: slog.LevelDebug, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			time.Sleep(20 * time.Minute)
			return &mcp.ElicitResult{Action: "decline"}, nil
		}}
		s := handmade(t, c, mcp.V2025_11_25, `{"tools":{},"logging":{}}`, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m.Method == "logging/setLevel":
				send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			case m.Method == "tools/call":
				if open = append(open, id); len(open) < 2 {
					return
				}
				go func() {
					for range 5 {
						time.Sleep(50 * time.Second)
						send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"at work"}}`)
					}
					send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`)
				}()
			case m.Kind() == jsonrpc.KindResponse:
				asked = true
				for _, id := range open {
					send(done, id, "done")
				}
			}
		})
		var wg sync.WaitGroup
		start := time.Now()
		for range 2 {
			wg.Go(func() {
				if got, err := mcp.CallAs[string](t.Context(), s, "any", nil); err != nil || got != "done" {
					t.Errorf("the call = %q, %v after %v", got, err, time.Since(start))
				}
			})
		}
		wg.Wait()
		if mu.Lock(); !asked || time.Since(start) < 24*time.Minute {
			t.Errorf("asked: %t, over after %v", asked, time.Since(start))
		}
		mu.Unlock()
	})
}
