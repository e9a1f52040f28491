package config

import (
	"os"
	"path/filepath"
)

// Find returns the configuration file that holds for the folder dir: the first
// that exists of dir/mcp.json, dir/.mcp.json, dir/.vscode/mcp.json and
// patchbay/mcp.json in the user's configuration folder ([os.UserConfigDir]).
// Folders above dir are not searched.
func Find(dir string) (path string, ok bool) {
	candidates := []string{
		filepath.Join(dir, "mcp.json"),
		filepath.Join(dir, ".mcp.json"),
		filepath.Join(dir, ".vscode", "mcp.json"),
	}
	if user, ok := userDir(); ok {
		candidates = append(candidates, filepath.Join(user, "mcp.json"))
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, true
		}
	}
	return "", false
}

// userDir returns the folder of the user's own file.
func userDir() (string, bool) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "patchbay"), true
}
