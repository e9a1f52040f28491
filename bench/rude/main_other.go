//go:build !linux

// Command rude needs Linux, whose /proc lists the remaining processes.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rude: this needs Linux, whose /proc tells which processes are left")
	os.Exit(1)
}
