package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// memoryOf returns the private memory, in bytes, of some processes and all their descendants:
// resident memory that does not belong to a file that others may share. 0: unknown.
func memoryOf(pids map[int]bool) (sum int64) {
	if len(pids) == 0 {
		return 0
	}
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may contain any character.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 {
			continue
		}
		parents[pid], _ = strconv.Atoi(string(fields[1]))
	}
	for pid := range parents {
		above := pid
		for above > 1 && !pids[above] {
			above = parents[above]
		}
		if above > 1 {
			sum += privateMemory(pid)
		}
	}
	return sum
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
