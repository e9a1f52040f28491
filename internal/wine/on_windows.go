package wine

import "golang.org/x/sys/windows"

// on looks for a function of Wine that Windows does not have.
func on() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}
