package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// launcher starts the program of the package for this system. It passes signals on, and ends as the program ends.
const launcher = `#!/usr/bin/env node
const { spawn } = require('node:child_process');
const name = '@patchbay/' + process.platform + '-' + process.arch;
let program;
try {
  program = require.resolve(name + '/bin/patchbay' + (process.platform === 'win32' ? '.exe' : ''));
} catch {
  console.error('patchbay: the package ' + name + ' is not installed. Either there is none for this system, or npm was told to leave optional dependencies out (--omit=optional). Other ways to install: ` + homepage + `#install');
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK']) process.on(signal, () => child.kill(signal));
child.on('error', (err) => { console.error('patchbay: ' + err.message); process.exit(1); });
child.on('exit', (code, signal) => {
  if (signal) { process.removeAllListeners(signal); process.kill(process.pid, signal); } else process.exit(code);
});
`

// npmNames are the words of Node for systems.
var npmNames = map[string]string{"windows": "win32", "amd64": "x64"}

func npmName(word string) string {
	if name, ok := npmNames[word]; ok {
		return name
	}
	return word
}

// npm makes packages for npm: patchbay-mcp, and one with the program for each system, of which npm installs the one that fits.
func (r *release) npm() error {
	documents, err := r.documents()
	if err != nil {
		return err
	}
	optional := map[string]string{}
	for _, s := range systems {
		system, arch := npmName(s.os), npmName(s.arch)
		name := "@patchbay/" + system + "-" + arch
		optional[name] = r.version
		program, err := os.ReadFile(r.programs[s])
		if err != nil {
			return err
		}
		about := map[string]any{"name": name, "os": []string{system}, "cpu": []string{arch}, "description": "The program of patchbay-mcp for " + system + " on " + arch}
		members := []member{{"bin/" + filepath.Base(r.programs[s]), 0o755, program}}
		if err := r.npmPackage("patchbay-"+system+"-"+arch, about, append(members, documents...)); err != nil {
			return err
		}
	}
	about := map[string]any{"name": "patchbay-mcp", "bin": map[string]string{"patchbay": "bin/patchbay.js", "patchbay-mcp": "bin/patchbay.js"},
		"optionalDependencies": optional, "description": summary, "engines": map[string]string{"node": ">=18"}, "keywords": []string{"mcp", "model-context-protocol", "gateway", "inspector"}}
	return r.npmPackage("patchbay-mcp", about, append([]member{{"bin/patchbay.js", 0o755, []byte(launcher)}}, documents...))
}

func (r *release) npmPackage(file string, about map[string]any, members []member) error {
	about["version"], about["license"], about["homepage"] = r.version, licence, homepage
	about["repository"] = map[string]string{"type": "git", "url": "git+" + homepage + ".git"}
	text, err := json.MarshalIndent(about, "", "  ") // sorted by name
	if err != nil {
		return err
	}
	content, err := tarred(append([]member{{"package.json", 0o644, append(text, '\n')}}, members...), "package/", r.time)
	if err != nil {
		return err
	}
	return r.add("npm-"+file+"-"+r.version+".tgz", content)
}
