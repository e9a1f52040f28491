//go:build linux

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/bench/load"
)

// diskOf measures what an audit log in folder asks of the disk for each call that comes alone: one line
// is written, and then it is on disk. The time of the processor is nearly all the kernel's.
func diskOf(folder string) (figures map[string]float64, err error) {
	dir, err := os.MkdirTemp(folder, "disk")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "lines"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const lines = 400
	line := load.Text(1200) // a begin and an end
	var took []time.Duration
	begun, err := threadTime()
	if err != nil {
		return nil, err
	}
	for range lines {
		t := time.Now()
		if _, err := f.WriteString(line); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		took = append(took, time.Since(t))
	}
	ended, err := threadTime()
	slices.Sort(took)
	return map[string]float64{figureCPU: (ended - begun).Seconds() * 1e6 / lines, figureP50: took[lines/2].Seconds() * 1000}, err
}

// threadTime returns the time of the processor that this thread has used.
func threadTime() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts)
	return time.Duration(ts.Nano()), err
}
