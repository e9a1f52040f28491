package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// testRun selects the program that the test binary runs as, when a test starts it again.
const testRun = "PATCHBAY_TEST_RUN"

// testClock is how far the clock of that program goes before the right time.
const testClock = "PATCHBAY_TEST_CLOCK"

// skewClock changes the clock of this process, and is nil where tests cannot do that.
var skewClock func(by time.Duration) error

// testSoon, if set, makes up print its table as soon as it does for people.
const testSoon = "PATCHBAY_TEST_SOON"

func TestMain(m *testing.M) {
	switch os.Getenv(testRun) {
	case "patchbay":
		if os.Getenv(testSoon) == "" {
			startTime = 15 * time.Second // the machine may be busy
		}
		if by := os.Getenv(testClock); by != "" {
			if err := clockBy(by); err != nil {
				log.Fatal(err)
			}
		}
		main()
	case "stub":
		stub()
		return
	}
	testscript.Main(m, map[string]func(){"patchbay": main, "stub": stub})
}

// clockBy changes the clock of this process by a duration.
func clockBy(text string) error {
	by, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	before := time.Now()
	if err := skewClock(by); err != nil {
		return err
	}
	if d := time.Now().Round(0).Sub(before.Round(0)) - by; d.Abs() > time.Second/2 {
		return fmt.Errorf("the clock differs by %v", by+d)
	}
	if d := time.Since(before); d < 0 || d > time.Second/2 {
		return fmt.Errorf("a moment lasts %v", d)
	}
	return nil
}

// stub is a server for the tests, with features that the built-in ones lack.
func stub() {
	if len(os.Args) > 1 && os.Args[1] == "die" {
		fmt.Fprintln(os.Stderr, "stub: no configuration\nstub: giving up")
		os.Exit(3)
	}
	if len(os.Args) > 1 && os.Args[1] == "loud" {
		fmt.Println("stub: ready") // on the stream for messages
	}
	if len(os.Args) > 1 && os.Args[1] == "prints" {
		for i := range 20 {
			fmt.Println("line", i)
		}
	}
	fmt.Fprintln(os.Stderr, "stub: hello")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	last := len(os.Args) - 1
	switch kind := os.Args[min(1, last)]; kind {
	case "killed":
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		fmt.Fprintln(os.Stderr, err)
	case "deaf": // ends neither with its input nor by SIGTERM
		signal.Ignore(syscall.SIGTERM)
		newStub().ServeStdio(context.Background())
		time.Sleep(time.Hour)
	case "tidy": // takes its time at the end of its input, and notes that it has got so far
		newStub().ServeStdio(ctx)
		fmt.Fprintln(os.Stderr, "stub: tidying up")
		time.Sleep(300 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "stub: done")
		os.WriteFile(os.Args[last], []byte("tidy"), 0o600)
	case "env":
		s := newStub()
		type variable struct {
			Name string `json:"name"`
		}
		mcp.AddTool(s, mcp.Tool{Name: "env"}, func(_ context.Context, in variable) (string, error) { return os.Getenv(in.Name), nil })
		s.ServeStdio(ctx)
	case "large":
		newLarge().ServeStdio(ctx)
	case "stuck":
		s, out := newStub(), os.Stdout // ServeStdio's own writer is not accessible
		if len(os.Args) > 2 {
			s.Revisions = []mcp.Revision{mcp.Revision(os.Args[last])}
		}
		mcp.AddTool(s, mcp.Tool{Name: "pid"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint(os.Getpid()), nil })
		mcp.AddTool(s, mcp.Tool{Name: "flood"}, func(context.Context, struct{}) (string, error) { // a line without an end
			for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
				if _, err := out.Write(chunk); err != nil {
					return "", err
				}
			}
		})
		s.ServeStdio(ctx)
	default:
		newStub().ServeStdio(ctx)
	}
}

// newLarge has a tool whose result is as long as the caller wants.
func newLarge() *mcp.Server {
	s := newStub()
	type size struct {
		Bytes int `json:"bytes"`
	}
	mcp.AddTool(s, mcp.Tool{Name: "large"}, func(_ context.Context, in size) (string, error) {
		return strings.Repeat("0123456789\n", in.Bytes/11+1)[:in.Bytes], nil
	})
	return s
}

func newStub() *mcp.Server {
	s := &mcp.Server{Name: "stub", Version: "7", Limits: mcp.Limits{PageSize: 2}}
	object := func(name, description, properties string) mcp.Tool {
		return mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":` + properties + `}`)}
	}
	handle := func(t mcp.Tool, h func(context.Context, json.RawMessage) (*mcp.ToolResult, error)) {
		if err := s.HandleTool(t, h); err != nil {
			panic(err)
		}
	}
	text := func(s string) *mcp.ToolResult { return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(s)}} }
	handle(object("args", "Returns its arguments as they came.\n\nNot more.", `{
		"count": {"type": "integer", "minimum": 1},
		"ratio": {"type": "number"},
		"on": {"type": "boolean"},
		"size": {"type": "string", "enum": ["small", "large"]},
		"tags": {"type": "array", "items": {"type": "string"}},
		"primes": {"type": "array", "items": {"type": "integer"}},
		"text": {"type": "string"},
		"more": {"type": "object"}
	}`), func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		return text(string(args)), nil
	})
	handle(object("free", "Takes anything.", `{}`), func(_ context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		return &mcp.ToolResult{Content: []mcp.Content{}, Structured: args}, nil
	})
	handle(object("colour", "Returns text that a terminal would obey.", `{}`), func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
		return text("\x1b[31mred\x1b[0m"), nil
	})
	handle(object("exit", "Ends the process.", `{}`), func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
		fmt.Fprintln(os.Stderr, "stub: the disk is full")
		os.Exit(9)
		return nil, nil
	})
	handle(object("hang", "Waits until it is cancelled.", `{"ready": {"type": "string"}, "until": {"type": "string"}}`), func(ctx context.Context, args json.RawMessage) (*mcp.ToolResult, error) {
		var in struct{ Ready, Until string }
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		if in.Ready != "" {
			if err := os.WriteFile(in.Ready, nil, 0o600); err != nil {
				return nil, err
			}
		}
		for {
			if _, err := os.Stat(in.Until); in.Until != "" && err == nil {
				return text("it exists"), nil
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(10 * time.Millisecond): // files tell nobody
			}
		}
	})
	return s
}

// TestScripts runs the program as a person does: each script has the input, the output of each
// stream, and the exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
			e.Setenv("USERPROFILE", home)
			e.Setenv("APPDATA", filepath.Join(home, ".config"))
			e.Setenv("LOCALAPPDATA", filepath.Join(home, ".local"))
			e.Setenv("COLUMNS", "80")
			wants := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer secret-token" {
					w.Header().Set("WWW-Authenticate", `Bearer realm="stub"`)
					http.Error(w, "who are you?", http.StatusUnauthorized)
					return
				}
				stubHTTP.ServeHTTP(w, r)
			})
			srv := httptest.NewServer(wants)
			e.Defer(srv.Close)
			e.Setenv("LOCKED", srv.URL+"/mcp")
			e.Setenv("LOCKED_HOST", srv.Listener.Addr().String())
			secure := httptest.NewUnstartedServer(stubHTTP)
			secure.Config.ErrorLog = log.New(io.Discard, "", 0) // errors of clients that speak http
			secure.StartTLS()
			e.Defer(secure.Close)
			e.Setenv("TLS", strings.Replace(secure.URL, "https:", "http:", 1)+"/mcp")
			page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<!doctype html><title>a page</title>")
			}))
			e.Defer(page.Close)
			e.Setenv("PAGE", page.URL)
			guard := &guarded{}
			guard.Server = httptest.NewUnstartedServer(guard)
			guard.Start()
			e.Defer(guard.Close)
			e.Setenv("GUARDED", guard.URL+"/mcp")
			e.Setenv("PATCHBAY_KEYRING", "off")
			web := newStub()
			sockets := httptest.NewServer(web.WebSocket())
			e.Defer(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				web.Shutdown(ctx)
				sockets.Close()
			})
			e.Setenv("WS", "ws"+strings.TrimPrefix(sockets.URL, "http"))
			free, err := freeport.Addr()
			e.Setenv("FREE", free)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "listening": listening, "awaits": awaits, "bearer": bearer, "model": scriptedModel, "visits": visits},
	})
}

var stubHTTP = newStub()

// exits runs a command and checks its exit code: exits CODE COMMAND ARGS.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %v", err)
	}
	got := 0
	if err := wine.Retry(func() error { return ts.Exec(args[1], args[2:]...) }); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("exits: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exited with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// awaits waits until a file that another process writes matches a regular expression: awaits REGEXP
// FILE.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[0])
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // there is no event for files
		text, _ := os.ReadFile(ts.MkAbs(args[1])) // it may not exist yet
		if want.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has no %s within 20 s: %s", args[1], args[0], text)
		}
	}
}

// bearer sets a variable to the header for the credential in a file: bearer NAME FILE.
func bearer(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], "Authorization: Bearer "+strings.TrimSpace(ts.ReadFile(args[1])))
}

// scriptedModel serves a script of package modeltest as models of OpenAI: model FILE.
func scriptedModel(ts *testscript.TestScript, _ bool, args []string) {
	script, err := modeltest.Load(ts.MkAbs(args[0]))
	if err != nil {
		ts.Fatalf("model: %v", err)
	}
	srv := httptest.NewServer(modeltest.Handler(script))
	ts.Defer(srv.Close)
	ts.Setenv("OPENAI_BASE_URL", srv.URL+"/v1")
	ts.Setenv("OPENAI_API_KEY", "key-of-the-test")
}

// visits waits for the link of a login in a file, and opens it like a browser: visits FILE.
func visits(ts *testscript.TestScript, _ bool, args []string) {
	awaits(ts, false, []string{`^  http`, args[0]})
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	if err != nil {
		ts.Fatalf("visits: %v", err)
	}
	_, page, _ := strings.Cut(string(text), "\n  http")
	page, _, _ = strings.Cut(page, "\n")
	(&visitor{}).visit("http" + page)
}

// listening waits until an address accepts connections.
func listening(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		c, err := net.DialTimeout("tcp", args[0], time.Second)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("nobody listens on %s: %v", args[0], err)
		}
		time.Sleep(10 * time.Millisecond) // there is no event for another process
	}
}
