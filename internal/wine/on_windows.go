package wine

import "golang.org/x/sys/windows"

// on reports whether the system is Wine, which exports its version, and not Windows.
func on() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}
