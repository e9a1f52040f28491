//go:build !windows

package wine

func on() bool { return false }
