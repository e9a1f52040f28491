//go:build !unix

package files

// nonblock is not needed: named pipes are not in the file system.
const nonblock = 0
