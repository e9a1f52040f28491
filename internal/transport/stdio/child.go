package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/nonblock"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// The steps of ending a child (2026-07-28, basic/transports/stdio, Shutdown).
const (
	// Some servers keep timers running and never exit at the end of their input. The first wait for
	// them is short, because it delays every one-shot command.
	eofGrace  = 500 * time.Millisecond
	termGrace = 2 * time.Second
	killGrace = time.Second

	// CloseTime bounds the end of a child.
	CloseTime = eofGrace + termGrace + killGrace
)

// lingering bounds the wait for the last output of a child that has ended while another process
// holds its standard output.
const lingering = 500 * time.Millisecond

// Child is a server running as a child process. It owns a goroutine that waits
// for the process, finished when the process has ended.
type Child struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	tail   tail
	group  group
	conn   jsonrpc.Conn

	exited  chan struct{} // closed when the process has ended
	waitErr error         // set before exited is closed
	once    sync.Once
}

// Start starts cmd with its standard input and output as the connection. The caller must leave
// cmd.Stdin and cmd.Stdout nil. The child's standard error goes to cmd.Stderr, if set; its last
// lines are kept for [Child.Explain]. The tap, which may be nil, gets the start and end of the
// process and each line of its standard error.
func Start(cmd *exec.Cmd, maxFrame int, tap *engine.Tap) (*Child, error) {
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("the command's Stdin and Stdout are the connection; leave them nil")
	}
	c := &Child{cmd: cmd, exited: make(chan struct{})}
	if err := c.group.prepare(cmd); err != nil {
		return nil, err
	}
	if err := c.pipes(); err != nil {
		return nil, err
	}
	said := []io.Writer{&c.tail}
	var lines *lineTap
	if tap != nil {
		lines = &lineTap{tap: tap}
		said = append(said, lines)
	}
	if cmd.Stderr != nil {
		said = append(said, cmd.Stderr)
	}
	cmd.Stderr = io.MultiWriter(said...)
	// Wait must not hang on a grandchild that keeps standard error open.
	cmd.WaitDelay = lingering

	started := make(chan error, 1)
	go func() {
		// The kernel's parent-death signal follows the thread that forked, so
		// that thread has to live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		if err == nil {
			err = c.group.started(c.cmd)
		}
		if err == nil {
			tap.Frame(trace.Frame{Kind: trace.KindStart, Dir: trace.Out, Note: fmt.Sprintf("pid %d", c.cmd.Process.Pid), Args: c.cmd.Args})
		}
		started <- err
		if err != nil {
			return
		}
		c.waitErr = c.cmd.Wait()
		if tap != nil {
			lines.flush()
			tap.Frame(trace.Frame{Kind: trace.KindExit, Dir: trace.In, Note: c.cmd.ProcessState.String()})
		}
		close(c.exited)
	}()
	err := <-started
	// The child has its own copies of these.
	cmd.Stdin.(*os.File).Close()
	cmd.Stdout.(*os.File).Close()
	if err != nil {
		c.stdin.Close()
		c.stdout.Close()
		if c.cmd.Process != nil {
			c.cmd.Process.Kill()
		}
		return nil, err
	}
	// The end of the process ends the connection, even if another process holds the other end of
	// the pipe.
	go func() {
		<-c.exited
		time.AfterFunc(lingering, func() { c.stdout.Close() })
	}()
	c.conn = jsonrpc.NewLineConn(nonblock.Pipe(c.stdout), nonblock.Pipe(c.stdin), c.close, maxFrame)
	return c, nil
}

func (c *Child) pipes() error {
	in, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		in.Close()
		stdin.Close()
		return err
	}
	c.stdin, c.stdout = stdin, stdout
	c.cmd.Stdin, c.cmd.Stdout = in, out
	return nil
}

// Name returns the name of a command, which is not always the file that is run.
func Name(cmd *exec.Cmd) string {
	if len(cmd.Args) > 0 && cmd.Args[0] != "" {
		return cmd.Args[0]
	}
	return cmd.Path
}

// Conn returns the connection to the child. Closing it ends the child.
func (c *Child) Conn() jsonrpc.Conn { return c.conn }

// Explain adds the exit state of the process and its last lines of standard error to err.
func (c *Child) Explain(err error) error {
	select {
	case <-c.exited:
	case <-time.After(lingering):
		return err
	}
	e := &ExitError{Command: Name(c.cmd), Stderr: c.tail.String(), Err: err}
	if c.cmd.ProcessState != nil {
		e.State = c.cmd.ProcessState.String()
	}
	return e
}

// close ends the process: end of input, then TERM to its group, then KILL.
func (c *Child) close() error {
	c.once.Do(func() {
		c.stdin.Close()
		if !c.wait(eofGrace) {
			c.group.terminate(c.cmd)
			if !c.wait(termGrace) {
				c.group.kill(c.cmd)
				c.wait(killGrace)
			}
		}
		// Processes that the child started end with it.
		c.group.kill(c.cmd)
		c.stdout.Close()
	})
	return nil
}

func (c *Child) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.exited:
		return true
	case <-t.C:
		return false
	}
}

// ExitError reports how a child process ended.
type ExitError struct {
	Command string
	State   string // "exit status 1", "signal: killed"
	Stderr  string // its last lines, bounded
	Err     error  // the first error noticed
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("%q ended: %s", e.Command, e.State)
	if e.Stderr != "" {
		s += fmt.Sprintf("; it last said: %q", e.Stderr)
	}
	return s
}

func (e *ExitError) Unwrap() error { return e.Err }

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "�"))
}
