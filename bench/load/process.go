//go:build linux

package load

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitUnsupported is the exit status of a program that does not support a mode.
const exitUnsupported = 64

// A Process is a program under test. Close ends it.
type Process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File // our ends of its standard streams, nil without
	stderr        tail
	family        []int // ids of it and of the processes that it started
	ended         chan struct{}
	status        error // set when ended is closed
}

// start runs a program until ctx ends or Close. With pipes, its standard input and output
// are ours.
func start(ctx context.Context, pipes bool, argv []string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, argv[0], argv[1:]...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	if pipes {
		in, farIn, err := blockingPipe(true)
		if err != nil {
			return nil, err
		}
		out, farOut, err := blockingPipe(false)
		if err != nil {
			in.Close()
			farIn.Close()
			return nil, err
		}
		p.stdin, p.stdout, p.cmd.Stdin, p.cmd.Stdout = in, out, farIn, farOut
		defer farIn.Close()
		defer farOut.Close()
	}
	if err := p.cmd.Start(); err != nil {
		p.closePipes()
		return nil, err
	}
	p.family = []int{p.cmd.Process.Pid}
	go func() { // it ends with the process
		p.status = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// blockingPipe returns a pipe whose ends block in the kernel. The files that os.Pipe makes
// go through the poller of the runtime, which adds the cost of parking a goroutine to each
// read.
func blockingPipe(writes bool) (near, far *os.File, err error) {
	var fd [2]int
	if err := syscall.Pipe2(fd[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	r, w := os.NewFile(uintptr(fd[0]), "pipe"), os.NewFile(uintptr(fd[1]), "pipe")
	if writes {
		return w, r, nil
	}
	return r, w, nil
}

func (p *Process) closePipes() {
	if p.stdin != nil {
		p.stdin.Close()
		p.stdout.Close()
	}
}

// Close ends the process: it closes its input, asks it to end, and kills it after 2 seconds.
// An exit status other than 0 is not an error here.
func (p *Process) Close() {
	if p.stdin != nil {
		p.stdin.Close()
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(2 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
	if p.stdout != nil {
		p.stdout.Close()
	}
}

// explain adds the output of the process to err, if it has ended.
func (p *Process) explain(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-p.ended:
	case <-time.After(200 * time.Millisecond):
		return err
	}
	if p.cmd.ProcessState.ExitCode() == exitUnsupported {
		return ErrUnsupported
	}
	return fmt.Errorf("%s ended (%v), saying %q: %w", filepath.Base(p.cmd.Path), p.status, p.stderr.String(), err)
}

// Adopt finds the processes that p started, which count as p from then on.
func (p *Process) Adopt() error {
	parents, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	children := map[int][]int{}
	for _, file := range parents {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, parent, ok := parseStat(b)
		if ok {
			children[parent] = append(children[parent], pid)
		}
	}
	for i := 0; i < len(p.family); i++ {
		p.family = append(p.family, children[p.family[i]]...)
	}
	return nil
}

// parseStat reads /proc/PID/stat.
func parseStat(b []byte) (pid, parent int, ok bool) {
	head, _, _ := bytes.Cut(b, []byte(" "))
	i := bytes.LastIndexByte(b, ')') // the name may contain anything
	rest := bytes.Fields(b[i+1:])
	if i < 0 || len(rest) < 2 {
		return 0, 0, false
	}
	pid, err := strconv.Atoi(string(head))
	if err != nil {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(rest[1]))
	return pid, parent, err == nil
}

// CPU returns the CPU time that the process has used, to the nanosecond.
func (p *Process) CPU() time.Duration {
	var sum time.Duration
	for _, pid := range p.family {
		var t unix.Timespec
		// The clock of a process: CPUCLOCK_SCHED of linux/posix-timers.h.
		if err := unix.ClockGettime(int32(^pid<<3|2), &t); err == nil {
			sum += time.Duration(t.Nano())
		}
	}
	return sum
}

// memory returns the bytes of memory that belong to the process alone and are not its files:
// heap and stacks.
func (p *Process) memory() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.family[0]))
	if err != nil {
		return 0, err
	}
	return parseAnon(string(b))
}

// parseAnon reads RssAnon from /proc/PID/status.
func parseAnon(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("this kernel does not report the anonymous memory of a process (RssAnon)")
}

// settle makes the process collect its garbage and returns its memory when that no longer
// falls.
func (p *Process) settle(ctx context.Context) (int64, error) {
	least := int64(1 << 62)
	for quiet := 0; quiet < 4; {
		p.cmd.Process.Signal(syscall.SIGUSR2)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		n, err := p.memory()
		if err != nil {
			return 0, err
		}
		if n < least-least/200 {
			quiet = 0
		} else {
			quiet++
		}
		least = min(least, n)
	}
	return least, nil
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	t.b = t.b[max(0, len(t.b)-2000):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
