package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Lists that completion has fetched are kept for a while below the user's folder for
// caches: to start a server for each press of a key would be slow. A file is named by a hash
// of what the server is and of how it is spoken to, and only its owner can read it.

const (
	rememberTime = 5 * time.Minute
	maxRemember  = 4 << 20 // bytes of a list
)

// remembered returns the items of a list of the server that is meant: kept, or fetched now.
// There are none if the server does not answer in time.
//
// A server is asked only if the command line names it, or its configuration: to press a key
// in a folder that came from somewhere must not start what stands in its mcp.json.
func (a *app) remembered(kind string) []json.RawMessage {
	if a.Server == "" && a.Config == "" {
		return nil
	}
	s, err := a.target()
	if err != nil {
		return nil
	}
	list := lists[kind]
	path := cachePath(fmt.Sprintf("%q %q %q %q %q %q %q %q", list.method, s.Name, s.Builtin, s.URL, append([]string{s.Command, s.Dir}, s.Args...), a.Env, a.Header, a.Revision) + fmt.Sprint(s.Env, s.Headers))
	if raw := readCache(path); raw != nil {
		return itemsOf(raw, list.member)
	}
	p, err := a.open()
	if err != nil {
		return nil
	}
	l, err := a.list(p, list.method, list.member)
	if err != nil {
		return nil
	}
	writeCache(path, l.raw)
	return itemsOf(l.raw, list.member)
}

func itemsOf(raw json.RawMessage, member string) []json.RawMessage {
	var out []json.RawMessage
	items, _ := jsonx.Lookup(raw, member)
	for item := range jsonx.Elements(items) {
		out = append(out, item)
	}
	return out
}

// cachePath is the file for a key; empty if there is no folder for it.
func cachePath(key string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(dir, "patchbay", "completion", hex.EncodeToString(sum[:16])+".json")
}

func readCache(path string) json.RawMessage {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxRemember || time.Since(info.ModTime()) > rememberTime {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || jsonx.Valid(data, 0) != nil {
		return nil
	}
	return data
}

// writeCache keeps a list, if it can, and drops what is old.
func writeCache(path string, raw json.RawMessage) {
	if path == "" || len(raw) > maxRemember {
		return
	}
	dir := filepath.Dir(path)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > rememberTime {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	f, err := os.CreateTemp(dir, ".new-*") // which its owner alone can read
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), path) != nil {
		os.Remove(f.Name())
	}
}
