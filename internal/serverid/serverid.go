// Package serverid names the server of an entry of mcp.json: for people and logs, and for what is kept for it.
package serverid

import (
	"crypto/rand"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/internal/shell"
)

// Of returns the identity that approvals of a server are kept for, without secrets. The same
// command in another folder is another server, because it may run files of that folder. So is
// one with another name, which may have other credentials. Secrets and inputs that the identity
// does not show are part of it as a digest, unless digest is nil. The function resolve returns the server with its inputs; if
// it fails, nothing was approved of the server.
func Of(s config.Server, resolve func(config.Server) (config.Server, error), digest func(string) (string, error)) (string, error) {
	full, err := resolve(s)
	if err != nil { // the server fails, or another process supplies the input later
		full.Name += rand.Text()
	}
	shown, whole := Shown(s), target(full)
	if shown == whole || digest == nil {
		return shown, nil
	}
	sum, err := digest(whole)
	return shown + " #" + sum, err
}

// target returns the name of a server, and its URL or command.
func target(s config.Server) string {
	switch {
	case s.URL != "":
		return s.Name + " " + s.URL
	case s.Builtin != "":
		return s.Name + " built-in " + shell.Join(append([]string{s.Builtin}, s.Args...)) + " in " + folderOf(s)
	}
	return s.Name + " " + shell.Join(append([]string{s.Command}, s.Args...)) + " in " + folderOf(s)
}

// Shown returns the name of a server, and its URL or command, without the secrets of the URL or the arguments.
func Shown(s config.Server) string {
	s.URL, s.Args = secrets.ShownURL(s.URL), secrets.ShownArgs(s.Args)
	return target(s)
}

func folderOf(s config.Server) string {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return s.Dir
	}
	return dir
}
