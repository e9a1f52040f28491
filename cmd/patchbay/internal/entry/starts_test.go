package entry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
)

// A question of trust shows references and variables that change what runs, without possible
// secrets. It always shows names (traps 23, 24).
func TestTrustShowsNoSecrets(t *testing.T) {
	const secret = "s3cretValue9Zq"
	github := "ghp_" + "R7kQ2vXz9LmN4pTc8WbJ" + "1hGd5FsY3aEu6oVi"
	for _, tt := range []struct{ member, name, written, want string }{
		{"env", "GITHUB_PAT", secret, "GITHUB_PAT"},
		{"env", "OPENAI", secret, "OPENAI"},
		{"env", "PASS", secret, "PASS"},
		{"env", "MY_CREDS", secret, "MY_CREDS"},
		{"env", "CONN", "Server=db;Password=" + secret, "CONN"},
		{"env", "WEBHOOK", "https://hooks.example/" + secret, "WEBHOOK"},
		{"env", "OTHER", "${OTHER}", "OTHER=${OTHER}"},
		{"env", "OTHER", "${OTHER:-" + secret + "}", "OTHER=${OTHER:-…}"},
		{"env", "OTHER", "x${OTHER}" + secret, "OTHER"},
		{"env", "OTHER", "${A}" + secret + "${B}", "OTHER"},
		{"env", "LD_PRELOAD", "./x.so", "LD_PRELOAD=./x.so"},
		{"env", "NODE_OPTIONS", "--require ./x.js", "NODE_OPTIONS=--require ./x.js"},
		{"env", "PYTHONPATH", "./lib", "PYTHONPATH=./lib"},
		{"env", "Path", "./bin:${PATH}", "Path=./bin:${PATH}"},
		{"env", "BASH_ENV", "./rc", "BASH_ENV=./rc"},
		{"env", "GIT_SSH_COMMAND", "./evil", "GIT_SSH_COMMAND=./evil"},
		{"env", "GIT_TOKEN", secret, "GIT_TOKEN"},
		{"env", "HTTPS_PROXY", "http://bob:" + secret + "@evil:1", "HTTPS_PROXY=http://[redacted]@evil:1"},
		{"env", "npm_config_registry", "https://evil.example/", "npm_config_registry=https://evil.example/"},
		{"env", "npm_config__authToken", secret, "npm_config__authToken"},
		{"env", "NODE_OPTIONS", "-r ./" + github, "NODE_OPTIONS=-r ./" + github},
		{"env", "MAKEFLAGS", "-- SHELL=./x", "MAKEFLAGS=-- SHELL=./x"},
		{"env", "OPENSSL_CONF", "./x.cnf", "OPENSSL_CONF=./x.cnf"},
		{"env", "VIMINIT", "source x", "VIMINIT=source x"},
		{"headers", "X-Foo", secret, "X-Foo"},
		{"headers", "X-Foo", "${FOO}", "X-Foo: ${FOO}"},
		{"headers", "Authorization", "Bearer ${FOO}", "Authorization"},
	} {
		var g given
		g.add(tt.member, tt.name, tt.written)
		if got := strings.Join(append(g.sets, g.sends...), " "); got != tt.want {
			t.Errorf("%s %s %q is shown as %q, want %q", tt.member, tt.name, tt.written, got, tt.want)
		}
	}
}

// The question shows programs, and arguments that can be code or a path, as they are written: code in
// the form of a secret would run unseen. It hides other arguments that may be secrets.
func TestTrustShowsWhatRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {
		"a": {"command": "./ghp_abcdefghijklmnopqrstuvwxyz0123456789/run", "args": ["A"]},
		"b": {"command": "sh", "args": ["-c", "TOKEN=$(./x) exec serve"]},
		"c": {"command": "sh", "args": ["-c", "eval \"$1\"", "--token", "./x"]},
		"d": {"command": "TOKEN=evil/sh"},
		"e": {"command": "sh", "args": ["--password=$(./x)", "${PATCHBAY_NOT_SET}"]},
		"g": {"command": "serve", "args": ["--pat", "s3cretValue9Zq", "--token=s3cretValue9Zq", "postgres://bob:s3cret@db/x", "ghp_R7kQ2vXz9LmN4pTc8WbJ1hGd5FsY3aEu6oVi"]},
		"f": {"url": "https://u:secret@example.com/mcp"}
	}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, faults, err := config.Inspect(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(Starts(file, faults), "\n")
	for _, want := range []string{
		"a: ./ghp_abcdefghijklmnopqrstuvwxyz0123456789/run A",
		"b: sh -c 'TOKEN=$(./x) exec serve'",
		"c: sh -c " + screen.Shell([]string{`eval "$1"`}) + " --token ./x",
		"d: TOKEN=evil/sh",
		`e: "sh" ["--password=$(./x)","${PATCHBAY_NOT_SET}"] (with faults)`,
		"g: serve " + screen.Shell([]string{"--pat", "[redacted]", "--token=[redacted]", "postgres://[redacted]@db/x", "[redacted]"}),
		"f: https://[redacted]@example.com/mcp",
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("the question has no line %q:\n%s", want, got)
		}
	}
}
