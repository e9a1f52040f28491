//go:build !windows

package audit

import "os"

// syncFolder makes the name of a new file survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
