package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// The budgets bound the allocations of the hot paths, with default settings and all checks.
// They are a little above the current figures; a change that exceeds one must be worth it.
// Lower them when a path gets cheaper.
var budgets = []struct {
	path   string
	allocs uint64 // allocations per operation, of all goroutines together
	bytes  uint64 // bytes of these
	setUp  func(*testing.T) func()
}{
	// Messages and schemas.
	{"decode a request", 0, 0, decodes(modernFrame("tools/call", echoMembers(prose(100))))},
	{"decode a request of 10 KiB", 0, 0, decodes(modernFrame("tools/call", echoMembers(prose(10<<10))))},
	{"append a result", 0, 0, appendsResult},
	{"decode arguments", 2, 160, decodesArguments},
	{"validate arguments against a foreign schema", 4, 640, validates},

	// The server alone.
	{"call on the registry", 5, 288, callsRegistry},
	{"call on a pipe, modern", 8, 1024, callsPipe(true)},
	{"call on a pipe, legacy", 8, 1024, callsPipe(false)},
	{"call over HTTP, modern", 7, 896, callsModern("tools/call", "echo", 1)},
	{"call over HTTP, session, JSON", 8, 1024, callsSession("application/json, text/event-stream", false)},
	{"call over HTTP, session, SSE", 8, 1024, callsSession("text/event-stream", false)},
	{"call over HTTP, legacy without sessions", 12, 1664, callsSession("application/json, text/event-stream", true)},
	{"open a session over HTTP", 19, 2048, opensSession},
	{"server/discover over HTTP, modern", 4, 640, callsModern("server/discover", "", 1000)},
	{"list of 1,000 tools over HTTP, modern", 11, 2048, callsModern("tools/list", "", 1000)},

	// The client alone.
	{"typed call of a client in memory", 12, 1312, callsMinimal},
	{"typed call of a client over HTTP, without a net", 39, 4096, callsInstant},

	// Server and client together.
	{"typed call in memory", 22, 2688, callsTyped},
	{"call with 10 progress notifications in memory", 165, 13 << 10, callsProgress},
	{"call with a question in memory, modern", 270, 24 << 10, asks(mcp.V2026_07_28)},
	{"call with a question in memory, legacy", 195, 16 << 10, asks(mcp.V2025_11_25)},
	{"notification to the server", 6, 896, notifies},

	// A gateway with its duties.
	{"call through a gateway", 24, 4 << 10, callsGateway()},
	{"call through a gateway with an audit log", 46, 7 << 10, callsGateway("audit")},
	{"call through a gateway with all duties", 130, 24 << 10, callsGateway(duties...)},

	// A gateway of 64 servers with 50 tools each.
	{"list of 3,200 tools through a gateway, modern", 40, 16 << 10, listsCatalogue(true)},
	{"list of 3,200 tools through a gateway, legacy", 40, 16 << 10, listsCatalogue(false)},
	{"find_tools among 3,200 tools of a gateway", 110, 160 << 10, findsTools(nil)},
	{"find_tools among 1,600 tools of a view", 110, 96 << 10, findsTools([]string{"*0_*", "*2_*", "*4_*", "*6_*", "*8_*"})},
}

func TestBudgets(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates too: allocation budgets hold without it")
	}
	for _, b := range budgets {
		t.Run(b.path, func(t *testing.T) {
			allocs, bytes := measure(b.setUp(t))
			t.Logf("%d allocations, %d bytes", allocs, bytes)
			if allocs > b.allocs {
				t.Errorf("%d allocations per operation, the budget is %d", allocs, b.allocs)
			}
			if bytes > b.bytes {
				t.Errorf("%d bytes per operation, the budget is %d", bytes, b.bytes)
			}
		})
	}
}

// measure returns the average allocations of op, rounded down, in the best of several
// rounds: other work in the process can only add.
func measure(op func()) (allocs, bytes uint64) {
	const rounds, perRound = 5, 200
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 20 {
		op() // fill pools and caches
	}
	allocs, bytes = ^uint64(0), ^uint64(0)
	for range rounds {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range perRound {
			op()
		}
		runtime.ReadMemStats(&after)
		allocs = min(allocs, (after.Mallocs-before.Mallocs)/perRound)
		bytes = min(bytes, (after.TotalAlloc-before.TotalAlloc)/perRound)
	}
	return allocs, bytes
}

func callsGateway(with ...string) func(*testing.T) func() {
	return func(t *testing.T) func() { return hop(t, with...) }
}

func decodes(frame []byte) func(*testing.T) func() {
	return func(t *testing.T) func() {
		return func() {
			m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil || m.Method != "tools/call" {
				t.Fatalf("decoded %q, %v", m.Method, err)
			}
		}
	}
}

func appendsResult(t *testing.T) func() {
	result := json.RawMessage(`{"content":[{"type":"text","text":"` + fmt.Sprintf("%0100d", 1) + `"}]}`)
	buf := make([]byte, 0, 1024)
	return func() {
		if buf = jsonrpc.AppendResult(buf[:0], jsonrpc.IntID(7), result); len(buf) < len(result) {
			t.Fatalf("appended %s", buf)
		}
	}
}

func decodesArguments(t *testing.T) func() {
	typ, err := schema.For[echoIn]()
	if err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(echoIn{prose(100)})
	return func() {
		var in echoIn
		if err := typ.Decode(args, &in); err != nil || len(in.Message) != 100 {
			t.Fatalf("decoded %q, %v", in.Message, err)
		}
	}
}

func validates(t *testing.T) func() {
	v, err := schema.Compile(json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","maxLength":1000},` +
		`"count":{"type":"integer","minimum":0},"tags":{"type":"array","items":{"type":"string"}}},"required":["message"]}`))
	if err != nil {
		t.Fatal(err)
	}
	args := []byte(`{"message":"hello","count":3,"tags":["a","b"]}`)
	return func() {
		if err := v.Validate(args); err != nil {
			t.Fatal(err)
		}
	}
}

func callsRegistry(t *testing.T) func() {
	s := newServer(t, 1)
	req := &mcp.Request{Method: "tools/call", Params: json.RawMessage(echoParams(prose(100)))}
	return func() {
		if _, err := s.Handle(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
}

func callsPipe(modern bool) func(*testing.T) func() {
	return func(t *testing.T) func() {
		p := newPipe(t, newServer(t, 1))
		frame := modernFrame("tools/call", echoMembers(prose(100)))
		if !modern {
			p.initialize()
			frame = legacyFrame("tools/call", echoParams(prose(100)))
		}
		return func() {
			if answer := p.exchange(frame); len(answer) < 100 {
				t.Fatalf("answer %s", answer)
			}
		}
	}
}

func callsModern(method, name string, tools int) func(*testing.T) func() {
	return func(t *testing.T) func() {
		c := modernCaller(t, newServer(t, tools), method, name)
		members := ""
		if name != "" {
			members = echoMembers(prose(100))
		}
		return posts(t, c, modernFrame(method, members))
	}
}

func callsSession(accept string, stateless bool) func(*testing.T) func() {
	return func(t *testing.T) func() {
		s := newServer(t, 1)
		s.HTTP.Stateless = stateless
		return posts(t, sessionCaller(t, s, accept), legacyFrame("tools/call", echoParams(prose(100))))
	}
}

// opensSession opens sessions and leaves them open.
func opensSession(t *testing.T) func() {
	return posts(t, newCaller(t, newServer(t, 1000)), legacyFrame("initialize", initialize))
}

func posts(t *testing.T, c *caller, frame []byte) func() {
	return func() {
		if out := c.post(frame); c.status != 200 || len(out) < 100 {
			t.Fatalf("status %d, %.200q", c.status, out)
		}
	}
}

func callsMinimal(t *testing.T) func() {
	s, text := minimalPipe(t), prose(100)
	return func() { echo(t, s, text) }
}

// An instant transport answers without a network.
type instant struct {
	minimal
	in  bytes.Buffer
	out bytes.Reader
}

var instantHeader = http.Header{"Content-Type": {"application/json"}}

func (i *instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost { // the stream of the session, and its end
		return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	i.in.Reset()
	if _, err := i.in.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	out, err := i.answer(i.in.Bytes())
	if out == nil {
		return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, err
	}
	i.out.Reset(out)
	return &http.Response{StatusCode: http.StatusOK, Header: instantHeader, ContentLength: int64(len(out)), Body: io.NopCloser(&i.out), Request: r}, nil
}

func callsInstant(t *testing.T) func() {
	c := speaking(mcp.V2025_11_25)
	c.HTTPClient = &http.Client{Transport: &instant{minimal: minimal{result: echoResult(prose(100))}}}
	s, err := c.Dial(t.Context(), "http://127.0.0.1:1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	text := prose(100)
	return func() { echo(t, s, text) }
}

func callsTyped(t *testing.T) func() {
	s := connect(t, newServer(t, 1), nil)
	text := prose(100)
	return func() { echo(t, s, text) }
}

func callsProgress(t *testing.T) func() {
	s, seen := connect(t, progressServer(), nil), 0
	count := mcp.OnProgress(func(float64, float64, string) { seen++ })
	return func() {
		seen = 0
		if _, err := s.CallTool(t.Context(), "steps", stepsIn{10}, count); err != nil || seen != 10 {
			t.Fatalf("%d notifications, %v", seen, err)
		}
	}
}

func asks(rev mcp.Revision) func(*testing.T) func() {
	return func(t *testing.T) func() {
		s := connect(t, askServer(), agreeing(rev))
		return func() {
			if r, err := s.CallTool(t.Context(), "ask", nil); err != nil || r.Text() != "yes" {
				t.Fatal(r, err)
			}
		}
	}
}

type stepsIn struct {
	Steps int `json:"steps"`
}

// progressServer returns a server with a tool "steps" that sends progress.
func progressServer() *mcp.Server {
	s := &mcp.Server{Name: "bench", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "steps"}, func(ctx context.Context, in stepsIn) (string, error) {
		for i := range in.Steps {
			mcp.Progress(ctx, float64(i+1), float64(in.Steps), "step")
		}
		return "done", nil
	})
	return s
}

// A ping follows each notification, to know when it was read.
func notifies(t *testing.T) func() {
	p := newPipe(t, newServer(t, 1))
	p.initialize()
	cancelled := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99,"reason":"bench"}}`)
	ping := legacyFrame("ping", "{}")
	return func() {
		p.send(cancelled)
		p.exchange(ping)
	}
}
