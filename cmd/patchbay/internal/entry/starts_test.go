package entry

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/secrets"
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
		{"env", "NODE_PATH", github, "NODE_PATH=[redacted]"},
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
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--pat", secret}, "--pat [redacted]"},
		{[]string{"--token=" + secret}, "--token=[redacted]"},
		{[]string{"x", github}, "x [redacted]"},
		{[]string{"-c", "KEY=x;./evil --password=" + secret}, "-c KEY=x;./evil --password=[redacted]"},
	} {
		if got := secrets.Lookalikes(strings.Join(secrets.ShownArgs(tt.args), " ")); got != tt.want {
			t.Errorf("the arguments %q are shown as %q, want %q", tt.args, got, tt.want)
		}
	}
}
