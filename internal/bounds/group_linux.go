package bounds

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Control groups, version 2 (kernel: Documentation/admin-guide/cgroup-v2.rst). A group for a command is
// made only where systemd has delegated the groups to this program: the parent of this program's own
// group has the mark "user.delegate" and no processes. That is so for a service with Delegate= and
// DelegateSubgroup=. This program does not move itself to another group: whoever has started it may
// rely on its place.

// group is the control group of one command.
type group struct {
	dir string
	fd  *os.File // of dir
}

// threads is how many threads a process may have on average. The kernel counts threads; measurements
// count processes. The limit of the kernel only stops a command that starts processes without end
// between two measurements.
const threads = 64

var (
	groups sync.Once
	place  string // folder for groups; empty: none
	last   atomic.Int64
)

// newGroup makes a control group, nil if that is not possible.
func newGroup(l Limits) *group {
	groups.Do(func() {
		if own, err := os.ReadFile("/proc/self/cgroup"); err == nil {
			place = delegated("/sys/fs/cgroup", string(own))
			sweep(place)
		}
	})
	if place == "" {
		return nil
	}
	g, err := makeGroup(place, l)
	if err != nil {
		return nil
	}
	return g
}

// delegated returns the folder in which this program may make groups with both controllers, or "" if
// there is none. The parameter own is the content of /proc/self/cgroup.
func delegated(root, own string) string {
	_, path, found := strings.Cut("\n"+own, "\n0::")
	path, _, _ = strings.Cut(path, "\n")
	if !found || path == "/" || path == "" {
		return ""
	}
	parent := filepath.Dir(filepath.Join(root, path))
	var mark [1]byte
	if n, err := syscall.Getxattr(parent, "user.delegate", mark[:]); err != nil || n != 1 || mark[0] != '1' {
		return ""
	}
	if procs, err := os.ReadFile(filepath.Join(parent, "cgroup.procs")); err != nil || len(procs) > 0 {
		return "" // a group with processes cannot have controllers for its children
	}
	if !enable(parent) {
		return ""
	}
	return parent
}

// enable enables both controllers for the children of a group.
func enable(dir string) bool {
	control := filepath.Join(dir, "cgroup.subtree_control")
	for _, name := range []string{"memory", "pids"} {
		if !has(control, name) && (write(control, "+"+name) != nil || !has(control, name)) {
			return false
		}
	}
	return true
}

func has(file, word string) bool {
	text, _ := os.ReadFile(file)
	for w := range strings.FieldsSeq(string(text)) {
		if w == word {
			return true
		}
	}
	return false
}

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0) // the kernel makes the files
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// makeGroup makes a group with limits in a folder.
func makeGroup(place string, l Limits) (g *group, err error) {
	dir := filepath.Join(place, fmt.Sprintf("patchbay-%d-%d", os.Getpid(), last.Add(1)))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			syscall.Rmdir(dir)
		}
	}()
	if err := limit(dir, l); err != nil {
		return nil, err
	}
	fd, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &group{dir, fd}, nil
}

// limit sets the limits of a group.
func limit(dir string, l Limits) error {
	if l.Memory > 0 {
		if err := write(filepath.Join(dir, "memory.max"), strconv.FormatInt(l.Memory, 10)); err != nil {
			return err
		}
		// These may be missing: without swap, and before Linux 4.19.
		write(filepath.Join(dir, "memory.swap.max"), "0")
		write(filepath.Join(dir, "memory.oom.group"), "1")
	}
	if l.Processes > 0 {
		if err := write(filepath.Join(dir, "pids.max"), strconv.Itoa((l.Processes+1)*threads)); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(g.fd.Fd())
}

// exceeded words which limit the group has reached; empty: none.
func (g *group) exceeded(l Limits) string {
	if l.Memory > 0 && g.event("memory.events", "oom_kill") > 0 {
		return fmt.Sprintf("it was stopped, because it needed more than the %d MB of memory that its entry allows", l.Memory/1_000_000)
	}
	if l.Processes == 0 {
		return ""
	}
	if g.event("pids.events", "max") > 0 {
		return fmt.Sprintf("it was stopped, because it started %d threads and its entry allows %d processes", (l.Processes+1)*threads, l.Processes)
	}
	procs, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	return Limits{Processes: l.Processes}.exceeded(0, strings.Count(string(procs), "\n")-1) // without the guard
}

// event returns a counter of the group.
func (g *group) event(file, name string) int64 {
	text, _ := os.ReadFile(filepath.Join(g.dir, file))
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == name {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// removeTime bounds the wait for the processes of a group to end.
const removeTime = 10 * time.Second

// remove removes the group when it has no processes.
func (g *group) remove() {
	defer g.fd.Close()
	pause := 10 * time.Millisecond
	for deadline := time.Now().Add(removeTime); time.Now().Before(deadline); pause = min(2*pause, time.Second) {
		if err := syscall.Rmdir(g.dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(pause)
	}
}

// sweep removes the groups of programs that have ended without removing them.
func sweep(place string) {
	if place == "" {
		return
	}
	old, _ := filepath.Glob(filepath.Join(place, "patchbay-*-*"))
	for _, dir := range old {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "patchbay-"), "-")
		n, err := strconv.Atoi(pid)
		if err == nil && (n == os.Getpid() || errors.Is(syscall.Kill(n, 0), syscall.ESRCH)) {
			syscall.Rmdir(dir) // it fails if the group has processes
		}
	}
}
