//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "compare: it needs the CPU clocks of other processes as Linux has them, and this is %s; "+
		"the benchmarks within one process run anywhere: go test -run '^$' -bench . ./bench\n", runtime.GOOS)
	os.Exit(64)
}
