package config

import (
	"os"
	"path/filepath"
)

// Find returns the configuration file for the folder dir: the first of [Places] that is a file.
func Find(dir string) (path string, ok bool) {
	for _, path := range Places(dir) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	return "", false
}

// Places returns the paths at which [Find] looks, in order: dir/mcp.json, dir/.mcp.json,
// dir/.vscode/mcp.json and [UserFile]. Folders above dir are not searched.
func Places(dir string) []string {
	places := []string{
		filepath.Join(dir, "mcp.json"),
		filepath.Join(dir, ".mcp.json"),
		filepath.Join(dir, ".vscode", "mcp.json"),
	}
	if user, ok := UserFile(); ok {
		places = append(places, user)
	}
	return places
}

// UserFile returns the path of the user's own file: patchbay/mcp.json in the user's configuration
// folder ([os.UserConfigDir]). The result ok is false if that folder is not known.
func UserFile() (path string, ok bool) {
	dir, ok := userDir()
	return filepath.Join(dir, "mcp.json"), ok
}

// userDir returns the folder of the user's own file.
func userDir() (string, bool) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "patchbay"), true
}
