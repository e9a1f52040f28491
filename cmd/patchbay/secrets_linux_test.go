package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The planted secrets, each in its place. All contain characters that encodings change.
const (
	inHeader   = "planted/header+1"
	inQuery    = "planted/query+2"
	inUser     = "planted/user+3"
	inEnv      = "planted/env&4"
	inDSN      = "planted/dsn+5"
	inVariable = "planted/variable&6"
	inArg      = "planted/arg+7"
	inInput    = "planted/input+8"
	inFlag     = "planted/flag+9"
	inEnvFlag  = "planted/envflag+10"
	inAccess   = "planted/access+11"
	inRefresh  = "planted/refresh+12"
	inClient   = "planted/client+13"
	inBasic    = "planted/basic+14"
	inKey      = "pb_planted_SECRETPLANTEDKEY15"
	inPhrase   = "planted/phrase+16"
	inShell    = "planted/shell+17"   // of the person's environment, undeclared
	inUnnamed  = "planted/unnamed+18" // under names that are not those of secrets; of the question of trust
)

var allPlanted = []string{
	inHeader, inQuery, inUser, inEnv, inDSN, inVariable, inArg, inInput, inFlag, inEnvFlag, inAccess, inRefresh, inClient, inBasic, inKey, inPhrase, inShell, inUnnamed,
}

// leaks fails the test if a text contains a planted secret, plain or encoded.
func leaks(t *testing.T, what, text string, but ...string) {
	t.Helper()
	for _, secret := range allPlanted {
		if contains := strings.Join(but, " "); strings.Contains(contains, secret) {
			continue
		}
		quoted, err := json.Marshal(secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(quoted), `"`), strings.Trim(fmt.Sprintf("%q", secret), `"`),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte("bob:" + secret)), fmt.Sprintf("%x", secret),
		} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s shows %s: ...%s...", what, secret, text[max(0, i-150):min(len(text), i+len(form)+60)])
				break
			}
		}
	}
}

// TestSecretsLeakNowhere plants a secret in every place for one, runs the program as a person does,
// against servers that echo their input, and searches everything that it prints, writes, answers
// over HTTP, and starts.
//
// LOG-26-008, and: no argument or environment of a process that does not need them, no log, trace,
// error or report contains secrets.
func TestSecretsLeakNowhere(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a hundred programs")
	}
	ownFolders(t)
	runtimeFolder(t)
	t.Setenv("PATCHBAY_PASSPHRASE", inPhrase)
	t.Setenv("PATCHBAY_INPUT_KEY", inInput)
	t.Setenv("DEPLOY_TOKEN", inVariable)
	t.Setenv("SHELL_TOKEN", inShell)
	dir := t.TempDir()
	t.Chdir(dir)
	places := plantedServers(t)
	file := filepath.Join(dir, "mcp.json")
	run := func(args ...string) {
		t.Helper()
		what := "patchbay " + strings.Join(args, " ")
		text, code := runProgram(t, args...)
		if code == exitUsage && !strings.Contains(text, "no URL to log in to") && !strings.Contains(text, "its own Authorization header") {
			t.Errorf("%s is no command line: %s", what, text)
		}
		leaks(t, what, text)
	}
	unnamed := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, unnamed, map[string]any{
		"child": map[string]any{"command": "true", "args": []string{"--pat", inUnnamed}, "env": map[string]string{"GITHUB_PAT": inUnnamed, "OPENAI": inUnnamed, "PASS": inUnnamed, "CONN": "x=" + inUnnamed, "WEBHOOK": "https://h.example/" + inUnnamed}},
		"web":   map[string]any{"url": "https://w.example/mcp", "headers": map[string]string{"X-Foo": inUnnamed}},
		"later": map[string]any{"command": "true", "args": []string{"${NO_SUCH}", "--pat", inUnnamed}, "env": map[string]string{"OPENAI": inUnnamed}},
	})
	run("config", "trust", unnamed)
	run("config", "trust", file) // else the servers of a folder are not used
	for _, server := range []string{"good", "refuses", "user", "child", "spills", "breaks", "login"} {
		run("tools", "-s", server)
		run("tools", "-s", server, "-v", "--trace", server+".jsonl", "--header", "Authorization: Bearer "+inFlag)
		run("trace", server+".jsonl", "--full")
		run("discover", "-s", server, "--json")
		run("config", "explain", server)
		run("config", "explain", server, "--json")
		run("whoami", server)
		run("call", "args", "count=1", "-s", server, "--timeout", "20s")
	}
	run("call", "env", "name=HOME", "-s", "child", "--env", "EXTRA_TOKEN="+inEnvFlag, "-v", "--trace", "child.jsonl")
	run("replay", "good.jsonl", "-s", "good")
	run("replay", "good.jsonl", "-s", "refuses")
	run("config", "list")
	run("config", "list", "--json")
	run("config", "inputs")
	run("config", "inputs", "--json")
	run("config", "doctor")
	run("config", "doctor", "--json", "-v")
	for _, host := range []string{"vscode", "codex", "zed", "goose", "claude-desktop"} {
		run("config", "export", host)
	}
	run("login", "login")
	run("login", "refuses")
	run("logout", "login")
	run("token", "inspect", inKey)
	for _, at := range []string{
		"http://bob:" + url.PathEscape(inUser) + "@127.0.0.1:1/mcp", "http://127.0.0.1:1/mcp?api_key=" + url.QueryEscape(inQuery),
		places.echo + "?api_key=" + url.QueryEscape(inQuery), "https://bob:" + url.PathEscape(inUser) + "@" + strings.TrimPrefix(places.echo, "http://"),
	} {
		run("tools", "-s", at)
		run("tools", "-s", at, "-v", "--trace", "-")
		run("call", "x", "-s", at)
		run("login", at)
	}
	run("tools", "--", "sh", "-c", "env >&2; exit 3", "sh", "--api-key", inArg)

	plantedUp(t, file)
	plantedServe(t)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == file || filepath.Base(path) == "users" {
			return err
		}
		content, err := os.ReadFile(path)
		leaks(t, path, string(content))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	home, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		leaks(t, path, string(content))
		return err
	}); err != nil {
		t.Error(err)
	}
}

// runProgram runs the program to its end, and returns its whole output.
func runProgram(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := secretive(ctx, t, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("patchbay %s: %v, %v", strings.Join(args, " "), err, ctx.Err())
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func secretive(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), testRun+"=patchbay")
	return cmd
}

// planted are servers with secrets.
type planted struct{ echo string }

// plantedServers writes an mcp.json of servers with secrets, and a login to the vault.
func plantedServers(t *testing.T) planted {
	t.Helper()
	said := func(r *http.Request) string {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		return fmt.Sprintf("%s %v %s", r.URL, r.Header, body)
	}
	refuse := func(status int) *httptest.Server {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := said(r)
			w.Header().Set("X-Said", strings.ReplaceAll(text, "\n", " "))
			w.Header().Set("WWW-Authenticate", `Custom realm="`+strings.ReplaceAll(text, `"`, "'")+`"`)
			http.Error(w, text, status)
		}))
		t.Cleanup(srv.Close)
		return srv
	}
	good := httptest.NewServer(stubHTTP)
	t.Cleanup(good.Close)
	echo, breaks := refuse(http.StatusUnauthorized), refuse(http.StatusInternalServerError)
	// The resource server of a login, whose authorization server echoes its input.
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := said(r)
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/mcp":
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			json.NewEncoder(w).Encode(map[string]string{"message": text})
		case "/token", "/revoke":
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": text})
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(idp.Close)
	v, err := vault.Open("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Save(t.Context(), &login.Record{
		Key:      login.Key{Server: idp.URL + "/mcp", Issuer: idp.URL, Client: "me"},
		Resource: idp.URL + "/mcp", TokenURL: idp.URL + "/token", RevokeURL: idp.URL + "/revoke",
		ClientSecret: inClient, ClientMethod: "client_secret_post", Access: inAccess, Refresh: inRefresh,
		Got: time.Now().Add(-time.Hour), Expires: time.Now().Add(-time.Minute),
	}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	type server = map[string]any
	servers := map[string]server{
		"good":    {"url": good.URL + "/mcp?api_key=" + url.QueryEscape(inQuery), "headers": server{"Authorization": "Bearer " + inHeader, "X-Basic": "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+inBasic))}},
		"refuses": {"url": echo.URL + "/mcp?api_key=" + url.QueryEscape(inQuery), "headers": server{"X-Api-Key": "${input:key}", "Authorization": "Bearer " + inHeader}},
		"breaks":  {"url": breaks.URL + "/mcp", "headers": server{"X-Api-Key": "${input:key}", "X-Other": "${DEPLOY_TOKEN}", "Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+inBasic))}},
		"user":    {"url": "http://bob:" + url.PathEscape(inUser) + "@127.0.0.1:1/mcp"},
		"login":   {"url": idp.URL + "/mcp"},
		"bare":    {"command": "env", "args": []string{testRun + "=stub", self}},
		"child":   {"command": "env", "args": []string{testRun + "=stub", self, "env"}, "env": server{"GITHUB_TOKEN": inEnv, "DATABASE_URL": "postgres://bob:" + url.PathEscape(inDSN) + "@db/x"}},
		"spills": {
			"command": "sh", "args": []string{"-c", `env >&2; echo "$@" >&2; env | base64 -w0 >&2; exit 3`, "sh", "--api-key", inArg, "-e", "SOME_TOKEN=" + inArg, "postgres://bob:" + inDSN + "@db/x"},
			"env": server{"GITHUB_TOKEN": inEnv, "OTHER": "${DEPLOY_TOKEN}", "API_KEY": "${input:key}"},
		},
	}
	text, err := json.Marshal(server{"servers": servers, "inputs": []server{{"type": "promptString", "id": "key", "password": true}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("mcp.json", text, 0o600); err != nil {
		t.Fatal(err)
	}
	return planted{echo.URL + "/mcp"}
}

// plantedUp runs up on the servers, sends it every request, examines the processes that it started,
// and makes it crash.
func plantedUp(t *testing.T, file string) {
	t.Helper()
	out, said := new(transcript), new(transcript)
	cmd := secretive(t.Context(), t, "up", "--http", "127.0.0.1:0", "--config", file, "-v", "--trace", "up.jsonl")
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out.await(t, "ctrl-C ends it")
	base := ""
	for _, word := range strings.Fields(out.String()) {
		if strings.HasPrefix(word, "http://127.0.0.1:") && strings.HasSuffix(word, "/mcp") {
			base = strings.TrimSuffix(word, "/mcp")
			break
		}
	}
	for _, path := range []string{"/readyz", "/healthz", "/", "/mcp"} {
		res, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		leaks(t, "GET "+path, fmt.Sprint(string(body), res.Header, err))
	}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		s, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}).Dial(t.Context(), base+"/mcp")
		if err != nil {
			t.Fatal(err)
		}
		for tool, err := range s.Tools(t.Context()) {
			leaks(t, "tools of up", fmt.Sprint(tool, err))
		}
		for _, tool := range []string{"spills_args", "refuses_args", "breaks_args", "user_args", "login_args", "child_args"} {
			res, err := s.CallTool(t.Context(), tool, map[string]any{"count": 1})
			leaks(t, "call of "+tool, fmt.Sprintf("%+v %v", res, err))
		}
		s.Close()
	}
	text, _ := runProgram(t, "status")
	leaks(t, "status", text)
	text, _ = runProgram(t, "status", "--json")
	leaks(t, "status --json", text)
	plantedProcesses(t, cmd.Process.Pid)
	cmd.Process.Signal(syscall.SIGQUIT) // Go prints all stacks
	cmd.Wait()
	leaks(t, "standard output of up", out.String())
	leaks(t, "standard error of up", said.String())
	if !strings.Contains(said.String(), "goroutine ") {
		t.Error("up did not crash as it was told")
	}
}

// plantedProcesses examines the arguments and environments of the processes that up started.
func plantedProcesses(t *testing.T, pid int) {
	t.Helper()
	bare, child := 0, 0
	for _, p := range descendantsOf(pid) {
		args, err1 := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		env, err2 := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p))
		if err1 != nil || err2 != nil || strings.Contains(string(args), "--api-key") {
			continue // it has ended, or a person wrote its arguments with the secret
		}
		leaks(t, "a process's arguments", string(args))
		switch {
		case strings.Contains(string(env), "GITHUB_TOKEN="+inEnv):
			child++
			leaks(t, "the environment of child", string(env), inEnv, inDSN)
		default:
			bare++
			leaks(t, "the environment of bare", string(env))
		}
	}
	if bare < 2 || child < 2 {
		t.Errorf("%d processes of bare and %d of child were seen, want a guard and a server each", bare, child)
	}
}

// plantedServe makes a server refuse credentials.
func plantedServe(t *testing.T) {
	t.Helper()
	if text, code := runProgram(t, "token", "key", "alice", "--file", "keys.jsonl"); code != 0 {
		t.Fatal(text)
	}
	password := secretive(t.Context(), t, "token", "password", "bob")
	password.Stdin = strings.NewReader("another\n")
	line, err := password.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("users", line, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HMAC", inClient+inClient+inClient)
	cmd := secretive(t.Context(), t, "serve", "everything", "--http", "127.0.0.1:0", "-v", "--trace", "serve.jsonl", "--auth", "apikeys:keys.jsonl", "--auth", "basic:users", "--auth", "hmac:env:HMAC,audience=x")
	said := new(transcript)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	said.await(t, `listening on http://\S+/mcp`)
	_, at, _ := strings.Cut(said.String(), "listening on ")
	at = strings.Fields(at)[0]
	for _, credential := range []string{
		"Bearer " + inKey, "Bearer " + inFlag, "Bearer a.b." + inFlag, "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+inBasic)), inFlag, "Bearer " + inFlag + " " + inFlag,
	} {
		req, err := http.NewRequest("POST", at+"?access_token="+url.QueryEscape(inQuery), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", credential)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		leaks(t, "an answer of serve", fmt.Sprint(string(body), res.Header, err))
	}
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	leaks(t, "standard error of serve", said.String())
}
