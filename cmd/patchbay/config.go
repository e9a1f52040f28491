package main

import (
	"os"
	"runtime"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

// configVerb has the verbs about mcp.json. They show commands, arguments and URLs as the file has
// them, and only the names of env and headers.
var configVerb = verb{
	name: "config", summary: "Add, remove, list, import, export, explain and check servers.",
	examples: []string{"patchbay config list", "patchbay config add memory -- npx -y @modelcontextprotocol/server-memory", "patchbay config import", "patchbay config doctor"},
	details: `mcp.json is the file of --config, else the first of ./mcp.json, ./.mcp.json,
./.vscode/mcp.json and patchbay/mcp.json in your configuration folder.`,
	verbs: []*verb{
		&configAddVerb, &configRemoveVerb, &configListVerb, &configImportVerb, &configExportVerb, &configExplainVerb,
		&configInputsVerb, &configTrustVerb, &configDoctorVerb, &configModelsVerb, &configModelVerb, &configApprovalsVerb,
	},
}

// editPath returns the file to change: the user's own, that of --config, the one found from here,
// or a new one here.
func (a *app) editPath(user bool) (string, error) {
	if user {
		if a.Config != "" {
			return "", usagef("--user and --config exclude each other")
		}
		path, ok := config.UserFile()
		if !ok {
			return "", usagef("unknown configuration folder; set HOME, or use --config FILE")
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

// system returns the places where the files of hosts are looked for.
func system() (hosts.System, error) {
	dir, err := os.Getwd()
	if err != nil {
		return hosts.System{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return hosts.System{}, usagef("the home folder is not known: %w; set it", err)
	}
	folder, err := os.UserConfigDir()
	if err != nil {
		return hosts.System{}, usagef("unknown configuration folder: %w", err)
	}
	return hosts.System{OS: runtime.GOOS, Home: home, Config: folder, Dir: dir}, nil
}

// hostNamed returns a host by its name or its short name.
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
		return h, usagef("no host %q; hosts: %s%s", name, strings.Join(names, ", "), didYouMean(name, names))
	}
	return h, nil
}

// hostNames returns the hosts that have a configuration file of their own.
func hostNames() (out []complete.Candidate) {
	for _, h := range hosts.All() {
		out = append(out, complete.Candidate{Text: h.Name, About: h.Title})
	}
	return out
}
