package guard

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// parentDeath makes the kernel send a signal to a child when its parent ends.
func parentDeath(s syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: s} }

func lockThread() { runtime.LockOSThread() }

const prSetChildSubreaper = 36 // linux/prctl.h

// adoptOrphans makes this process the parent of all descendants whose own parent ends, daemons
// included.
func adoptOrphans() { syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) }

// descendants returns the processes below this one, parents before children.
func descendants() []int {
	children := map[int][]int{}
	for _, p := range processes() {
		children[p.parent] = append(children[p.parent], p.pid)
	}
	var found []int
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		found = append(found, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return found
}

type process struct{ pid, parent int }

// processes returns the processes of the system, none if they cannot be listed.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The command's name, in parentheses, may contain any character.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			list = append(list, process{pid, parent})
		}
	}
	return list
}
