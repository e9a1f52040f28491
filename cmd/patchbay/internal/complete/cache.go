package complete

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// KeepTime is the lifetime of a stored list. Starting a server for each press of a key would be
// slow.
const KeepTime = 5 * time.Minute

const maxKept = 4 << 20 // bytes of one list

// path returns the file for a key, or "" if there is no cache folder.
func path(key string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(dir, "patchbay", "completion", hex.EncodeToString(sum[:16])+".json")
}

// Kept returns the list stored under a key, or nil if there is none or it is older than [KeepTime].
func Kept(key string) json.RawMessage {
	path := path(key)
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxKept || time.Since(info.ModTime()) > KeepTime {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || jsonx.Valid(data, 0) != nil {
		return nil
	}
	return data
}

// Keep stores a list of at most 4 MiB under a key and removes old lists. Errors are ignored,
// because the cache is optional.
func Keep(key string, raw json.RawMessage) {
	path := path(key)
	if path == "" || len(raw) > maxKept {
		return
	}
	dir := filepath.Dir(path)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > KeepTime {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	f, err := os.CreateTemp(dir, ".new-*") // readable by its owner alone
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), path) != nil {
		os.Remove(f.Name())
	}
}
