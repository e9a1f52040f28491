package nats_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// TestNodeDies sees that connections to a node whose process is gone end, and those to others stay.
func TestNodeDies(t *testing.T) {
	t.Parallel()
	s := servers(t, 1)[0]
	here, stays, dies := open(t, s, "dies"), open(t, s, "dies"), open(t, s, "dies")
	ends := map[string]io.ReadWriteCloser{}
	for name, node := range map[string]*nats.Cluster{"stays": stays, "dies": dies} {
		l, err := node.Listen(name)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
		}()
		c, err := here.Dial(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends[name] = c
		echo(t, c)
	}
	begin := time.Now()
	dies.Abandon()
	_, err := ends["dies"].Read(make([]byte, 1))
	if !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("Read from a dead node: %v after %v", err, time.Since(begin))
	}
	if _, err := ends["dies"].Write([]byte("x")); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("Write to a dead node: %v", err)
	}
	if _, err := here.Dial(t.Context(), "dies"); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("Dial of a dead node: %v", err)
	}
	echo(t, ends["stays"])
	t.Logf("the death was seen after %v", time.Since(begin))
}

// TestLostMessages sees that a connection ends whose last message was lost on the way, although its node lives, and that
// one without loss stays.
func TestLostMessages(t *testing.T) {
	t.Parallel()
	s := servers(t, 1)[0]
	here, there := open(t, s, "lost"), open(t, s, "lost")
	l, err := there.Listen("there")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	c, err := here.Dial(t.Context(), "there")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 4 { // over several beats
		echo(t, c)
		time.Sleep(400 * time.Millisecond)
	}
	if err := there.Deafen(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 5)); err == nil || !strings.Contains(err.Error(), "messages were lost on the way") {
		t.Errorf("Read: %v", err)
	}
}

func echo(t *testing.T, c io.ReadWriter) {
	t.Helper()
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestMajority sees that two of three servers go on, and that one alone changes nothing and holds no lease.
func TestMajority(t *testing.T) {
	t.Parallel()
	list := servers(t, 3)
	last := open(t, list[2], "majority")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	version, err := last.Put(ctx, "k", []byte("three"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := cluster.TryAcquire(ctx, last, "one", "n2", 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	closeServer(t, list[0])
	if version, err = last.Put(ctx, "k", []byte("two"), version, 0); err != nil {
		t.Fatalf("Put with two of three servers: %v", err)
	}
	if e, err := last.Get(ctx, "k"); err != nil || string(e.Value) != "two" {
		t.Fatalf("Get with two of three servers: %q, %v", e.Value, err)
	}
	if !lease.Held() {
		t.Error("the lease was lost while two of three servers ran")
	}
	closeServer(t, list[1])
	short, end := context.WithTimeout(ctx, 3*time.Second)
	defer end()
	if _, err := last.Put(short, "k", []byte("one"), version, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put with one of three servers: %v", err)
	}
	select {
	case <-lease.Lost():
	case <-ctx.Done():
		t.Error("the lease is held with one of three servers")
	}
	if lease.Held() {
		t.Error("a lost lease is held")
	}
}

func closeServer(t *testing.T, s *nats.Server) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestStartRefuses lists what Start does not take.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	good, used := nats.ServerOptions{Cluster: "c", Node: "n", Dir: t.TempDir()}, t.TempDir()
	start(t, nats.ServerOptions{Cluster: "c", Node: "first", Dir: used})
	taken := start(t, nats.ServerOptions{Cluster: "c", Node: "other", Dir: t.TempDir(), Listen: "127.0.0.1:0", Routes: []string{"127.0.0.1:1"}}).Addr().String()
	for name, tc := range map[string]struct {
		change func(*nats.ServerOptions)
		says   string
	}{
		"no name":        {func(o *nats.ServerOptions) { o.Node = "" }, "node"},
		"bad name":       {func(o *nats.ServerOptions) { o.Node = "a b" }, "' '"},
		"no folder":      {func(o *nats.ServerOptions) { o.Dir = "" }, "folder"},
		"no port":        {func(o *nats.ServerOptions) { o.Listen = "127.0.0.1" }, "port"},
		"bad port":       {func(o *nats.ServerOptions) { o.Listen = "127.0.0.1:x" }, "port"},
		"bad route":      {func(o *nats.ServerOptions) { o.Listen, o.Routes = "127.0.0.1:0", []string{"n2"} }, "route"},
		"open to others": {func(o *nats.ServerOptions) { o.Listen, o.Routes = "0.0.0.0:0", []string{taken} }, "password"},
		"address in use": {func(o *nats.ServerOptions) { o.Listen, o.Routes = taken, []string{taken} }, "listen tcp"},
		"without routes": {func(o *nats.ServerOptions) { o.Listen = "127.0.0.1:0" }, "routes"},
		"corrupt folder": {func(o *nats.ServerOptions) {
			o.Listen, o.Routes = "127.0.0.1:0", []string{taken}
			file := filepath.Join(o.Dir, "jetstream", "$SYS", "_js_", "_meta_", "snapshots", "snap.1.1")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, 100), 0o600)); err != nil {
				t.Error(err)
			}
		}, "is moved away"},
		"folder in use":    {func(o *nats.ServerOptions) { o.Dir = used }, "in use"},
		"folder of a file": {func(o *nats.ServerOptions) { o.Dir = "fault_test.go" }, "fault_test.go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "corrupt folder" && runtime.GOOS == "windows" {
				t.Skip("NATS does not close a file there when it has failed, so that its folder cannot be removed on Windows")
			}
			opts := good
			opts.Dir = t.TempDir()
			tc.change(&opts)
			s, err := nats.Start(opts)
			if err == nil {
				closeServer(t, s)
				t.Fatal("Start worked")
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q does not say %q", err, tc.says)
			}
		})
	}
}
