package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/everything"
)

// bridged runs "patchbay bridge" with arguments that make it listen, and returns the URL.
func bridged(t *testing.T, args ...string) string {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	said, stderr := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"bridge"}, args...), strings.NewReader(""), io.Discard, stderr)
		stderr.Close()
	}()
	t.Cleanup(func() {
		interrupt()
		if got := <-code; got != exitOK {
			t.Errorf("bridge %v exited with %d after ctrl-C, want %d", args, got, exitOK)
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			go io.Copy(io.Discard, said)
			return url
		}
	}
	t.Fatalf("bridge %v ended before it listened: %v", args, lines.Err())
	return ""
}

// child returns a command line that serves "everything" over stdio in one revision.
func child(t *testing.T, r mcp.Revision) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--env", testRun + "=patchbay", "--", self, "serve", "everything", "--revision", string(r)}
}

// answering returns a client of one revision that answers questions.
func answering(r mcp.Revision) *mcp.Client {
	return &mcp.Client{
		Name: "tester", Revisions: []mcp.Revision{r},
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Content: []mcp.Content{mcp.Text("Paris")}, Model: "test"}, nil
		},
		Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///tmp"}}, nil },
	}
}

// wantThrough checks that calls, questions, progress and updates pass a bridge to a server of
// revision behind.
func wantThrough(t *testing.T, s *mcp.Session, behind mcp.Revision) {
	t.Helper()
	call := func(tool string, args any, want string, opts ...mcp.CallOption) {
		t.Helper()
		res, err := s.CallTool(t.Context(), tool, args, opts...)
		if err != nil || res.IsError || res.Text() != want {
			t.Errorf("%s = %v, %v; want %q", tool, res, err, want)
		}
	}
	call("echo", map[string]any{"message": "hi"}, "hi")
	call("test_sampling", map[string]any{"prompt": "?"}, "LLM response: Paris")
	call("list_roots", nil, "Roots: file:///tmp")
	if s.Revision() >= mcp.V2025_06_18 && behind >= mcp.V2025_06_18 {
		call("test_input_required_result_elicitation", nil, "Hello, Ada!")
	}
	var done float64
	call("test_tool_with_progress", nil, "Progress reported.", mcp.OnProgress(func(at, _ float64, _ string) { done = at }))
	if done != 100 {
		t.Errorf("progress came to %v, want 100", done)
	}
	const uri = "test://watched-resource"
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for e, err := range s.Watch(ctx, uri) {
		switch {
		case err != nil:
			t.Errorf("watch: %v", err)
		case e.URI == uri:
			return
		case e.Method == "notifications/subscriptions/acknowledged":
			call("touch_resource", map[string]any{"text": "new"}, "Changed.")
		}
	}
	t.Error("no update of the resource that was touched")
}

// TestBridgeCommand puts stdio servers behind HTTP, in each pair of revisions.
func TestBridgeCommand(t *testing.T) {
	for _, behind := range mcp.Revisions() {
		t.Run(string(behind), func(t *testing.T) {
			t.Parallel()
			url := bridged(t, append([]string{"--http", "127.0.0.1:0", "--sse"}, child(t, behind)...)...)
			for _, r := range mcp.Revisions() {
				t.Run(string(r), func(t *testing.T) {
					at := url
					if r == mcp.V2024_11_05 {
						at = strings.TrimSuffix(url, listen.Path) + "/sse"
					}
					s, err := answering(r).Dial(t.Context(), at)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					wantThrough(t, s, behind)
				})
			}
		})
	}
}

// TestBridgeURL puts HTTP and HTTP+SSE servers behind stdio.
func TestBridgeURL(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range mcp.Revisions() {
		server := everything.New()
		server.Revisions = []mcp.Revision{behind}
		mux, sse := http.NewServeMux(), server.SSE("/messages")
		mux.Handle(listen.Path, server)
		mux.Handle("/sse", sse)
		mux.Handle("/messages", sse)
		at := listen.Path
		if behind == mcp.V2024_11_05 { // it has no other HTTP transport
			at = "/sse"
		}
		web := httptest.NewServer(mux)
		t.Cleanup(web.Close)
		for _, r := range mcp.Revisions() {
			t.Run(string(r)+" in front of "+string(behind), func(t *testing.T) {
				t.Parallel()
				cmd := exec.Command(self, "bridge", "-s", web.URL+at)
				cmd.Env = append(os.Environ(), testRun+"=patchbay")
				s, err := answering(r).Start(t.Context(), cmd)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				wantThrough(t, s, behind)
			})
		}
	}
}

// TestBridgeSessions wants a separate server for each client with a session if the server may keep
// state between calls, and a shared one on request.
func TestBridgeSessions(t *testing.T) {
	tests := []struct {
		name   string
		flags  []string
		behind mcp.Revision
		second string // the second client's answer
	}{
		{"an old server", nil, mcp.V2025_06_18, "Added the tool transient_tool."},
		{"a new server", nil, mcp.V2026_07_28, "Removed the tool transient_tool."},
		{"shared", []string{"--share", "shared"}, mcp.V2025_06_18, "Removed the tool transient_tool."},
		{"per client", []string{"--share", "per-client"}, mcp.V2026_07_28, "Added the tool transient_tool."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url := bridged(t, append(append([]string{"--http", "127.0.0.1:0"}, tt.flags...), child(t, tt.behind)...)...)
			for _, want := range []string{"Added the tool transient_tool.", tt.second} {
				s, err := answering(mcp.V2025_11_25).Dial(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if res, err := s.CallTool(t.Context(), "test_trigger_tool_change", nil); err != nil || res.Text() != want {
					t.Errorf("a client was told %v (%v), want %q", res, err, want)
				}
			}
		})
	}
}

// TestBridgeHealth (trap 32): a bridge has /healthz and /readyz and is listed by "patchbay status",
// also while its server keeps crashing, which it reports like up.
func TestBridgeHealth(t *testing.T) {
	runtimeFolder(t)
	get := func(url, path string) (int, health.Report) {
		t.Helper()
		res, err := http.Get(strings.TrimSuffix(url, listen.Path) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var r health.Report
		if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, r
	}
	status := func() string {
		var out strings.Builder
		run(t.Context(), []string{"status"}, strings.NewReader(""), &out, io.Discard)
		return out.String()
	}
	good := bridged(t, "--http", "127.0.0.1:0", "-s", "everything")
	until(t, "the bridge is ready", func() bool { code, r := get(good, "/readyz"); return code == http.StatusOK && r.State == health.Ready })
	if code, r := get(good, "/healthz"); code != http.StatusOK || r.State != "alive" {
		t.Errorf("/healthz = %d, state %q", code, r.State)
	}
	wine.Skip(t, "it has no Unix sockets, by which status finds a bridge")
	if got := status(); !strings.Contains(got, good+": ready") || !strings.Contains(got, "bridge to everything") {
		t.Errorf("status = %s", got)
	}
}

// A bridge is ready while its server answers: not before it starts, nor after it has ended. The health
// of serve needs no credential and tells nothing but the state.
func TestReadiness(t *testing.T) {
	runtimeFolder(t)
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	get := func(url string) (int, string) {
		t.Helper()
		req, _ := http.NewRequest("GET", strings.TrimSuffix(url, listen.Path)+"/readyz", nil)
		req.Header.Set("Via", "1.1 proxy") // the answer is then as short as for other machines
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	await := func(url string, want int) { // longer than until, as attempts have growing pauses
		t.Helper()
		for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if status, body := get(url); status == want {
				return
			} else if time.Now().After(deadline) {
				t.Fatalf("/readyz = %d %s, want %d", status, body, want)
			}
		}
	}
	url := bridged(t, "--http", "127.0.0.1:0", "-s", "http://"+addr+"/mcp")
	until(t, "the bridge is failing", func() bool { _, body := get(url); return strings.Contains(body, `"failing"`) })
	if status, body := get(url); status != http.StatusServiceUnavailable || body != `{"program":"patchbay","state":"failing"}`+"\n" {
		t.Errorf("without its server, /readyz = %d %s", status, body)
	}
	behind, stderr := program(t, "serve", "everything", "--http", addr, "--auth", "hmac:env:PB_READY,audience=x")
	behind.Env = append(behind.Env, "PB_READY=0123456789abcdef0123456789abcdef")
	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	stderr.await(t, "listening on")
	if status, body := get("http://" + addr + "/mcp"); status != http.StatusOK || body != `{"program":"patchbay","state":"ready"}`+"\n" {
		t.Errorf("/readyz of serve = %d %s", status, body)
	}
	behind.Process.Kill()
	behind.Wait()

	open, stderr := program(t, "serve", "everything", "--http", addr)
	if err := open.Start(); err != nil {
		t.Fatal(err)
	}
	defer open.Wait()
	defer open.Process.Kill()
	stderr.await(t, "listening on")
	await(url, http.StatusOK)
	open.Process.Kill()
	open.Wait()
	await(url, http.StatusServiceUnavailable)
	again, stderr := program(t, "serve", "everything", "--http", addr)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	defer again.Wait()
	defer again.Process.Kill()
	stderr.await(t, "listening on")
	await(url, http.StatusOK)
}

// A bridge whose server keeps crashing reports each state once, with the last output of the server.
func TestBridgeToCrashing(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said := new(transcript)
	cmd := exec.Command(self, "bridge", "--http", "127.0.0.1:0", "--env", testRun+"=stub", "--", self, "die")
	cmd.Env, cmd.Stderr = append(os.Environ(), testRun+"=patchbay"), said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	said.await(t, `(?m)^patchbay: .*: failing: .*exit status 3\n  \| stub: no configuration\n  \| stub: giving up$`)
	said.await(t, `(?m)^patchbay: .*: crashing: it ended 3 times in a row before it was ready`)
	wine.Skip(t, "it has no Unix sockets, by which status finds a bridge")
	var out strings.Builder
	if run(t.Context(), []string{"status"}, strings.NewReader(""), &out, io.Discard); !strings.Contains(out.String(), "crashing") {
		t.Errorf("status = %s", &out)
	}
}
