package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ownFolders makes new settings folders for the test and the programs that it starts, without the
// system's keyring. It returns the file that a vault needs.
func ownFolders(t *testing.T) (vaultFolder string) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "AppData", "USERPROFILE"} {
		t.Setenv(name, home)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, ".data"))
	t.Setenv("LOCALAPPDATA", home)
	t.Setenv("PATCHBAY_KEYRING", "off")
	t.Setenv("PATCHBAY_PASSPHRASE", "")
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "patchbay", "vault")
}

// locked is an HTTP server that requires a key.
func locked(t *testing.T, key string) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != key {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		stubHTTP.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

// inputFile writes an mcp.json with a server that needs the input "key".
func inputFile(t *testing.T, path, url string) {
	t.Helper()
	text := fmt.Sprintf(`{"servers": {"web": {"url": %q, "headers": {"X-Api-Key": "${input:key}"}}},
		"inputs": [{"type": "promptString", "id": "key", "description": "Key", "password": true}]}`, url)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// typedRun runs the program; if typed is not empty, a person types it. It returns the whole output.
func typedRun(t *testing.T, typed string, want int, args ...string) string {
	t.Helper()
	var out, said strings.Builder
	a := newApp(t.Context(), strings.NewReader(typed), &out, &said)
	a.tty.in, a.tty.err = typed != "", typed != ""
	if got := a.run(args); got != want {
		t.Errorf("patchbay %s exited with %d, want %d: %s%s", strings.Join(args, " "), got, want, &out, &said)
	}
	for _, planted := range []string{"planted-right", "planted-wrong"} {
		if strings.Contains(out.String()+said.String(), planted) {
			t.Errorf("patchbay %s shows the secret: %s%s", strings.Join(args, " "), &out, &said)
		}
	}
	return out.String() + said.String()
}

// An answer is asked for once, kept for the next run, which needs no terminal, listed, and
// forgotten.
func TestInputIsKept(t *testing.T) {
	dir := ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, file, locked(t, "planted-right"))
	ping := []string{"ping", "-n", "1", "-s", "web", "--config", file}
	if got := typedRun(t, "", exitLocal, ping...); !strings.Contains(got, "set PATCHBAY_INPUT_KEY, or run this in a terminal") {
		t.Errorf("without an answer: %s", got)
	}
	if got := typedRun(t, "planted-right\n", exitOK, ping...); strings.Count(got, "stored in "+dir) != 1 {
		t.Errorf("said %s, want once where it is kept", got)
	}
	typedRun(t, "", exitOK, ping...)
	if got := typedRun(t, "", exitOK, "config", "inputs", "--config", file); !strings.Contains(got, "stored for ") || !strings.Contains(got, "web") {
		t.Errorf("config inputs: %s", got)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil || strings.Contains(string(content), "planted") {
			t.Errorf("%s shows the answer, %v", f.Name(), err)
		}
	}
	other := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, other, locked(t, "planted-right"))
	typedRun(t, "", exitLocal, "ping", "-n", "1", "-s", "web", "--config", other)

	if got := typedRun(t, "", exitOK, "config", "inputs", "--forget", "key", "--config", file); !strings.Contains(got, "deleted key") {
		t.Errorf("config inputs --forget: %s", got)
	}
	typedRun(t, "", exitLocal, ping...)
	typedRun(t, "planted-right\n", exitOK, ping...)
	if got := typedRun(t, "", exitOK, "logout", "web", "--config", file); !strings.Contains(got, "deleted the answer to the input key") {
		t.Errorf("logout: %s", got)
	}
	typedRun(t, "", exitLocal, ping...)
	// Answers outlive the file, and can still be forgotten.
	typedRun(t, "planted-right\n", exitOK, ping...)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := typedRun(t, "", exitOK, "config", "inputs", "--json", "--config", file); !strings.Contains(got, `"gone":true`) {
		t.Errorf("config inputs without the file: %s", got)
	}
	typedRun(t, "", exitOK, "config", "inputs", "--forget", "--config", file)
	if left, _ := filepath.Glob(filepath.Join(dir, "secret-*[0-9a-f]")); len(left) > 0 {
		t.Errorf("%q are left of what was forgotten", left)
	}
}

// When the server refuses an answer, the program asks again; without a terminal it says how to
// forget the answer.
func TestRefusedInputIsAskedAgain(t *testing.T) {
	ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, file, locked(t, "planted-right"))
	ping := []string{"ping", "-n", "1", "-s", "web", "--config", file}
	if got := typedRun(t, "planted-wrong\n", exitUnauthorized, ping...); !strings.Contains(got, "web refused the answers") {
		t.Errorf("said %s", got)
	}
	if got := typedRun(t, "", exitUnauthorized, ping...); !strings.Contains(got, "hint: patchbay config inputs --forget key") {
		t.Errorf("said %s", got)
	}
	typedRun(t, "planted-wrong\nplanted-right\n", exitOK, ping...)
	typedRun(t, "", exitOK, ping...)
}

// After a file changes, the kept answer goes to another server only if the person agrees.
func TestKeptInputIsForItsServer(t *testing.T) {
	ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	ping := []string{"ping", "-n", "1", "-s", "web", "--config", file}
	first, second := locked(t, "planted-right"), locked(t, "planted-right")
	inputFile(t, file, first)
	typedRun(t, "planted-right\n", exitOK, ping...)
	inputFile(t, file, strings.Replace(first, "/mcp", "/else", 1))
	typedRun(t, "", exitOK, ping...)
	inputFile(t, file, second)
	if got := typedRun(t, "", exitLocal, ping...); !strings.Contains(got, "for another server, or an earlier version of this one") {
		t.Errorf("said %s", got)
	}
	if got := typedRun(t, "\n", exitOK, ping...); !strings.Contains(got, "key was not given to this version of web before") || !strings.Contains(got, second) {
		t.Errorf("said %s", got)
	}
	typedRun(t, "", exitOK, ping...)
	inputFile(t, file, first)
	typedRun(t, "", exitOK, ping...)
}

// If the vault cannot be opened or written, the answer still counts.
func TestAnswerOutlivesTheVault(t *testing.T) {
	dir := ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, file, locked(t, "planted-right"))
	ping := []string{"ping", "-n", "1", "-s", "web", "--config", file}
	t.Run("locked", func(t *testing.T) {
		t.Setenv("PATCHBAY_PASSPHRASE", "correct horse")
		typedRun(t, "planted-right\n", exitOK, ping...)
		t.Setenv("PATCHBAY_PASSPHRASE", "")
		if got := typedRun(t, "", exitLocal, ping...); !strings.Contains(got, "cannot read stored answers") || !strings.Contains(got, "PATCHBAY_PASSPHRASE") {
			t.Errorf("said %s", got)
		}
		if got := typedRun(t, "planted-right\n", exitOK, ping...); !strings.Contains(got, "warning: the answer is used only for this run") {
			t.Errorf("said %s", got)
		}
		t.Setenv("PATCHBAY_PASSPHRASE", "correct horse")
		typedRun(t, "", exitOK, ping...)
	})
	t.Run("not a folder", func(t *testing.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := typedRun(t, "planted-right\n", exitOK, ping...); !strings.Contains(got, "warning: the answer is used only for this run") {
			t.Errorf("said %s", got)
		}
	})
}

// The variable overrides the kept answer, and is not kept.
func TestVariableGoesBeforeKeptInput(t *testing.T) {
	ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, file, locked(t, "planted-right"))
	ping := []string{"ping", "-n", "1", "-s", "web", "--config", file}
	t.Setenv("PATCHBAY_INPUT_KEY", "planted-right")
	typedRun(t, "x\n", exitOK, ping...)
	os.Unsetenv("PATCHBAY_INPUT_KEY")
	typedRun(t, "", exitLocal, ping...)
	typedRun(t, "planted-right\n", exitOK, ping...)
	t.Setenv("PATCHBAY_INPUT_KEY", "planted-wrong")
	if got := typedRun(t, "", exitUnauthorized, ping...); strings.Contains(got, "--forget") {
		t.Errorf("said %s, though nothing that is kept was refused", got)
	}
}
