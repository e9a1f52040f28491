package ownfile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Data returns the path of a file of the program's data: "patchbay" in $XDG_DATA_HOME, or in
// ~/.local/share, ~/Library/Application Support (macOS) or %LOCALAPPDATA%. It creates nothing.
func Data(name string) (string, error) {
	dir, err := data()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "patchbay", name), nil
}

func data() (string, error) {
	switch runtime.GOOS {
	case "windows":
		if dir := os.Getenv("LOCALAPPDATA"); dir != "" {
			return dir, nil
		}
		return "", errors.New("the folder of your data is not known; set LOCALAPPDATA")
	case "darwin", "ios":
		return os.UserConfigDir()
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("the folder of your data is not known; set HOME or XDG_DATA_HOME")
	}
	return filepath.Join(home, ".local", "share"), nil
}
