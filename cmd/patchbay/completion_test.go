package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

// completing prepares a cache folder and a configuration with the stub as a server, and returns the
// folder of an executable "patchbay".
func completing(t *testing.T) (bin string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME", "LocalAppData", "AppData"} {
		t.Setenv(name, dir)
	}
	t.Setenv("STUB", self)
	t.Chdir(dir)
	config := `{"mcpServers": {"mine": {"command": "${STUB}", "env": {"` + testRun + `": "stub"}}}}`
	if err := os.WriteFile("mcp.json", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	typedRun(t, "", exitOK, "config", "trust")
	bin = filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Symlink(self, filepath.Join(bin, "patchbay")); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func TestSuggest(t *testing.T) {
	completing(t)
	was := suggestTime
	suggestTime = time.Minute // a server may need longer than a person waits, on a machine that does much else
	t.Cleanup(func() { suggestTime = was })
	tests := []struct {
		words []string // the last is the current one
		want  string   // separated by commas; "…" at the end: and more
	}{
		{[]string{"ca"}, "call"},
		{[]string{"complet"}, "complete,completion"},
		{[]string{"call", "--on-e"}, "--on-elicit"},
		{[]string{"call", "--on-elicit", ""}, "decline,cancel"},
		{[]string{"call", "--on-elicit=d"}, "--on-elicit=decline"},
		{[]string{"call", "--revision", "2024"}, "2024-11-05"},
		{[]string{"tools", "-s", "mi"}, "mine"},
		{[]string{"tools", "ev"}, "everything/"},
		{[]string{"call", "mine/a"}, "mine/args"},
		{[]string{"-s", "mine", "call", "f"}, "free"},
		{[]string{"call", "mine/args", "s"}, "size="},
		{[]string{"call", "mine/args", "size="}, "size=small,size=large"},
		{[]string{"call", "args", "-s", "mine", "on=t"}, "on=true"},
		{[]string{"call", "mine/args", "size=small", "s"}, ""},
		{[]string{"call", "free"}, ""}, // a server that is not named is not started
		{[]string{"prompt", "everything/test_prompt_with_arguments", "arg1=par"}, "arg1=paris,arg1=park,arg1=party"},
		{[]string{"read", "-s", "everything", "test://static-t"}, "test://static-text"},
		{[]string{"complete", "-s", "everything", "test://temp"}, "test://template/{id}/data"},
		{[]string{"completion", "p"}, "powershell"},
		{[]string{"help", "ex"}, "exits"},
		{[]string{"help", "config", "rem"}, "remove"}, // trap 31: verbs below a verb
		{[]string{"help", "serve", "sh"}, "shop"},
		{[]string{"help", "li"}, "limits"},
		{[]string{"config", "import", "cur"}, "cursor"},
		{[]string{"config", "export", "cur"}, "cursor"},
		{[]string{"config", "export", "cursor", ""}, "mine"},
		{[]string{"config", "remove", ""}, "mine"},
		{[]string{"config", "remove", "ev"}, ""}, // a built-in server cannot be removed
		{[]string{"config", "doctor", "ev"}, ""},
		{[]string{"config", "explain", "ev"}, "everything"},
		{[]string{"config", "rem"}, "remove"},
		{[]string{"config", "explain", "mi"}, "mine"},
		{[]string{"call", "x", "--", "n"}, ""},
		{[]string{"nobody", "x"}, ""},
	}
	for _, tt := range tests {
		var out strings.Builder
		if code := run(t.Context(), append([]string{complete.Verb, "fish"}, tt.words...), strings.NewReader(""), &out, os.Stderr); code != exitOK {
			t.Errorf("%q: exit code %d", tt.words, code)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			text, _, _ := strings.Cut(line, "\t")
			got = append(got, text)
		}
		if strings.Join(got, ",") != tt.want {
			t.Errorf("%q: suggested %q, want %q", tt.words, got, tt.want)
		}
	}
	// Lists are cached, so that the next key starts nothing.
	kept, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "*", "completion", "*.json"))
	if runtime.GOOS == "linux" && (err != nil || len(kept) == 0) {
		t.Errorf("nothing is kept: %v, %v", kept, err)
	}
}

// TestBash sources the script in bash, and completes lines as bash would.
func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no bash")
	}
	bin := completing(t)
	tests := []struct{ line, want string }{
		{"patchbay cal", "call"},
		{"patchbay call mine/arg", "mine/args"},
		{"patchbay call mine/args si", "size="},
		{"patchbay call mine/args size=", "small large"}, // bash has split "size="
		{"patchbay call 'mine'/args size=s", "small"},
		{"patchbay read -s everything test://static-t", "//static-text"},
		{"patchbay complete -s everything test://templ", `//template/\{id\}/data`},
		{"cd /tmp; patchbay call mine/fr", "mine/free"},
		{"patchbay call mine/args 'size=", "size=small size=large"},
		{"patchbay tools -- npx ", ""},
	}
	for _, tt := range tests {
		cmd := exec.Command(bash, "--norc", "-c", `source <(patchbay completion bash) && complete -p patchbay >/dev/null && COMP_LINE=$1 COMP_POINT=${#1} && { _patchbay; echo "${COMPREPLY[*]}"; }`, "bash", tt.line)
		cmd.Env = append(os.Environ(), testRun+"=patchbay", "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != tt.want {
			t.Errorf("%q: bash gets %q (%v), want %q", tt.line, got, err, tt.want)
		}
	}
}
