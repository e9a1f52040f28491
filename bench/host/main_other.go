//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

func main() {
	fmt.Fprintf(os.Stderr, "host: it needs the terminals and the memory figures of Linux, and this is %s\n", runtime.GOOS)
	os.Exit(64)
}
