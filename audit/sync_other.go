//go:build !linux

package audit

import "os"

// datasync waits until the content of a file is on disk.
func datasync(f *os.File) error { return f.Sync() }
