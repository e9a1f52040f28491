package mcptest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// fakeT is a test that records its failures. Fatal ends its goroutine.
type fakeT struct {
	testing.TB
	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

// fake runs body as a test of its own and returns its failures.
func fake(t *testing.T, body func(t testing.TB)) []string {
	t.Helper()
	f := &fakeT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		body(f)
	}()
	<-done
	return f.errors
}

func (f *fakeT) add(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, s)
}

func (f *fakeT) Helper()                      {}
func (f *fakeT) Error(args ...any)            { f.add(fmt.Sprint(args...)) }
func (f *fakeT) Errorf(s string, args ...any) { f.add(fmt.Sprintf(s, args...)) }
func (f *fakeT) Logf(string, ...any)          {}
func (f *fakeT) Cleanup(c func())             { f.cleanups = append(f.cleanups, c) }
func (f *fakeT) Context() context.Context     { return context.Background() }
func (f *fakeT) Fatal(args ...any)            { f.add(fmt.Sprint(args...)); runtime.Goexit() }
func (f *fakeT) Fatalf(s string, args ...any) { f.Fatal(fmt.Sprintf(s, args...)) }

type name struct {
	Name string `json:"name" title:"Name"`
}

func greeter() *mcp.Server {
	s := &mcp.Server{Name: "greeter", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "greet"}, func(_ context.Context, in name) (string, error) { return "hello, " + in.Name, nil })
	return s
}

func client() *mcp.Client { return &mcp.Client{Name: "c", Version: "1"} }

func TestEveryNamesItsSubtests(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]mcp.Revision{}
	mcptest.Every(t, greeter, client, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[string](t.Context(), s, "greet", name{"Ada"})
		if err != nil || got != "hello, Ada" {
			t.Errorf("greet = %q, %v", got, err)
		}
		mu.Lock()
		defer mu.Unlock()
		_, sub, _ := strings.Cut(t.Name(), "/")
		seen[sub] = s.Revision()
	})
	if want := 5*5 + 4 + 5*2; len(seen) != want { // HTTP+SSE carries only legacy revisions
		t.Errorf("%d subtests, want %d", len(seen), want)
	}
	for sub, rev := range seen {
		if !strings.HasPrefix(sub, string(rev)+"/") {
			t.Errorf("%s speaks %s", sub, rev)
		}
	}
}

// A client keeps its fields, and each of its sessions has its own checker.
func TestConnectTwice(t *testing.T) {
	c := client()
	frames := 0
	c.OnFrame = func(trace.Frame) { frames++ }
	old := mcptest.Connect(t, greeter(), c, mcp.V2024_11_05)
	newer := mcptest.Connect(t, greeter(), c, mcp.V2026_07_28)
	if old.Revision() != mcp.V2024_11_05 || newer.Revision() != mcp.V2026_07_28 || c.Revisions != nil {
		t.Errorf("revisions %s, %s, %v", old.Revision(), newer.Revision(), c.Revisions)
	}
	if frames == 0 {
		t.Error("the client's own OnFrame saw nothing")
	}
}

// An invalid frame of either side fails the test.
func TestInvalidFrameFails(t *testing.T) {
	bad := &mcp.Server{Name: "bad", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method == "tools/call" {
			return mcp.RawResult(`{"content":"none"}`), nil
		}
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "bad", Version: "1"}}, nil
	})}
	for _, rev := range mcp.Revisions() {
		errs := fake(t, func(t testing.TB) {
			mcptest.Connect(t, bad, client(), rev).CallTool(context.Background(), "x", nil)
		})
		if len(errs) != 1 || !strings.Contains(errs[0], "the server sent an invalid frame: "+string(rev)) {
			t.Errorf("%s: failures %q", rev, errs)
		}
		errs = fake(t, func(t testing.TB) {
			mcptest.Connect(t, greeter(), client(), rev).Raw(context.Background(), "tools/list", map[string]int{"cursor": 7})
		})
		if len(errs) != 1 || !strings.Contains(errs[0], "the client sent an invalid frame: "+string(rev)) {
			t.Errorf("%s: failures %q", rev, errs)
		}
	}
}

func order(ctx context.Context, in name) (string, error) {
	ok, err := mcp.Confirm(ctx, "For "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !ok {
		return "nothing", nil
	}
	n, err := mcp.Elicit[struct {
		Count int `json:"count" title:"Count"`
	}](ctx, "How many?")
	return fmt.Sprint(in.Name, n.Count), err
}

func TestContext(t *testing.T) {
	ctx := mcptest.Context(t, true, map[string]int{"count": 3})
	if got, err := order(ctx, name{"Ada"}); err != nil || got != "Ada3" {
		t.Errorf("order = %q, %v", got, err)
	}
	if got, err := order(mcptest.Context(t, true, 4), name{"Ada"}); err != nil || got != "Ada4" {
		t.Errorf("with a bare value: %q, %v", got, err)
	}
	if _, err := order(mcptest.Context(t, mcp.ErrDeclined), name{"Ada"}); !errors.Is(err, mcp.ErrDeclined) {
		t.Errorf("declined: %v", err)
	}
	if _, err := order(mcptest.Context(t, true, mcp.ErrDismissed), name{"Ada"}); !errors.Is(err, mcp.ErrDismissed) {
		t.Errorf("dismissed: %v", err)
	}
	ctx = mcptest.Context(t, "pong", []mcp.Root{{URI: "file:///x"}}, nil, errors.New("broken"))
	res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}}})
	if err != nil || res.Text() != "pong" {
		t.Errorf("Sample = %v, %v", res, err)
	}
	if roots, err := mcp.Roots(ctx); err != nil || len(roots) != 1 {
		t.Errorf("Roots = %v, %v", roots, err)
	}
	if err := mcp.ElicitURL(ctx, "go", "https://example.com/"); err != nil {
		t.Errorf("ElicitURL = %v", err)
	}
	if _, err := mcp.Confirm(ctx, "?"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a client that fails: %v", err)
	}
}

func TestContextFailures(t *testing.T) {
	tests := []struct {
		name, want string
		answers    []any
	}{
		{"no answer", `elicit "How many?"`, []any{true}},
		{"an answer too many", "were not used", []any{true, 1, 2}},
		{"an answer of another kind", "does not fit", []any{[]mcp.Root{}}},
	}
	for _, tt := range tests {
		errs := fake(t, func(t testing.TB) { order(mcptest.Context(t, tt.answers...), name{"Ada"}) })
		if len(errs) == 0 || !strings.Contains(strings.Join(errs, "\n"), tt.want) {
			t.Errorf("%s: failures %q, want one with %q", tt.name, errs, tt.want)
		}
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, err := mcptest.Run(t, order, name{"Ada"}, true, 2); err != nil || got != "Ada2" {
			t.Errorf("Run = %q, %v", got, err)
		}
		if _, err := mcptest.Run(t, order, name{"Ada"}, true, mcp.ErrDeclined); !errors.Is(err, mcp.ErrDeclined) {
			t.Errorf("Run = %v", err)
		}
	})
}

// Run finds a side effect between two questions.
func TestRunFindsSideEffects(t *testing.T) {
	tickets := 0
	careless := func(ctx context.Context, in name) (string, error) {
		tickets++
		ok, err := mcp.Confirm(ctx, "Go on?")
		if err != nil || !ok {
			return "", err
		}
		_, err = mcp.Confirm(ctx, fmt.Sprintf("Take ticket %d?", tickets))
		return "", err
	}
	errs := fake(t, func(t testing.TB) { mcptest.Run(t, careless, name{}, true, true) })
	if !strings.Contains(strings.Join(errs, "\n"), "mcp.Once") {
		t.Errorf("failures %q", errs)
	}
	sold := 0
	careful := func(ctx context.Context, in name) (string, error) {
		ok, err := mcp.Confirm(ctx, "Go on?")
		if err != nil || !ok {
			return "", err
		}
		n, err := mcp.Once(ctx, "ticket", func(context.Context) (int, error) { sold++; return 7, nil })
		if err != nil {
			return "", err
		}
		_, err = mcp.Confirm(ctx, fmt.Sprintf("Take ticket %d?", n))
		return fmt.Sprint(n), err
	}
	if got, err := mcptest.Run(t, careful, name{}, true, true); err != nil || got != "7" || sold != 3 {
		t.Errorf("Run = %q, %v with %d sold", got, err, sold)
	}
}

func TestNodesShareTheirKeys(t *testing.T) {
	f := mcptest.Nodes(t, 3, greeter)
	if len(f.Nodes) != 3 || string(f.Nodes[0].State.Keys[0]) != string(f.Nodes[2].State.Keys[0]) {
		t.Error("the nodes have keys of their own")
	}
	s := f.Dial(t, client(), mcp.V2025_06_18)
	for range 10 {
		if _, err := s.CallTool(t.Context(), "greet", name{"Ada"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.Served(); n[1]+n[2] != 0 {
		t.Errorf("a legacy session reached %v", n)
	}
}

func TestGoldenTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.txt")
	session := func(who string) func(s *mcp.Session) {
		return func(s *mcp.Session) { s.CallTool(context.Background(), "greet", name{who}) }
	}
	golden := func(who string) []string {
		return fake(t, func(t testing.TB) {
			mcptest.Golden(t, file, greeter(), client(), mcp.V2025_11_25, session(who))
		})
	}
	const head = "# A greeting.\n-- server.txt --\ntools: greet\n-- trace.jsonl --\n"
	const want = `{"dir":"in","msg":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"greeter","version":"1"}}}}
{"dir":"in","msg":{"jsonrpc":"2.0","method":"notifications/initialized"}}
{"dir":"in","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"},"_meta":{"progressToken":1}}}}
{"dir":"out","msg":{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello, Ada"}]}}}
`
	if err := os.WriteFile(file, []byte(head+want+"-- notes.txt --\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if errs := golden("Ada"); len(errs) != 0 {
		t.Errorf("failures %q", errs)
	}
	if errs := golden("Bob"); len(errs) != 1 || !strings.Contains(errs[0], "line 4") {
		t.Errorf("another trace: failures %q", errs)
	}
}

// A recording of the wire can be used as a golden test: it passes for the recorded server and for
// a client against its mock, and fails for another server.
func TestRecordingIsAGoldenTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jsonl")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := trace.NewWriter(out, nil)
	c := client()
	c.OnFrame = w.Record
	s := mcptest.Connect(t, greeter(), c, mcp.V2026_07_28)
	if _, err := s.CallTool(t.Context(), "greet", name{"Ada"}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	mcptest.Replay(t, file, greeter())
	for _, rev := range mcp.Revisions() {
		res, err := mcptest.Connect(t, mcptest.Mock(t, file), client(), rev).CallTool(t.Context(), "greet", name{"Ada"})
		if err != nil || res.Text() != "hello, Ada" {
			t.Errorf("%s: the mock answers %v, %v", rev, res, err)
		}
	}
	rude := &mcp.Server{Name: "rude", Version: "1"}
	mcp.AddTool(rude, mcp.Tool{Name: "greet"}, func(context.Context, name) (string, error) { return "go away", nil })
	errs := fake(t, func(t testing.TB) { mcptest.Replay(t, file, rude) })
	if len(errs) != 1 || !strings.Contains(errs[0], `tools/call greet: result.content[0].text`) || !strings.Contains(errs[0], `want "hello, Ada"`) {
		t.Errorf("another server: failures %q", errs)
	}
	if errs := fake(t, func(t testing.TB) { mcptest.Replay(t, file, rude, "text") }); len(errs) != 0 {
		t.Errorf("with text ignored: failures %q", errs)
	}
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := jsonrpc.Pipe()
		f := mcptest.Faults(a,
			mcptest.Fault{Frame: 2, Do: mcptest.Drop},
			mcptest.Fault{Frame: 3, Do: mcptest.Duplicate},
			mcptest.Fault{Frame: 4, Do: mcptest.Garbage, Bytes: []byte("junk")},
			mcptest.Fault{Frame: 5, Do: mcptest.Truncate},
			mcptest.Fault{Frame: 6, Do: mcptest.Delay, Wait: time.Minute},
			mcptest.Fault{Frame: 7, Do: mcptest.Close})
		start := time.Now()
		for i := 1; i <= 6; i++ {
			if err := f.Write(fmt.Appendf(nil, "frame%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("the delay was %v", d)
		}
		if err := f.Write([]byte("frame7")); err == nil {
			t.Error("the closed connection takes a frame")
		}
		var got []string
		for {
			frame, err := b.Read(nil)
			if err != nil {
				break
			}
			got = append(got, string(frame))
		}
		if want := "frame1 frame3 frame3 junk frame4 fra frame6"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %s", got, want)
		}
	})
}

func TestLeakCheck(t *testing.T) {
	var errs []string
	synctest.Test(t, func(t *testing.T) { // the wait for its end takes no time
		stop := make(chan struct{})
		ended := make(chan struct{})
		errs = fake(t, func(t testing.TB) {
			mcptest.LeakCheck(t)
			go func() { defer close(ended); <-stop }()
		})
		close(stop)
		<-ended
	})
	if len(errs) != 1 || !strings.Contains(errs[0], "mcptest_test.go") {
		t.Errorf("failures %q, want the stack of the goroutine", errs)
	}
	if errs := fake(t, func(t testing.TB) {
		mcptest.LeakCheck(t)
		mcptest.Connect(t, greeter(), client(), mcp.V2026_07_28)
		if mcp.CallFrom(mcptest.Context(t)) == nil {
			t.Error("Context belongs to no call")
		}
	}); len(errs) != 0 {
		t.Errorf("failures %q", errs)
	}
}

var _ = flag.Bool("update", false, "a flag of a package of tests")

// A package of tests may have a flag -update of its own, which rewrites the traces too.
func TestOwnUpdateFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.txt")
	write := func() {
		mcptest.Golden(t, file, greeter(), client(), mcp.V2025_11_25, func(s *mcp.Session) {
			if _, err := s.CallTool(t.Context(), "greet", name{"Ada"}); err != nil {
				t.Error(err)
			}
		})
	}
	set := func(to string) {
		if err := flag.Set("update", to); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { set("false") })
	set("true")
	write()
	set("false")
	write() // compares
}

// An error without an id is what a server may answer to a notification, with a status of HTTP, and nothing else.
func TestCheckOfRefusals(t *testing.T) {
	for status, want := range map[int]int{404: 0, 200: 1} {
		errs := fake(t, func(t testing.TB) {
			mcptest.Check(t, mcp.V2025_03_26, true, nil)(trace.Frame{
				Dir: trace.In, Kind: trace.KindMessage, HTTP: &trace.HTTP{Status: status}, Msg: []byte(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"the session has ended"}}`),
			})
		})
		if len(errs) != want {
			t.Errorf("status %d: %q", status, errs)
		}
	}
}
