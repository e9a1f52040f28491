//go:build !unix

package files

// nonblock is of no use: named pipes do not stand among files.
const nonblock = 0
