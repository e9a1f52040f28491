//go:build !windows

package terminal

import "os"

func prepareOutput(*os.File) (restore func()) { return func() {} }
