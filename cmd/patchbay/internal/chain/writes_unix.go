//go:build unix

package chain

import "golang.org/x/sys/unix"

// writes returns why this user cannot make files in a folder that exists.
func writes(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
