//go:build !linux

package audit

import "os"

// disk waits until lines are on disk.
type disk struct{}

// sync waits until the content of a file is on disk.
func (*disk) sync(f *os.File) error { return f.Sync() }

func (*disk) close() error { return nil }
