package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
)

// role is the variable that makes the test binary a hook.
const role = "HOOK_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(role) != "" {
		os.Exit(play(os.Getenv(role), os.Getenv("HOOK_FILE")))
	}
	os.Exit(m.Run())
}

func play(role, file string) int {
	switch role {
	case "ok":
		data, _ := io.ReadAll(os.Stdin)
		if os.WriteFile(file, data, 0o600) != nil {
			return 9
		}
	case "environment":
		if os.WriteFile(file, []byte(strings.Join(os.Environ(), "\n")), 0o600) != nil {
			return 9
		}
	case "refuse":
		io.Copy(io.Discard, os.Stdin)
		fmt.Fprint(os.Stderr, "  the tests fail\n\n")
		return 2
	case "silent":
		return 2
	case "fail":
		fmt.Fprint(os.Stderr, "no such file")
		return 3
	case "deaf": // does not read its input
	case "loud":
		os.Stdout.Write(bytes.Repeat([]byte("x"), 10<<20))
		os.Stderr.Write(bytes.Repeat([]byte("y"), 10<<20))
		return 2
	case "hang":
		signal.Notify(make(chan os.Signal, 9), os.Interrupt)
		if os.WriteFile(file+".new", []byte(strconv.Itoa(os.Getpid())), 0o600) != nil || os.Rename(file+".new", file) != nil {
			return 9
		}
		time.Sleep(time.Hour)
	case "leave":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "HOOK_TEST=hang")
		child.Stderr = os.Stderr
		if child.Start() != nil {
			return 9
		}
		for range 500 { // until the child is there
			if _, err := os.Stat(file); err == nil {
				return 0
			}
			time.Sleep(10 * time.Millisecond)
		}
		return 9
	}
	return 0
}

// made returns the hook of a role, and its file.
func made(t *testing.T, role string, after bool, timeout time.Duration) (h host.Hook, file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "file")
	return Host([]config.Hook{{Name: "h", After: after, Command: self, Env: map[string]string{"HOOK_TEST": role, "HOOK_FILE": file}, Timeout: timeout}})[0], file
}

func call(arguments string) *host.HookedCall {
	return &host.HookedCall{Conversation: "talk", CallEvent: host.CallEvent{ID: "c1", Server: "shop", Tool: "order", Arguments: json.RawMessage(arguments)}}
}

// The exit code of a command before a call decides: 0 lets it go on, 2 refuses it with standard error, anything else is a failure that
// refuses it, too. After a call, 2 has a text for the model, and other failures are errors.
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct{ role, before, text, after string }{
		{"ok", "", "", ""},
		{"deaf", "", "", ""},
		{"refuse", `hook "h": the tests fail`, "the tests fail", ""},
		{"silent", `hook "h": it gave no reason`, "", ""},
		{"fail", `hook "h" failed: exit status 3: no such file`, "", `hook "h" failed: exit status 3: no such file`},
	} {
		h, _ := made(t, tt.role, false, 0)
		if err := h.Before(t.Context(), call("{}")); fmt.Sprint(err) != orNil(tt.before) {
			t.Errorf("%s before: %v, want %s", tt.role, err, tt.before)
		}
		h, _ = made(t, tt.role, true, 0)
		if text, err := h.After(t.Context(), call("{}")); text != tt.text || fmt.Sprint(err) != orNil(tt.after) {
			t.Errorf("%s after: %q, %v, want %q, %s", tt.role, text, err, tt.text, tt.after)
		}
	}
	missing := Host([]config.Hook{{Name: "h", Command: filepath.Join(t.TempDir(), "none")}})[0]
	if err := missing.Before(t.Context(), call("{}")); err == nil || !strings.Contains(err.Error(), `hook "h" failed`) {
		t.Errorf("without its command: %v", err)
	}
}

func orNil(text string) string {
	if text == "" {
		return "<nil>"
	}
	return text
}

// The command reads one line: which hook, when, and the call with its arguments as they are sent.
func TestInput(t *testing.T) {
	h, file := made(t, "ok", false, 0)
	if err := h.Before(t.Context(), call(`{"n": 12345678901234567890, "text": "<&>"}`)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"hook":"h","when":"before","conversation":"talk","call":{"id":"c1","server":"shop","tool":"order","arguments":{"n":12345678901234567890,"text":"<&>"}}}` + "\n"
	if string(got) != want {
		t.Errorf("it reads %s, want %s", got, want)
	}
}

// Commands get the environment of servers, and not the keys of models.
func TestEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "planted-key")
	h, file := made(t, "environment", false, 0)
	if err := h.Before(t.Context(), call("{}")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(got), "planted") || !strings.Contains(strings.ToUpper(string(got)), "PATH=") {
		t.Errorf("the environment is %s (%v)", got, err)
	}
}

// Arguments of any size pass, whether the command reads them or not, and output without end is bounded.
func TestSizes(t *testing.T) {
	big := `{"text":"` + strings.Repeat("x", 100<<20) + `"}`
	for _, role := range []string{"deaf", "refuse"} {
		h, _ := made(t, role, false, 0)
		if err := h.Before(t.Context(), call(big)); (err != nil) != (role == "refuse") {
			t.Errorf("%s, with 100 MB: %.200v", role, err)
		}
	}
	h, _ := made(t, "loud", true, 0)
	if text, err := h.After(t.Context(), call("{}")); err != nil || text != strings.Repeat("y", maxSaid) {
		t.Errorf("10 MB of standard error: %d bytes, %v", len(text), err)
	}
}

// A command that hangs ends at its timeout, which refuses the call, and when the call is cancelled.
func TestHangs(t *testing.T) {
	var file string
	for timeout := time.Second; ; timeout *= 3 { // a busy machine may not have started the command within the first
		var h host.Hook
		h, file = made(t, "hang", false, timeout)
		err := h.Before(t.Context(), call("{}"))
		if want := fmt.Sprintf("hook %q has not ended within %v", "h", timeout); err == nil || err.Error() != want {
			t.Fatalf("a command that hangs: %v, want %s", err, want)
		}
		if _, err := os.Stat(file); err == nil || timeout > 20*time.Second {
			break
		}
	}
	ended(t, file)
	h, file := made(t, "hang", false, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { // ends with the test at the latest
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				cancel(errors.New("enough"))
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := h.Before(ctx, call("{}")); err == nil || err.Error() != "enough" {
		t.Errorf("a cancelled call: %v", err)
	}
	ended(t, file)
}

// Processes that a command leaves behind end with it, and do not delay the call.
func TestLeavesNothing(t *testing.T) {
	h, file := made(t, "leave", false, 0)
	began := time.Now()
	if err := h.Before(t.Context(), call("{}")); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("it ends with %v after %v", err, time.Since(began))
	}
	ended(t, file)
}

// ended waits until the process whose id is in a file has ended.
func ended(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if !alive(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// Hooks of calls at the same time run at the same time, at most 8 of them.
func TestAtOnce(t *testing.T) {
	h, _ := made(t, "refuse", false, 0)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := h.Before(t.Context(), call("{}")); err == nil || !strings.HasSuffix(err.Error(), "the tests fail") {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
