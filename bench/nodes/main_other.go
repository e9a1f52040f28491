//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "nodes: it needs the CPU clocks of other processes as Linux has them, and this is %s\n", runtime.GOOS)
	os.Exit(64)
}
