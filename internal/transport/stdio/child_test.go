package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// The test binary runs as the children: STDIO_TEST selects which.
func TestMain(m *testing.M) {
	switch os.Getenv("STDIO_TEST") {
	case "":
		os.Exit(m.Run())
	case "echo":
		lines(func(line string) { fmt.Println(line) })
	case "stubborn": // ignores the end of its input, and TERM or Ctrl-Break
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
		fmt.Println(os.Getpid())
		linger()
	case "deaf": // ignores only the end of its input
		fmt.Println(os.Getpid())
		linger()
	case "dies":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 5000), "\nthe disk is full\n")
		os.Exit(3)
	case "env":
		fmt.Println(os.Getenv("STDIO_WANT"))
		lines(func(string) {})
	case "grandchild": // leaves a process behind that keeps the pipes open
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STDIO_TEST=deaf")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		lines(func(string) {})
	case "parent": // starts a child and waits to be killed
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STDIO_TEST=stubborn")
		c, err := Start(cmd, 0, nil)
		if err != nil {
			panic(err)
		}
		pid, err := c.Conn().Read(nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(pid))
		linger()
	case "serve": // serves with the process's own streams, and prints meanwhile
		conn, restore, err := Own(0)
		if err != nil {
			panic(err)
		}
		if _, _, err := Own(0); err == nil {
			panic("the streams can be had twice")
		}
		for {
			frame, err := conn.Read(nil)
			if err == io.EOF {
				break
			}
			fmt.Println("a stray print")
			if err := conn.Write(frame); err != nil {
				break
			}
		}
		conn.Close()
		restore()
		fmt.Println("after")
	}
}

// linger waits to be ended. A bare select would end a program without other
// goroutines: the runtime calls that a deadlock.
func linger() { time.Sleep(time.Hour) }

func lines(f func(string)) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f(in.Text())
	}
	if err := in.Err(); err != nil {
		panic(err)
	}
}

func command(kind string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// Otherwise the race detector makes each child sleep for a second before it exits.
	cmd.Env = append(os.Environ(), "STDIO_TEST="+kind, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func start(t *testing.T, cmd *exec.Cmd) *Child {
	t.Helper()
	c, err := Start(cmd, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Conn().Close() })
	return c
}

func readLine(t *testing.T, c *Child) string {
	t.Helper()
	line, err := c.Conn().Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// gone waits until a process has ended.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for wait := time.Millisecond; ; wait *= 2 {
		if !alive(n) {
			return
		}
		if wait > 30*time.Second {
			t.Fatalf("process %d is still there", n)
		}
		time.Sleep(wait) // the end of another process must be polled
	}
}

func TestChildEchoes(t *testing.T) {
	c := start(t, command("echo"))
	for i := range 100 {
		want := fmt.Sprintf(`{"n":%d}`, i)
		if err := c.Conn().Write([]byte(want)); err != nil {
			t.Fatal(err)
		}
		if got := readLine(t, c); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for try := 1; ; try++ {
		begin := time.Now()
		c.Conn().Close()
		d := time.Since(begin)
		if d <= eofGrace {
			break
		}
		if try == 5 { // one of them may be late on a machine with other work
			t.Fatalf("children that obey the end of their input took %v to end", d)
		}
		c = start(t, command("echo"))
		if err := c.Conn().Write([]byte("{}")); err != nil {
			t.Fatal(err)
		}
		readLine(t, c)
	}
	if _, err := c.Conn().Read(nil); !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("Read after Close = %v", err)
	}
}

// STDIO-26-011, INIT-25-016: end of input, then TERM, then KILL, all bounded.
func TestClosingSequence(t *testing.T) {
	for kind, least := range map[string]time.Duration{"deaf": eofGrace, "stubborn": eofGrace + termGrace} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := start(t, command(kind))
			pid := readLine(t, c)
			start := time.Now()
			c.Conn().Close()
			if d := time.Since(start); d < least || d > CloseTime+10*time.Second {
				t.Errorf("Close took %v, want %v to %v", d, least, CloseTime)
			}
			gone(t, pid)
		})
	}
}

// Processes that a child started end with it.
func TestGrandchildEnds(t *testing.T) {
	c := start(t, command("grandchild"))
	pid := readLine(t, c)
	c.Conn().Close()
	gone(t, pid)
}

// A child that dies ends the reading with its exit state, even if processes that it leaves behind
// hold its pipes.
func TestExplain(t *testing.T) {
	var seen strings.Builder
	cmd := command("dies")
	cmd.Stderr = &seen
	c := start(t, cmd)
	_, err := c.Conn().Read(nil)
	if err == nil {
		t.Fatal("there is something to read")
	}
	var ee *ExitError
	if err := c.Explain(err); !errors.As(err, &ee) {
		t.Fatalf("Explain = %v", err)
	}
	if ee.State != "exit status 3" || !strings.HasSuffix(ee.Stderr, "the disk is full") || len(ee.Stderr) > maxTail || !errors.Is(ee, err) {
		t.Errorf("ExitError %+v", ee)
	}
	if !strings.Contains(seen.String(), "the disk is full") || len(seen.String()) < 5000 {
		t.Errorf("cmd.Stderr got %d bytes", len(seen.String()))
	}
}

// A child takes its credentials from the environment (BASE-26-031).
func TestEnvironment(t *testing.T) {
	cmd := command("env")
	cmd.Env = append(cmd.Env, "STDIO_WANT=this")
	if got := readLine(t, start(t, cmd)); got != "this" {
		t.Errorf("the child sees %q", got)
	}
}

// STDIO-26-002: the prints of a server do not reach its client. STDIO-26-004: output on standard
// error is not an error of the connection.
func TestOwnStreams(t *testing.T) {
	cmd := command("serve")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	c := start(t, cmd)
	for _, frame := range []string{`{"a":1}`, `{"b":2}`} {
		if err := c.Conn().Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		if got := readLine(t, c); got != frame {
			t.Errorf("got %s, want %s", got, frame)
		}
	}
	c.stdin.Close()
	if got := readLine(t, c); got != "after" {
		t.Errorf("after restore got %q", got)
	}
	<-c.exited
	if strings.Count(stderr.String(), "a stray print") != 2 {
		t.Errorf("standard error got %q", stderr.String())
	}
}

// The kernel ends the child of a killed parent.
func TestChildOfKilledParent(t *testing.T) {
	if !diesWithParent {
		t.Skip("this system has no parent-death signal; there the end of input ends the child")
	}
	parent := command("parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	parent.Process.Kill()
	parent.Wait()
	gone(t, strings.TrimSpace(line))
}

func TestStartFails(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program"), 0, nil); err == nil {
		t.Error("a program that does not exist starts")
	}
	cmd := command("echo")
	cmd.Stdin = strings.NewReader("")
	if _, err := Start(cmd, 0, nil); err == nil {
		t.Error("a command with its own Stdin starts")
	}
}
