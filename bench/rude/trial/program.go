//go:build linux

package trial

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program is the patchbay under trial.
type Program struct {
	Command []string // the program and its first arguments
	Env     []string // added to the environment of this process
}

// readyTime bounds the start of a program.
const readyTime = 30 * time.Second

// run is one started "up".
type run struct {
	cmd     *exec.Cmd
	marker  string // NAME=value in the environment of all its descendants
	dir     string // removed by stop
	address string // host:port, set when listening is closed
	said    said

	listening chan struct{} // closed when address is known
	shown     chan struct{} // closed when the table was printed
	ended     chan struct{}
}

// said keeps the standard error of a program.
type said struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() < 64<<10 {
		s.text.Write(p)
	}
	return len(p), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// servers are the program's servers. They run the program itself and a shell.
func (p Program) servers() map[string]any {
	words := make([]string, 0, len(p.Command)+2)
	for _, w := range append(p.Command, "serve", "everything") {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	serve := strings.Join(words, " ")
	shell := func(script string, more ...any) map[string]any {
		s := map[string]any{
			"command": "sh", "args": []string{"-c", strings.ReplaceAll(script, "SERVE", serve)},
			"patchbay": map[string]any{"inheritEnv": true}, // for the marker, and the variable that makes a test binary the program
		}
		for i := 0; i+1 < len(more); i += 2 {
			s[more[i].(string)] = more[i+1]
		}
		return s
	}
	return map[string]any{
		"plain": shell(`exec SERVE`),
		"deaf":  shell(`trap '' TERM HUP INT; SERVE; sleep 1000`),
		"forks": shell(`sleep 1000 & setsid sleep 1000 & (setsid sh -c 'trap "" TERM; sleep 1000; :' &); exec SERVE`),
		"each":  shell(`exec SERVE`, "patchbay", map[string]any{"inheritEnv": true, "share": "session", "idle": "500ms"}),
		"slow":  shell(`sleep 0.7; exec SERVE`),
		"dies":  shell(`sleep 1000 & echo no configuration >&2; exit 3`),
		"here":  map[string]any{"builtin": "everything"},
	}
}

// start starts "up" on any free port.
func (p Program) start(ctx context.Context) (*run, error) {
	dir, err := os.MkdirTemp("", "rude")
	if err != nil {
		return nil, err
	}
	r := &run{
		marker: "PATCHBAY_TRIAL=" + rand.Text(), dir: dir,
		listening: make(chan struct{}), shown: make(chan struct{}), ended: make(chan struct{}),
	}
	config, err := json.Marshal(map[string]any{"mcpServers": p.servers()})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	r.cmd = exec.CommandContext(ctx, p.Command[0], append(p.Command[1:len(p.Command):len(p.Command)], "up", "--http", "127.0.0.1:0", "--config", file)...)
	r.cmd.Env = append(append(os.Environ(), p.Env...), r.marker, "XDG_RUNTIME_DIR="+dir)
	r.cmd.Stderr = &r.said
	r.cmd.WaitDelay = time.Second
	// Any end of this process ends the program.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	go func() { // ends with the program
		defer close(r.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := served.FindStringSubmatch(lines.Text()); m != nil && r.address == "" {
				r.address = m[1]
				close(r.listening)
			}
			if strings.HasPrefix(lines.Text(), "ctrl-C") {
				close(r.shown)
			}
		}
		r.cmd.Wait()
	}()
	return r, nil
}

var served = regexp.MustCompile(` serves http://([^/]+)/`)

// await waits for a stage of the program's start.
func (r *run) await(ctx context.Context, so <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTime, fmt.Errorf("the program was not ready within %v", readyTime))
	defer cancel()
	select {
	case <-so:
		return nil
	case <-r.ended:
		return fmt.Errorf("the program ended: %v; it said: %s", r.cmd.ProcessState, &r.said)
	case <-ctx.Done():
		return fmt.Errorf("%w; it said: %s", context.Cause(ctx), &r.said)
	}
}

// stop kills the remaining processes of the program.
func (r *run) stop() {
	r.cmd.Process.Kill()
	<-r.ended
	for _, p := range marked(r.marker) {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	os.RemoveAll(r.dir)
}
