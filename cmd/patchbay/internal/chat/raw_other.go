//go:build !windows

package chat

import "os"

func prepareOutput(*os.File) (restore func()) { return func() {} }
