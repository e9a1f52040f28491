package main

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/trace"
)

// The variable PWD, the current folder, is named like a password but is not a secret (trap 23):
// lines that contain it, such as a command to paste, stay as they are.
func TestFoldersAreNoSecrets(t *testing.T) {
	for name, want := range map[string]bool{"PWD": false, "OLDPWD": false, "pwd": true, "DB_PWD": true, "PASSWORD": true, "GITHUB_TOKEN": true, "HOME": false} {
		if got := secrets.Name(name); got != want {
			t.Errorf("secrets.Name(%q) = %v, want %v", name, got, want)
		}
	}
	a := &app{secrets: secrets.New(), globals: &globals{}}
	a.Env = []string{"PWD=/home/ada/project", "OLDPWD=/home/ada/other", "DB_PWD=hunter2hunter2"}
	a.learnFlags()
	const line = "patchbay: hint: python3 /home/ada/project/server.py"
	if got := a.secrets.Text(line + " /home/ada/other hunter2hunter2"); got != line+" /home/ada/other "+trace.Redacted {
		t.Errorf("%q", got)
	}
}

// The value of --header is a secret, whatever the name of the header, unless HTTP defines the
// header or the value is a word (trap 23).
func TestHeadersOfFlagsAreSecrets(t *testing.T) {
	a := &app{secrets: secrets.New(), globals: &globals{}}
	a.Header = []string{"X-Custom: tok-77aB12cd", "X-Environment: production", "Accept: application/json; q=0.5", "X-Word: swordfish"}
	a.learnFlags()
	if got := a.secrets.Text("tok-77aB12cd production application/json; q=0.5 swordfish"); got != trace.Redacted+" production application/json; q=0.5 swordfish" {
		t.Errorf("a line is %q", got)
	}
	f := a.secrets.Redactor().Frame(trace.Frame{HTTP: &trace.HTTP{Headers: map[string][]string{
		"X-Custom": {"tok-77aB12cd"}, "X-Word": {"swordfish"}, "Accept": {"application/json"},
	}}})
	for name, want := range map[string]string{"X-Custom": trace.Redacted, "X-Word": trace.Redacted, "Accept": "application/json"} {
		if got := f.HTTP.Headers[name][0]; got != want {
			t.Errorf("in a recording %s is %q, want %q", name, got, want)
		}
	}
}

// With -v, a private key that a server writes to its standard error is not shown.
func TestKeysOfServersAreNotShown(t *testing.T) {
	var out strings.Builder
	a := &app{secrets: secrets.New(), globals: &globals{}}
	a.talk = &terminal.Talk{W: &out, Clean: a.secrets.Text}
	a.Verbose = true
	a.env = a.newEnv()
	log := a.newServerLog("db")
	for _, part := range []string{"start\n-----BEGIN PRIVATE", " KEY-----\nMIIEvQIBADANBgkqhkiG\n", "9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\nready\n"} {
		if _, err := log.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Contains(got, "MIIE") || strings.Contains(got, "9w0B") || !strings.Contains(got, "db: start\n") || !strings.Contains(got, "db: ready\n") {
		t.Errorf("shown:\n%s", got)
	}
}
