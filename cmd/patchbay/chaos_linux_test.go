package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// misdeeds are the faults of a chaos server when it is called, and whether it still answers. Those
// with an answer occur more than once, so that a process survives a few calls.
var misdeeds = []struct {
	how     string
	answers bool
}{
	{"answer", true}, {"answer", true}, {"answer", true}, {"answer", true}, {"answer", true}, {"answer", true},
	{"late", true},
	{"garbage", true},
	{"noise", true},
	{"fork", true},
	{"hang", false},
	{"crash", false},
	{"flood", false},
	{"half", false},
	{"stop", false},
}

type misdeed struct {
	How  string `json:"how"`
	Text string `json:"text"`
}

// init makes the test binary a chaos server if TestChaos starts it as one.
func init() {
	if os.Getenv(testRun) != "chaos" {
		return
	}
	s, out := &mcp.Server{Name: "chaos", Version: "1"}, os.Stdout // ServeStdio's own writer is not accessible
	if len(os.Args) > 1 {
		s.Revisions = []mcp.Revision{mcp.Revision(os.Args[1])}
	}
	mcp.AddTool(s, mcp.Tool{Name: "do"}, func(ctx context.Context, in misdeed) (string, error) {
		switch in.How {
		case "late":
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		case "garbage": // lines that are not messages, and answers to nobody
			io.WriteString(out, "ready\n{\n\n[]\n{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"nobody's\",\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":99999999,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"wrong\"}]}}\n\xff\xfe\n")
		case "noise":
			for range 1000 {
				fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 100))
			}
		case "fork": // a process that outlives it, if nobody ends it
			if err := exec.Command("setsid", "sh", "-c", "trap '' TERM HUP; sleep 1000; :").Start(); err != nil {
				return "", err
			}
		case "hang":
			<-ctx.Done()
			return "", context.Cause(ctx)
		case "crash":
			os.Exit(9)
		case "flood": // a line without an end
			for chunk := []byte(strings.Repeat("x", 64<<10)); ; {
				if _, err := out.Write(chunk); err != nil {
					return "", err
				}
			}
		case "half": // its input stays open
			out.Close()
		case "stop":
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-ctx.Done()
		}
		return "did " + in.Text, nil
	})
	s.ServeStdio(context.Background())
	os.Exit(0)
}

// chaosWeb is an HTTP server with the same faults.
func chaosWeb(t *testing.T, seed uint64) string {
	s := &mcp.Server{Name: "web", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "do"}, func(_ context.Context, in misdeed) (string, error) { return "did " + in.Text, nil })
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n := rnd.IntN(40)
		mu.Unlock()
		switch n {
		case 0: // the connection ends
			panic(http.ErrAbortHandler)
		case 1:
			http.Error(w, "<html>no</html>", http.StatusInternalServerError)
		case 2:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":`)
		case 3: // the stream ends before the answer
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: \n\ndata: {\n\n")
		case 4:
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

// chaosTime is the duration of the calls to the chaos servers; answerTime bounds each call and
// list.
const (
	chaosTime  = 3 * time.Minute
	answerTime = 45 * time.Second
)

// TestChaos has clients of every revision call servers through one "up". At random, the servers
// crash, hang, flood, write invalid messages, half-close their connection, stop, and leave
// processes behind. A call of a good server beside them is always answered; one of a bad server
// gets the right answer or fails in time. Afterwards no process, descriptor, goroutine, file or
// memory is left.
func TestChaos(t *testing.T) {
	long.Only(t)
	if racing() {
		t.Skip("measures memory")
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PATCHBAY_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("PATCHBAY_SEED=%d", seed)
	runtimeFolder(t)
	temp := filepath.Join(t.TempDir(), "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A caller of 2026-07-28 has no session that could end: "idle" ends its processes.
	bad := func(share string, args ...string) map[string]any {
		return map[string]any{"command": "env", "args": append([]string{testRun + "=chaos", self}, args...),
			"patchbay": map[string]any{"share": share, "callTimeout": "2s", "idle": "10s"}}
	}
	t.Setenv("TMPDIR", temp)
	r := startUp(t, map[string]any{
		"good":    stubServer(t),
		"here":    map[string]any{"builtin": "everything"},
		"modern":  bad("shared"),
		"shared":  bad("shared", string(mcp.V2025_06_18)),
		"session": bad("session", string(mcp.V2025_11_25)),
		"person":  bad("principal", string(mcp.V2024_11_05)),
		"web":     map[string]any{"url": chaosWeb(t, seed), "patchbay": map[string]any{"callTimeout": "2s"}},
	})
	// Warm-up calls: one-time allocations happen before the measurement.
	if failed := chaosClient(t, r, mcp.V2025_11_25, rand.New(rand.NewPCG(seed, 2)), time.Now().Add(2*time.Second)); failed > 0 {
		t.Logf("%d calls of bad servers failed at first", failed)
	}
	recovered(t, r.url)
	before := settled(t, r.cmd.Process.Pid, nil)
	end := time.Now().Add(chaosTime)
	var failed atomic.Int64
	var clients sync.WaitGroup
	for i, rev := range slices.Concat(mcp.Revisions(), mcp.Revisions()) {
		rnd := rand.New(rand.NewPCG(seed, uint64(10+i)))
		clients.Go(func() { failed.Add(chaosClient(t, r, rev, rnd, end)) })
	}
	clients.Wait()
	recovered(t, r.url)
	after := settled(t, r.cmd.Process.Pid, &before)
	fmt.Printf("report: %s: seed %d, %d calls of bad servers failed, up held %+v before and %+v after\n", t.Name(), seed, failed.Load(), before, after)
	if after.fds > before.fds+spareFDs || after.processes > before.processes || after.megabytes > before.megabytes+spareMB {
		t.Errorf("up holds %+v, before it was %+v", after, before)
	}
	family := descendantsOf(r.cmd.Process.Pid)
	if n := goroutines(t, r); n > mostGoroutines {
		t.Errorf("up has %d goroutines at rest, want %d at most", n, mostGoroutines)
	}
	wantGone(t, family)
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%v are left in the folder for temporary files", left)
	}
}

// recovered waits until each server of chaos answers again.
func recovered(t *testing.T, url string) {
	t.Helper()
	for _, server := range []string{"modern", "shared", "session", "person", "web"} {
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if did(t, url, server+"_do") {
				break
			}
			if time.Now().After(deadline) {
				t.Errorf("%s does not answer again", server)
				break
			}
		}
	}
}

// did reports whether a call of a chaos server in a session of its own succeeds.
func did(t *testing.T, url, tool string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	s, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{mcp.V2025_11_25}}).Dial(ctx, url)
	if err != nil {
		t.Error(err)
		return true
	}
	defer s.Close()
	res, err := s.CallTool(ctx, tool, misdeed{"answer", "it"})
	return err == nil && res.Text() == "did it"
}

// chaosClient makes calls in short sessions, and returns the number of failed calls of bad servers.
func chaosClient(t *testing.T, r *running, rev mcp.Revision, rnd *rand.Rand, end time.Time) (failed int64) {
	good := []string{"good", "here"}
	bad := []string{"modern", "shared", "session", "person", "web"}
	for n := 0; time.Now().Before(end); {
		s, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}).Dial(t.Context(), r.url)
		if err != nil {
			t.Errorf("%s: %v", rev, err)
			return failed
		}
		for range 1 + rnd.IntN(30) {
			n++
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), answerTime)
			what := "tools/list"
			text := fmt.Sprintf("%s %d %d", rev, n, rnd.Uint32())
			switch k := rnd.IntN(10); {
			case k == 0:
				names := map[string]bool{}
				for tool, err := range s.Tools(ctx) {
					if err != nil {
						t.Errorf("%s: tools: %v", rev, err)
						break
					}
					names[tool.Name] = true
				}
				if !names["good_args"] || !names["here_echo"] {
					t.Errorf("%s: a list of %d tools lacks good servers", rev, len(names))
				}
			case k < 4:
				what = "a call of a good server"
				tool, args := "good_args", map[string]any{"text": text}
				if good[rnd.IntN(2)] == "here" {
					tool, args = "here_echo", map[string]any{"message": text}
				}
				if res, err := s.CallTool(ctx, tool, args); err != nil || res.IsError || !strings.Contains(res.Text(), text) {
					t.Errorf("%s: %s(%q) = %v, %v", rev, tool, text, res, err)
				}
			default:
				given := rnd.IntN(10) == 0
				if given {
					time.AfterFunc(time.Duration(rnd.IntN(50))*time.Millisecond, cancel)
				}
				do := misdeeds[rnd.IntN(len(misdeeds))]
				tool := bad[rnd.IntN(len(bad))] + "_do"
				what = tool + " " + do.how
				res, err := s.CallTool(ctx, tool, misdeed{do.how, text})
				if err != nil || res.IsError {
					failed++
				} else if !do.answers && tool != "web_do" || res.Text() != "did "+text {
					t.Errorf("%s: %s(%s, %q) = %q", rev, tool, do.how, text, res.Text())
				}
			}
			cancel()
			if took := time.Since(began); took > answerTime {
				t.Errorf("%s: %s took %v, want %v at most", rev, what, took, answerTime)
			}
		}
		s.Close()
	}
	return failed
}

// held is the resources of a process and its descendants.
type held struct{ fds, processes, megabytes int }

// spareFDs and spareMB are how much more "up" may hold afterwards, for the runtime and idle
// connections.
const (
	spareFDs = 16
	spareMB  = 96
)

// mostGoroutines bounds the goroutines of an idle "up" with a handful of servers.
const mostGoroutines = 200

func holds(t *testing.T, pid int) held {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no memory in %s", status)
	}
	kB, _ := strconv.Atoi(string(m[1]))
	return held{len(fds), len(descendantsOf(pid)), kB >> 10}
}

// settled waits, at most 4 minutes, until a program holds no more than before, and returns what it
// holds then. If before is nil it waits until that has not changed for 2 seconds.
func settled(t *testing.T, pid int, before *held) (now held) {
	t.Helper()
	var last held
	still := time.Now()
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(100 * time.Millisecond) { // there is no event to wait for
		now = holds(t, pid)
		if now.fds != last.fds || now.processes != last.processes {
			still = time.Now()
		}
		last = now
		switch {
		case before == nil && time.Since(still) > 2*time.Second,
			before != nil && now.fds <= before.fds+spareFDs && now.processes <= before.processes && now.megabytes <= before.megabytes+spareMB,
			time.Now().After(deadline):
			return now
		}
	}
}

// goroutines ends a program with SIGQUIT and counts its goroutines.
func goroutines(t *testing.T, r *running) int {
	t.Helper()
	r.cmd.Process.Signal(syscall.SIGQUIT)
	r.cmd.Wait()
	stacks := regexp.MustCompile(`(?m)^goroutine \d+ .*\[`).FindAllString(r.stderr.String(), -1)
	if len(stacks) == 0 {
		t.Error("up tells of no goroutine")
	}
	return len(stacks)
}
