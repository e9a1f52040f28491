//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// serve is the first argument that makes this program an MCP server; the second is its number of tools.
const serve = "__serve"

// patience bounds what is waited for.
const patience = 20 * time.Second

func main() {
	if len(os.Args) == 3 && os.Args[1] == serve {
		if err := server(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	program := flag.String("patchbay", "", "measure this program (default: it is built)")
	rounds := flag.Int("n", 15, "number of `runs` of each case")
	only := flag.String("only", "", "measure only cases whose name has this `text`")
	flag.Parse()
	if err := measure(*program, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func server(tools string) error {
	n, err := strconv.Atoi(tools)
	if err != nil {
		return err
	}
	s := &mcp.Server{Name: "bench", Version: "1"}
	for i := range n {
		err := s.HandleTool(mcp.Tool{
			Name:        fmt.Sprintf("look_%d", i),
			Description: fmt.Sprintf("Looks up one of many things, the %dth. ", i) + strings.Repeat("It explains itself at length. ", 8),
			InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"what is looked up"},"depth":{"type":"integer"}},"required":["name"]}`),
		}, func(context.Context, json.RawMessage) (*mcp.ToolResult, error) {
			return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("found")}}, nil
		})
		if err != nil {
			return err
		}
	}
	return s.ServeStdio(context.Background())
}

// provider is the server of a model, with the API of Chat Completions. The first token of each answer is
// a word of its own; the rest follows when the word was shown.
type provider struct {
	*httptest.Server

	mu    sync.Mutex
	n     int           // answers so far; guarded by mu
	asked []time.Time   // when requests came; guarded by mu
	sent  time.Time     // when the word was sent; guarded by mu
	rest  chan struct{} // lets the rest of the answer follow
}

// word returns the first token of the nth answer, from 1. It has no letter in common with the one before, so that a
// screen that changes is written whole.
func word(n int) string { return []string{"ababab", "xyxyxy"}[n%2] }

func newProvider() *provider {
	p := &provider{rest: make(chan struct{}, 1)}
	p.Server = httptest.NewServer(p)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	came := time.Now()
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
		http.NewResponseController(w).Flush()
	}
	send(`{"role":"assistant","content":""}`, "null")
	p.mu.Lock()
	p.n++
	p.asked = append(p.asked, came)
	first := fmt.Sprintf(`{"content":%q}`, word(p.n))
	p.sent = time.Now()
	p.mu.Unlock()
	send(first, "null")
	select {
	case <-p.rest:
	case <-r.Context().Done():
		return
	}
	send(`{"content":" and more of it.\n"}`, "null")
	send(`{}`, `"stop"`)
	fmt.Fprint(w, `data: {"choices":[],"usage":{"prompt_tokens":500,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
}

// first waits for the nth request, from 0.
func (p *provider) first(n int) (came time.Time, err error) {
	err = until("a request comes", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.asked) <= n || p.sent.IsZero() {
			return false
		}
		came = p.asked[n]
		return true
	})
	return came, err
}

func until(what string, is func() bool) error {
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond / 2) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not so within %v: %s", patience, what)
		}
	}
	return nil
}

// screen keeps what a program writes, and when its latest word came.
type screen struct {
	mu   sync.Mutex
	text []byte    // guarded by mu
	want string    // guarded by mu
	seen time.Time // when want came; zero: it has not; guarded by mu
}

func (s *screen) Write(p []byte) (int, error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	if s.want != "" && s.seen.IsZero() && bytes.Contains(s.text, []byte(s.want)) {
		s.seen = now
	}
	return len(p), nil
}

// expects begins to look for a text in what comes.
func (s *screen) expects(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.want, s.seen = nil, text, time.Time{}
}

func (s *screen) when() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// sample is what a run of the program took; a negative value was not measured.
type sample struct {
	start, token time.Duration
	megabytes    float64
}

// use is a way to use the program.
type use struct {
	name           string
	args           []string
	servers, tools int  // number of servers, and of the tools of each
	terminal       bool // standard streams are one
	turns          int
	start, token   bool // what is measured: until the first request, until the first token is shown
	memory         bool // the most that the program takes
}

var uses = []use{
	{name: "run, 1 server", args: []string{"run", "hello"}, servers: 1, tools: 10, start: true},
	{name: "run, 5 servers", args: []string{"run", "hello"}, servers: 5, tools: 10, start: true},
	{name: "chat, 1 server", args: []string{"chat", "hello"}, servers: 1, tools: 10, terminal: true, start: true, token: true},
	{name: "chat, 5 servers", args: []string{"chat", "hello"}, servers: 5, tools: 10, terminal: true, start: true, token: true},
	{name: "run at a terminal", args: []string{"run", "hello"}, servers: 1, tools: 10, terminal: true, token: true},
	{name: "run --json", args: []string{"run", "hello", "--json"}, servers: 1, tools: 10, token: true},
	{name: "run, 300 tools", args: []string{"run", "hello"}, servers: 3, tools: 100, memory: true},
	{name: "chat, 300 tools", args: []string{"chat", "hello"}, servers: 3, tools: 100, terminal: true, memory: true},
	{name: "chat, 300 tools, 50 turns", args: []string{"chat", "hello"}, servers: 3, tools: 100, terminal: true, turns: 50, memory: true},
}

func measure(program string, rounds int, only string) error {
	dir, err := os.MkdirTemp("", "patchbay-bench-host-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program = filepath.Join(dir, "patchbay")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/patchbay-dev/patchbay/cmd/patchbay")
		build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	fmt.Printf("%-27s%26s%26s%26s\n", "", "to the first request", "until a token is shown", "memory")
	for _, u := range uses {
		if !strings.Contains(u.name, only) {
			continue
		}
		n := rounds
		if u.turns > 1 {
			n = min(rounds, 3)
		}
		home, err := os.MkdirTemp(dir, "home-")
		if err != nil {
			return err
		}
		var list []sample
		for i := range n + 1 {
			s, err := u.once(program, home)
			if err != nil {
				return fmt.Errorf("%s: %w", u.name, err)
			}
			if i > 0 { // the first one creates the database of conversations, and other files
				list = append(list, s)
			}
		}
		fmt.Printf("%-27s%26s%26s%26s\n", u.name,
			cell(list, u.start, func(s sample) float64 { return s.start.Seconds() * 1000 }, "ms"),
			cell(list, u.token, func(s sample) float64 { return s.token.Seconds() * 1000 }, "ms"),
			cell(list, u.memory, func(s sample) float64 { return s.megabytes }, "MB"))
	}
	return nil
}

// cell words the median, the least and the greatest value of samples.
func cell(list []sample, measured bool, of func(sample) float64, unit string) string {
	if !measured {
		return "-"
	}
	var values []float64
	for _, s := range list {
		values = append(values, of(s))
	}
	slices.Sort(values)
	return fmt.Sprintf("%.1f (%.1f to %.1f) %s", values[len(values)/2], values[0], values[len(values)-1], unit)
}

// once runs the program once.
func (u use) once(program, home string) (s sample, err error) {
	p := newProvider()
	defer p.Close()
	defer p.CloseClientConnections()
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	servers := map[string]any{}
	for i := range u.servers {
		servers[fmt.Sprintf("server%d", i)] = map[string]any{"command": self, "args": []string{serve, strconv.Itoa(u.tools)}}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return s, err
	}
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return s, err
	}
	cmd := exec.Command(program, append(u.args, "-m", "openai/gpt-5", "--config", file)...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TERM=xterm-256color", "OPENAI_BASE_URL=" + p.URL + "/v1", "OPENAI_API_KEY=key"}
	out := &screen{}
	keyboard := io.Discard
	if u.terminal {
		person, other, err := terminal()
		if err != nil {
			return s, err
		}
		defer person.Close()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = other, other, other
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		keyboard = person
		go io.Copy(out, person) // ends with the terminal
		defer other.Close()
	} else {
		cmd.Stdout = out
	}
	out.expects(word(1))
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	defer cmd.Process.Kill()
	came, err := p.first(0)
	if err != nil {
		return s, fmt.Errorf("%w; it wrote %q", err, out.text)
	}
	s.start = came.Sub(began)
	shows := u.terminal || slices.Contains(u.args, "--json")
	for turn := 0; ; turn++ {
		if shows {
			if err := until("the token is shown", func() bool { return !out.when().IsZero() }); err != nil {
				return s, fmt.Errorf("%w; it wrote %q", err, out.text)
			}
			p.mu.Lock()
			s.token = out.when().Sub(p.sent)
			p.mu.Unlock()
		}
		out.expects("more of it.")
		p.rest <- struct{}{}
		if u.terminal {
			if err := until("the answer is shown", func() bool { return !out.when().IsZero() }); err != nil {
				return s, err
			}
		}
		if turn+1 >= u.turns {
			break
		}
		out.expects(word(turn + 2))
		fmt.Fprintf(keyboard, "and what about number %d?\r", turn)
	}
	if u.terminal && u.args[0] == "chat" {
		if s.megabytes, err = peak(cmd.Process.Pid); err != nil {
			return s, err
		}
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		return s, nil
	}
	if err := cmd.Wait(); err != nil {
		return s, fmt.Errorf("%w; it wrote %q", err, out.text)
	}
	s.megabytes = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
	return s, nil
}

// peak returns the most memory that a process took, in MB.
func peak(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		return 0, errors.New("no VmHWM")
	}
	kB, err := strconv.ParseFloat(string(m[1]), 64)
	return kB / 1024, err
}
