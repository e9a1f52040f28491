//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

func prepareOutput(*os.File) (restore func()) { return func() {} }

// withoutInterrupt makes ctrl-C and ctrl-Z keys that send no signal.
func withoutInterrupt(in *os.File) {
	mode, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return
	}
	mode.Lflag &^= unix.ISIG
	_ = unix.IoctlSetTermios(int(in.Fd()), setTermios, mode)
}
