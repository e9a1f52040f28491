package bounds

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Supported reports whether commands can be limited on this system.
const Supported = true

// Memory returns the private memory, in bytes, of some processes and all their descendants:
// resident memory that does not belong to a file that others may share. 0: unknown.
func Memory(pids map[int]bool) (sum int64) {
	if len(pids) == 0 {
		return 0
	}
	for _, pid := range below(parents(0), pids) {
		sum += privateMemory(pid)
	}
	return sum
}

// measure returns the private memory and the number of the processes below one, without itself.
func measure(guard int) (memory int64, processes int) {
	for _, pid := range below(parents(every/2), map[int]bool{guard: true}) {
		if pid != guard {
			memory += privateMemory(pid)
			processes++
		}
	}
	return memory, processes
}

// below returns the processes in roots and all their descendants.
func below(parents map[int]int, roots map[int]bool) (found []int) {
	for pid := range parents {
		above := pid
		for steps := 0; above > 1 && !roots[above] && steps < 10_000; steps++ { // the table is not of one moment
			above = parents[above]
		}
		if roots[above] {
			found = append(found, pid)
		}
	}
	return found
}

// table is the last table of all processes, which several bounds share.
var table struct {
	sync.Mutex
	at      time.Time
	parents map[int]int
}

// parents returns the parent of each process of the system. The table is not older than age. It must
// not be changed.
func parents(age time.Duration) map[int]int {
	table.Lock()
	defer table.Unlock()
	if time.Since(table.at) < age {
		return table.parents
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	found := make(map[int]int, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || fields[0][0] == 'Z' { // a process that has ended and was not waited for
			continue
		}
		found[pid], _ = strconv.Atoi(string(fields[1]))
	}
	table.at, table.parents = time.Now(), found
	return found
}

func privateMemory(pid int) int64 {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}
