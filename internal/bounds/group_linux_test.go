package bounds

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain is also a program that needs 256 MB.
func TestMain(m *testing.M) {
	if os.Getenv("BOUNDS_TEST_NEEDS") != "" {
		much := make([]byte, 256<<20)
		for i := 0; i < len(much); i += 4096 {
			much[i] = 1
		}
		fmt.Println(len(much))
		return
	}
	os.Exit(m.Run())
}

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

// The limits of an entry are written into the files of its group: memory without swap, and threads instead of
// processes, with those of the guard.
func TestLimitsOfGroup(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"memory.max": "512000000", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "192"}
	for name := range files {
		put(t, "", dir, name)
	}
	if err := limit(dir, Limits{Memory: 512e6, Processes: 2}); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s has %q (%v), want %q", name, got, err, want)
		}
		os.WriteFile(filepath.Join(dir, name), nil, 0o644)
	}
	if err := limit(dir, Limits{Processes: 1}); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if got, _ := os.ReadFile(filepath.Join(dir, name)); (len(got) > 0) != (name == "pids.max") {
			t.Errorf("without a limit of memory %s has %q", name, got)
		}
	}
	for _, optional := range []string{"memory.swap.max", "memory.oom.group"} {
		os.Remove(filepath.Join(dir, optional))
	}
	if err := limit(dir, Limits{Memory: 1e9}); err != nil {
		t.Errorf("a kernel without swap: %v", err)
	}
}

// realPlace returns a folder for groups of the kernel, which this test may make and removes.
func realPlace(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if !strings.Contains(line, " - cgroup2 ") || len(fields) < 5 {
			continue
		}
		place := filepath.Join(fields[4], fmt.Sprintf("bounds-test-%d", os.Getpid()))
		if err := os.Mkdir(place, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() { syscall.Rmdir(place) })
		return place
	}
	t.Skip("this program may not make control groups of version 2 here")
	return ""
}

// A command starts in its group, and the group is removed after its end.
func TestCommandInGroup(t *testing.T) {
	g, err := makeGroup(realPlace(t), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.prepare(cmd)
	if err := cmd.Start(); err != nil {
		g.remove()
		t.Skip("the kernel starts no command in a group: ", err)
	}
	procs, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if want := fmt.Sprintln(cmd.Process.Pid); string(procs) != want {
		t.Errorf("processes of the group: %q (%v), want %q", procs, err, want)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	g.remove()
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("the group is left: %v", err)
	}
}

// The kernel ends a command that needs more memory than its entry allows, and the reason is known.
func TestKernelEndsCommand(t *testing.T) {
	place := realPlace(t)
	if has := func(name string) bool { return has(filepath.Join(filepath.Dir(place), "cgroup.subtree_control"), name) }; !has("memory") || !has("pids") || !enable(place) {
		t.Skip("the controllers memory and pids of version 2 are not for this program")
	}
	l := Limits{Memory: 64e6, Processes: 2}
	g, err := makeGroup(place, l)
	if err != nil {
		t.Fatal(err)
	}
	defer g.remove()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BOUNDS_TEST_NEEDS=1")
	g.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("it had all memory that it needs: %s", out)
	}
	if got := g.exceeded(l); !strings.Contains(got, "more than the 64 MB of memory") {
		t.Errorf("the reason: %q", got)
	}
}
