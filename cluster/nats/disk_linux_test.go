package nats_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// TestFullDisk sees that servers whose disks were full go on by themselves when there is space, and that a server alone keeps what it
// had. A file may not grow, which ends a group of servers for this one, or the disk has no space, for which a server disables JetStream.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"limit", "fill"} {
		t.Run(how+" one", func(t *testing.T) {
			t.Parallel()
			list := diskProcesses(t, 3, how == "fill")
			list[0].awaits(t, "put before")
			list[1].full(t, how, list[0])
			list[1].awaits(t, "space")
			list[1].awaits(t, "health")
			// It has a copy again, and helps to choose leaders.
			list[0].kill()
			list[1].awaits(t, "get before")
			list[1].awaits(t, "watch")
			list[2].awaits(t, "put before")
		})
		t.Run(how+" all", func(t *testing.T) {
			t.Parallel()
			long.Only(t)
			list := diskProcesses(t, 3, how == "fill")
			for _, p := range list {
				p.full(t, how, p)
			}
			for _, p := range list {
				p.awaits(t, "space")
			}
			for _, p := range list {
				p.awaits(t, "health")
			}
			for i, p := range list {
				p.awaits(t, fmt.Sprint("put after", i))
				p.awaits(t, "watch")
			}
		})
		t.Run(how+" alone", func(t *testing.T) {
			t.Parallel()
			if how == "fill" {
				long.Only(t)
			}
			p := diskProcesses(t, 1, how == "fill")[0]
			p.awaits(t, "put before")
			p.full(t, how, p)
			p.awaits(t, "space")
			p.awaits(t, "health")
			p.awaits(t, "get before")
			p.awaits(t, "put after")
		})
	}
}

// stopped are words of servers that do not go on by themselves.
var stopped = []string{"write error", "is not running", "not enabled"}

// diskProcess is a server of NATS in a process of its own.
type diskProcess struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// diskOptions are those of a server, as its process gets them.
type diskOptions struct {
	Node, Dir, Listen string
	Routes            []string
}

// diskProcesses runs n servers as one cluster, with small disks of their own or in folders.
func diskProcesses(t *testing.T, n int, disks bool) (list []*diskProcess) {
	var routes []string
	for range n {
		routes = append(routes, free(t))
	}
	for i := range n {
		o := diskOptions{Node: "n" + strconv.Itoa(i), Dir: t.TempDir()}
		if n > 1 {
			o.Listen, o.Routes = routes[i], routes
		}
		list = append(list, newDiskProcess(t, o, disks))
	}
	for _, p := range list {
		if words := p.answer(t); words == cannotMount {
			t.Skip("this machine lets the test have no disk of its own")
		} else if words != "" {
			t.Fatal(words)
		}
	}
	for _, p := range list {
		p.awaits(t, "health")
	}
	return list
}

func newDiskProcess(t *testing.T, o diskOptions, disk bool) *diskProcess {
	t.Helper()
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDiskProcess$")
	cmd.Env = append(os.Environ(), "NATS_TEST_OPTIONS="+string(options), "GORACE=halt_on_error=1")
	if disk {
		cmd.Env = append(cmd.Env, "NATS_TEST_DISK=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
	}
	p := &diskProcess{cmd: cmd}
	var log bytes.Buffer
	cmd.Stderr = &log
	p.in, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := cmd.Start(); errors.Is(err, os.ErrPermission) && disk {
		t.Skip("this machine lets the test have no disk of its own")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s: %s", o.Node, &log)
		}
	})
	return p
}

func (p *diskProcess) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // likewise
}

// answer returns the next line of a process.
func (p *diskProcess) answer(t *testing.T) string {
	t.Helper()
	for p.out.Scan() {
		if words, ok := strings.CutPrefix(p.out.Text(), "answer "); ok {
			return words
		}
	}
	t.Fatal("a process has ended")
	return ""
}

func (p *diskProcess) ask(t *testing.T, what string) string {
	t.Helper()
	fmt.Fprintln(p.in, what) // or there is no answer
	return p.answer(t)
}

// awaits asks a process until it answers that something works.
func (p *diskProcess) awaits(t *testing.T, what string) {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		got := p.ask(t, what)
		if got == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %s", what, got)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// full makes the disk of a server full, and waits until it has stopped because it had to write changes that another one makes.
func (p *diskProcess) full(t *testing.T, how string, by *diskProcess) {
	t.Helper()
	if got := p.ask(t, how); got != "" {
		t.Fatal(got)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		_, _ = by.ask(t, "watch"), by.ask(t, "put more") // which may not work now
		got := p.ask(t, "health")
		for _, words := range stopped {
			if strings.Contains(got, words) {
				t.Log(got)
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("it goes on with a full disk: %q", got)
		}
	}
}

// diskCluster is the cluster of the State.
const diskCluster = "disk"

// cannotMount is what a process says that may have no disk.
const cannotMount = "cannot mount"

// TestFullDiskProcess is the process of a server for TestFullDisk.
func TestFullDiskProcess(t *testing.T) {
	options := os.Getenv("NATS_TEST_OPTIONS")
	if options == "" {
		t.Skip("a part of TestFullDisk")
	}
	tell := func(err error) {
		text := ""
		if err != nil {
			text = err.Error()
		}
		fmt.Printf("answer %s\n", strings.ReplaceAll(text, "\n", " "))
	}
	var o diskOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("NATS_TEST_DISK") != "" {
		if err := unix.Mount("disk", o.Dir, "tmpfs", 0, "size=4m"); err != nil {
			tell(errors.New(cannotMount))
			return
		}
	}
	s, err := nats.Start(nats.ServerOptions{
		Cluster: "test", Node: o.Node, Dir: o.Dir, Listen: o.Listen, Routes: o.Routes,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	c, err := nats.Open(ctx, nc, nats.Options{Cluster: diskCluster, Server: s})
	stop()
	tell(err)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		tell(obey(ctx, in.Text(), o.Dir, s, c))
		stop()
	}
}

// obey does what TestFullDisk asks for.
func obey(ctx context.Context, what, dir string, s *nats.Server, c *nats.Cluster) error {
	what, key, _ := strings.Cut(what, " ")
	file := filepath.Join(dir, "fill")
	switch what {
	case "limit":
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY})
	case "fill":
		f, err := os.Create(file)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		if e := f.Close(); !errors.Is(err, unix.ENOSPC) || e != nil {
			return errors.Join(err, e)
		}
		return nil
	case "space":
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	case "health":
		if text := s.Health(); text != "" {
			return errors.New(text)
		}
		return nil
	case "leads":
		if !s.Leads(diskCluster) {
			return errors.New("it does not lead")
		}
		return nil
	case "get":
		_, err := c.Get(ctx, key)
		return err
	case "put":
		e, err := c.Get(ctx, key)
		if errors.Is(err, cluster.ErrNotFound) {
			err = nil
		}
		if err == nil {
			_, err = c.Put(ctx, key, []byte("x"), e.Version, 0)
		}
		return err
	case "watch": // for which servers note a consumer
		for change, err := range c.Watch(ctx, "k") {
			if err != nil || change.Key == "" {
				return err
			}
		}
		return cmp.Or(context.Cause(ctx), errors.New("the Watch has ended"))
	}
	return errors.New("unknown: " + what)
}
