package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of "memory". Less than the least ends any server before it is ready.
const (
	leastMemory = 1e6
	mostMemory  = 1e15
)

// sizes are the units of "memory", in bytes, from the longest suffix to the shortest.
var sizes = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}}

// limits reads the limits of a command.
func (l *loader) limits(members map[string]*node, s *Server) {
	for _, name := range []string{"memory", "processes"} {
		if n := members[name]; n != nil && s.Command == "" {
			l.warn(n.pos, quote(name)+" is for a server with a \"command\"", "remove it")
		}
	}
	if n := members["memory"]; n != nil {
		size, ok := sizeOf(n.text)
		switch {
		case n.kind != '"' || !ok:
			l.fail(n.pos, `"memory" is not a size`, `write "512MB" or "2GB"`)
		case size < leastMemory || size > mostMemory:
			l.fail(n.pos, fmt.Sprintf(`"memory" is %s, which is out of bounds`, quote(n.text)), `write "1MB" or more, such as "512MB"`)
		default:
			s.Memory = int64(size)
		}
	}
	if n := members["processes"]; n != nil {
		var err error
		if s.Processes, err = strconv.Atoi(n.text); n.kind != '0' || err != nil || s.Processes < 1 || s.Processes > 1_000_000 {
			l.fail(n.pos, `"processes" is not a number of processes`, "write how many the server may consist of, such as 64")
			s.Processes = 0
		}
	}
}

// sizeOf parses a number with a unit of sizes, in bytes.
func sizeOf(text string) (float64, bool) {
	for _, unit := range sizes {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			return value * unit.bytes, err == nil && value == value
		}
	}
	return 0, false
}
