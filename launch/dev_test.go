package launch

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// TestMain makes this program a server of the tests, if they start it as one.
func TestMain(m *testing.M) {
	if os.Getenv("LAUNCH_TEST_SERVER") == "" {
		os.Exit(m.Run())
	}
	if said := os.Getenv("LAUNCH_TEST_SAYS"); said != "" {
		fmt.Fprintln(os.Stderr, said)
		os.Exit(3)
	}
	srv := &mcp.Server{Name: "child", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "self"}, func(context.Context, struct{}) (string, error) {
		return fmt.Sprint(os.Getpid(), " ", os.Args[1:]), nil
	})
	mcp.AddTool(srv, mcp.Tool{Name: "wait"}, func(ctx context.Context, in struct {
		File string `json:"file"`
	}) (string, error) {
		if err := os.WriteFile(in.File+".begun", nil, 0o600); err != nil {
			return "", err
		}
		for ctx.Err() == nil {
			if _, err := os.Stat(in.File); err == nil {
				return fmt.Sprint(os.Getpid(), " ", os.Args[1:]), nil
			}
			time.Sleep(20 * time.Millisecond)
		}
		return "", ctx.Err()
	})
	greedy(srv)
	if err := srv.ServeStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func put(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A look names a file of the patterns that was changed, added or removed since the last look.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	put(t, "1", dir, "src", "a", "b.ts")
	put(t, "1", dir, "src", "b.test.ts")
	put(t, "1", dir, "src", "node_modules", "c.ts")
	put(t, "1", dir, "main.py")
	put(t, "1", dir, "lib", "deep", "main.py")
	s := newSources(config.Dev{Dir: dir, Watch: []string{"src/**/*.ts", "*.py", "!**/*.test.ts", "gone/*.x"}})
	steps := []struct {
		path, text, want string
	}{
		{"src/a/b.ts", "22", "src/a/b.ts"},
		{"src/b.test.ts", "22", ""},
		{"src/node_modules/c.ts", "22", ""},
		{"lib/deep/main.py", "22", ""},
		{"src/new/x.ts", "1", "src/new/x.ts"},
		{"src/new/x.js", "1", ""},
		{"main.py", "", "main.py"}, // removed
		{"gone/y.x", "1", "gone/y.x"},
	}
	for _, step := range steps {
		if step.text == "" {
			os.Remove(filepath.Join(dir, step.path))
		} else {
			put(t, step.text, dir, step.path)
		}
		if got := s.look(); got != step.want {
			t.Errorf("after a change of %s look = %q, want %q", step.path, got, step.want)
		}
		if got := s.look(); got != "" {
			t.Errorf("without a change look = %q", got)
		}
	}
	if slices.Contains(s.folders, filepath.Join(dir, "lib", "deep")) || slices.Contains(s.folders, filepath.Join(dir, "src", "node_modules")) {
		t.Errorf("the folders %q are watched", s.folders)
	}
}

// The number of watched folders is bounded.
func TestSourcesBound(t *testing.T) {
	dir := t.TempDir()
	for i := range maxFolders + 10 {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if s := newSources(config.Dev{Dir: dir, Watch: []string{"**"}}); !s.tooMany || len(s.folders) > maxFolders {
		t.Errorf("%d folders are watched, tooMany is %v", len(s.folders), s.tooMany)
	}
}

func TestPythonOptions(t *testing.T) {
	for args, want := range map[string]int{
		"server.py -x": 0, "-u server.py": 1, "-X dev -u -m mod -v": 3, "-m mod": 0, "-c pass": 0, "-W": 1, "": 0, "-": 0,
	} {
		if got := pythonOptions(strings.Fields(args)); got != want {
			t.Errorf("pythonOptions(%q) = %d, want %d", args, got, want)
		}
	}
}

// serveDev serves one command and returns a session with the gateway, and what Env.Note said.
func serveDev(t *testing.T, entry config.Server) (*Servers, *mcp.Session, chan string) {
	t.Helper()
	notes := make(chan string, 100)
	g := &gateway.Gateway{Name: "g", Version: "1"}
	s := &Servers{Env: &Env{Note: func(text string) { notes <- text }}, Gateway: g, Dev: true}
	t.Cleanup(s.Close)
	entry.Env = map[string]string{"LAUNCH_TEST_SERVER": "1"}
	s.Set([]config.Server{entry}, nil, "")
	session, err := (&mcp.Client{Name: "test", Version: "1"}).Open(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return s, session, notes
}

func call(t *testing.T, session *mcp.Session, tool string, args any) string {
	t.Helper()
	res, err := session.CallTool(t.Context(), tool, args)
	if err != nil {
		t.Fatal(err)
	}
	return res.Text()
}

// A change of the sources restarts the server. A call in progress finishes on the old process.
func TestWatchRestarts(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, "1", dir, "src", "a.js")
	_, session, notes := serveDev(t, config.Server{Name: "s", Command: exe, Dev: config.Dev{Dir: dir, Watch: []string{"src/*.js"}}})
	first := call(t, session, "s_self", nil)
	release := filepath.Join(dir, "release")
	slow := make(chan string)
	go func() {
		defer close(slow)
		res, err := session.CallTool(t.Context(), "s_wait", map[string]any{"file": release})
		if err != nil {
			slow <- err.Error()
			return
		}
		slow <- res.Text()
	}()
	soon(t, "the call begins", func() bool { _, err := os.Stat(release + ".begun"); return err == nil }) // else the new process may get it
	put(t, "22", dir, "src", "other.txt")
	put(t, "22", dir, "src", "a.js")
	if got := <-notes; got != "s: restarting, because src/a.js has changed" {
		t.Errorf("note %q", got)
	}
	for first == call(t, session, "s_self", nil) {
		time.Sleep(20 * time.Millisecond)
	}
	put(t, "", release)
	if got := <-slow; got != first {
		t.Errorf("the call in progress returned %q, want %q of the old process", got, first)
	}
}

// A command is started under its debugger, whose address is said; another command is a fault.
func TestDebug(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	named := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		path := filepath.Join(t.TempDir(), name)
		in, err := os.Open(exe)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, in); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		command, kind, args, want string
	}{
		{named("node"), "node", "server.js", "[--inspect=ADDR server.js]"},
		{named("python3.12"), "debugpy", "-u server.py x", "[-u -m debugpy --listen ADDR server.py x]"},
	}
	for _, tt := range tests {
		s, session, notes := serveDev(t, config.Server{Name: "s", Command: tt.command, Args: strings.Fields(tt.args), Dev: config.Dev{Dir: t.TempDir(), Debug: tt.kind}})
		_, args, _ := strings.Cut(call(t, session, "s_self", nil), " ")
		ports := s.Debuggers("s")
		if len(ports) != 1 || !strings.HasPrefix(ports[0], "127.0.0.1:") {
			t.Fatalf("debuggers %q", ports)
		}
		if got := strings.ReplaceAll(args, ports[0], "ADDR"); got != tt.want {
			t.Errorf("%s got the arguments %s, want %s", tt.kind, got, tt.want)
		}
		if got, want := <-notes, "s: attach a debugger ("+tt.kind+") to "+ports[0]; got != want {
			t.Errorf("note %q, want %q", got, want)
		}
	}
	_, _, err = (&Servers{Env: &Env{}, Dev: true}).debugged(config.Server{Name: "s", Command: "npx", Dev: config.Dev{Debug: "node"}})
	if err == nil || err.Error() != `node cannot debug the command "npx"; correct it, or remove "debug"` {
		t.Errorf("npx under node: %v", err)
	}
}
