package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

// configCmd has the verbs about mcp.json. What they show of it is this: commands,
// arguments and URLs as the file has them, and of env and headers the names alone.
type configCmd struct {
	Add     configAddCmd     `cmd:"" help:"Add a server to mcp.json."`
	Remove  configRemoveCmd  `cmd:"" help:"Remove a server from mcp.json."`
	List    configListCmd    `cmd:"" help:"List the servers of mcp.json."`
	Import  configImportCmd  `cmd:"" help:"Take over servers of other hosts."`
	Export  configExportCmd  `cmd:"" help:"Print the servers as another host has them."`
	Explain configExplainCmd `cmd:"" help:"Show where a server is from, and its values."`
	Inputs  configInputsCmd  `cmd:"" help:"Show which inputs of mcp.json are answered, and forget answers."`
	Trust   configTrustCmd   `cmd:"" help:"Say yes to the mcp.json of a folder, or take that back."`
	Doctor  configDoctorCmd  `cmd:"" help:"Find out why a server or a model does not work."`

	Models    configModelsCmd    `cmd:"" help:"List language models, and whether there are keys."`
	Model     configModelCmd     `cmd:"" help:"Add, remove or choose a language model."`
	Approvals configApprovalsCmd `cmd:"" help:"List and revoke which tools are allowed for ever."`
}

// notServer refuses what names a server for the other verbs.
func (a *app) notServer() error {
	if a.Server != "" {
		return usagef("patchbay config is about servers by their names, without -s")
	}
	return nil
}

// editPath returns the file that is to be changed: the user's own, that of --config,
// the one found from here, or a new one here.
func (a *app) editPath(user bool) (string, error) {
	if user {
		if a.Config != "" {
			return "", usagef("both --user and --config name a file; keep one")
		}
		path, ok := config.UserFile()
		if !ok {
			return "", usagef("your configuration folder is not known; set HOME, or use --config FILE")
		}
		return path, nil
	}
	path, err := a.configPath()
	if err == nil && path == "" {
		path = "mcp.json"
	}
	return here(path), err
}

// edit changes the file of editPath.
func (a *app) edit(user bool, change func(doc *config.Document, path string) error) (path string, err error) {
	path, err = a.editPath(user)
	if err != nil {
		return "", err
	}
	var before, after []byte
	err = config.Edit(a.ctx, path, func(doc *config.Document) error {
		before = doc.Bytes()
		err := change(doc, path)
		after = doc.Bytes()
		return err
	})
	if err == nil {
		a.stillTrusted(path, before, after)
	}
	return path, err
}

// here is a path as people write it from the current folder, if it is below that.
func here(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// system says where the files of hosts are looked for.
func system() (hosts.System, error) {
	dir, err := os.Getwd()
	if err != nil {
		return hosts.System{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return hosts.System{}, usagef("your home folder is not known: %w", err)
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return hosts.System{}, usagef("your configuration folder is not known: %w", err)
	}
	return hosts.System{OS: runtime.GOOS, Home: home, Config: folder, Dir: dir}, nil
}

// hostNamed returns a host by its name, of which people write the short form too.
func hostNamed(name string) (hosts.Host, error) {
	if name == "claude" {
		name = "claude-code"
	}
	h, ok := hosts.Named(name)
	if !ok {
		var names []string
		for _, h := range hosts.All() {
			names = append(names, h.Name)
		}
		return h, usagef("no host %q%s there are %s", name, didYouMean(name, names)+";", strings.Join(names, ", "))
	}
	return h, nil
}
