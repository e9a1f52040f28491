//go:build linux

package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// process is a process with the marker.
type process struct {
	pid  int
	line string // its command line
}

// marked lists the processes with a variable in their environment. It does not list
// zombies.
func marked(variable string) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if !isMarked(pid, variable) {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		list = append(list, process{pid, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))})
	}
	return list
}

// isMarked reports whether a process has a variable in its environment. A zombie has none.
func isMarked(pid int, variable string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+variable+"\x00"))
}

// gone waits until no process has the variable any more, and returns the time that took,
// or after most the remaining processes.
func gone(ctx context.Context, variable string, most time.Duration) (time.Duration, []process) {
	start := time.Now()
	for left := marked(variable); ; {
		took := time.Since(start)
		if len(left) == 0 || took > most || ctx.Err() != nil {
			return took, left
		}
		time.Sleep(5 * time.Millisecond) // the end of a foreign process cannot be waited for
		left = slices.DeleteFunc(left, func(p process) bool { return !isMarked(p.pid, variable) })
		if len(left) == 0 {
			left = marked(variable) // what those have started, at the end: looking at all processes takes long
		}
	}
}

// names formats processes.
func names(list []process) string {
	var out []string
	for _, p := range list {
		line := p.line
		if len(line) > 100 {
			line = line[:100] + "…"
		}
		out = append(out, fmt.Sprintf("%d (%s)", p.pid, line))
	}
	return strings.Join(out, ", ")
}

// holding are the system resources of a process.
type holding struct{ FDs, Threads, Children, RSS int } // RSS in KiB

func held(pid int) (holding, error) {
	var h holding
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return h, err
	}
	h.FDs = len(fds)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return h, err
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		switch name {
		case "Threads":
			h.Threads = n
		case "VmRSS":
			h.RSS = n
		}
	}
	return h, nil
}
