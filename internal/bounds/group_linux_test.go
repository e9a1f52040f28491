package bounds

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func put(t *testing.T, text string, path ...string) {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Groups are made only in a folder that systemd has delegated, that has both controllers and no processes.
func TestDelegated(t *testing.T) {
	root := t.TempDir()
	service := filepath.Join(root, "system.slice", "up.service")
	own := "1:name=systemd:/x\n0::/system.slice/up.service/up\n"
	put(t, "memory pids\n", service, "cgroup.subtree_control")
	put(t, "", service, "cgroup.procs")
	if got := delegated(root, own); got != "" {
		t.Errorf("without the mark: %q", got)
	}
	if err := syscall.Setxattr(service, "user.delegate", []byte("1"), 0); err != nil {
		t.Skip("no attributes of files here: ", err)
	}
	if got := delegated(root, own); got != service {
		t.Errorf("with the mark: %q", got)
	}
	for _, other := range []string{"", "0::/\n", "5:memory:/system.slice/up.service/up\n", "0::/system.slice/up.service\n", "0::/none/up\n"} {
		if got := delegated(root, other); got != "" {
			t.Errorf("own group %q: %q", other, got)
		}
	}
	put(t, "7\n", service, "cgroup.procs")
	if got := delegated(root, own); got != "" {
		t.Errorf("with processes: %q", got)
	}
	put(t, "", service, "cgroup.procs")
	put(t, "cpu\n", service, "cgroup.subtree_control")
	if got := delegated(root, own); got != "" {
		t.Errorf("without controllers, in a folder where writing does not enable them: %q", got)
	}
}

// The counters of a group say why its processes were ended.
func TestGroupExceeded(t *testing.T) {
	g := &group{dir: t.TempDir()}
	l := Limits{Memory: 512e6, Processes: 2}
	put(t, "1\n2\n3\n", g.dir, "cgroup.procs") // with the guard
	put(t, "low 0\nmax 7\noom 0\noom_kill 0\n", g.dir, "memory.events")
	put(t, "max 0\n", g.dir, "pids.events")
	if got := g.exceeded(l); got != "" {
		t.Errorf("within the limits: %s", got)
	}
	put(t, "1\n2\n3\n4\n", g.dir, "cgroup.procs")
	if got := g.exceeded(l); !strings.Contains(got, "3 processes and its entry allows 2") {
		t.Errorf("a process too many: %q", got)
	}
	put(t, "max 1\n", g.dir, "pids.events")
	if got := g.exceeded(l); !strings.Contains(got, "192 threads and its entry allows 2 processes") {
		t.Errorf("threads without end: %q", got)
	}
	put(t, "max 7\noom 1\noom_kill 3\n", g.dir, "memory.events")
	if got := g.exceeded(l); !strings.Contains(got, "more than the 512 MB of memory") {
		t.Errorf("out of memory: %q", got)
	}
}

// A group that cannot have its limits is not used, and leaves nothing behind.
func TestNoGroup(t *testing.T) {
	dir := t.TempDir() // no file of a group appears here by itself
	if g, err := makeGroup(dir, Limits{Memory: 1e9}); err == nil {
		t.Errorf("group %v", g)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// A bound measures the processes below the guard, without the guard.
func TestMeasure(t *testing.T) {
	memory, processes := measure(os.Getppid())
	if memory <= 0 || processes < 1 {
		t.Errorf("%d bytes in %d processes below the parent of this one", memory, processes)
	}
	if _, processes := measure(os.Getpid()); processes != 0 {
		t.Errorf("%d processes below this one", processes)
	}
}
