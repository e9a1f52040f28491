package launch

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// parentOfAncestors finds the lineage of a process with an environment that was cleared on the way
// to it, as by env -i, sudo and some wrappers: it takes the one of the nearest ancestor that has
// one. It is empty if there is none, or if the system does not allow reading it. A container hides
// its ancestors.
func parentOfAncestors() string {
	pid := os.Getppid()
	for range 32 {
		if pid <= 1 {
			break
		}
		dir := "/proc/" + strconv.Itoa(pid)
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			break
		}
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(parentName+"=")); ok {
				return string(value)
			}
		}
		if pid = parentPID(dir); pid == 0 {
			break
		}
	}
	return ""
}

// parentPID returns the parent of a process, 0 if it cannot be read.
func parentPID(dir string) int {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may contain any character.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return pid
}
