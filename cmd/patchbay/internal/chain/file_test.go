package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/testcert"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/metrics"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The values of a file are checked as up uses them, each fault at its place.
func TestLoadFaults(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"db": {"command": "x"}, "odd": {"comand": "y"}}}`)
	write(t, filepath.Join(dir, "broken.json"), `{`)
	write(t, filepath.Join(dir, "rules.yaml"), "rules: [{name: a, effect: alow, when: 'true'}]\n")
	t.Setenv("CHAIN_TEST_SECRET", "s3cret")
	for _, tt := range []struct{ file, fault string }{
		{"servers: mcp.json\nready: {require: [db, odd]}", ""},
		{"servers: nowhere.json", "1:10: servers: "},
		{"servers: broken.json", "1:10: "},
		{"servers: mcp.json\nready: {require: [db, web]}", `2:23: there is no server "web"; add it to `},
		{"policy: rules.yaml", `rules.yaml:1:27: unknown effect "alow"`},
		{"policy: nowhere.yaml", "1:9: policy: "},
		{"listen: {cert: mcp.json}", "1:16: listen.cert: "},
		{"listen: {http: 'http://127.0.0.1:1'}", "1:16: listen.http: a URL is not an address"},
		{"listen: {http: '0.0.0.0:1'}", ""}, // --insecure-no-auth may allow it
		{"limits: [1/s, fast]", "1:15: rate \"fast\": "},
		{"limits: [1/s, 2/s]", "1:15: this limit is given twice"},
		{"limits: [proxy=10.0.0.0/8]", "1:9: proxy= needs another limit"},
		{"auth: [jwt:https://idp.example]", ""},
		{"auth: ['hmac:env:CHAIN_TEST_SECRET']", "1:8: auth[0]: "}, // too short
		{"auth: [a:b]", `1:8: auth[0]: unknown kind "a"`},
		{"auth: [apikeys:none.jsonl]", "1:8: auth[0]: "},
		{"auth: ['hmac:${CHAIN_TEST_SECRET}']", "1:8: auth[0] cannot be used; its value, from a variable or a file, is not shown"},
		{"telemetry: {otlp: 'http://localhost:4318'}", ""},
		{"telemetry: {otlp: 'http://localhost:4318/?a=b'}", "1:19: telemetry.otlp: the endpoint has a query"},
		{"telemetry: {otlp: 'http://ada:${CHAIN_TEST_SECRET}@localhost:4318'}", "1:19: telemetry.otlp has a user name or a password; write it in telemetry.headers"},
		{"audit: {file: new/audit.jsonl, key: new/audit.key}", ""},
		{"audit: {file: .}", "1:15: audit.file: "},
		{"audit: {file: mcp.json/audit.jsonl}", "1:15: audit.file: "},
		{"audit: {file: mcp.json}", "1:15: audit.file: "},
		{"audit:\n  file: a\n  key: mcp.json", "3:8: audit.key: "},
		{"audit: {file: x, key: x}", "1:23: audit.key and audit.file are the same file; name another file"},
		{"record: {dir: a/b}", ""},
		{"record: {dir: mcp.json}", "1:15: record.dir: "},
		{"listen: {admin: '0.0.0.0:9443'}", "1:17: listen.admin: anyone who can reach this address could restart and disable servers: there is no authentication; add auth, or use 127.0.0.1"},
		{"listen: {metrics: '7420', admin: '7420'}", "1:34: listen.admin and listen.metrics have the same port; use another port"},
		{"listen: {metrics: '127.0.0.1:x'}", "1:19: listen.metrics: "},
		{"listen: {http: '127.0.0.1:7420', metrics: '7420'}", "1:43: listen.metrics and listen.http have the same port; use another port"},
		{"listen: {http: '127.0.0.1:7420', metrics: '0.0.0.0:7420'}", "1:43: listen.metrics and listen.http have the same port"},
		{"listen: {http: '127.0.0.1:7420', metrics: '127.0.0.2:7420'}", ""},
		{"listen: {http: '127.0.0.1:0', metrics: '127.0.0.1:0'}", ""},
		{"limit: 1/s", `1:1: the file has no member "limit"`},
	} {
		path := filepath.Join(dir, "gateway.yaml")
		write(t, path, tt.file)
		p, _ := program()
		f, err := p.Load(path)
		var bad deploy.Problems
		switch {
		case tt.fault == "" && err != nil:
			t.Errorf("%s: %v", tt.file, err)
		case tt.fault != "" && (f != nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%s has the faults %v, want %q", tt.file, err, tt.fault)
		}
	}
}

// Check has the faults and warnings that a start would have.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.yaml")
	write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"db": {"command": "x"}, "odd": {"comand": "y"}, "off": {"comand": "y", "disabled": true},
		"unset": {"command": "x", "env": {"A": "${CHAIN_TEST_NONE_Y}"}}}}`)
	write(t, path, "servers: mcp.json\nlisten: {metrics: '0.0.0.0:9090'}\naudit: {file: audit.jsonl}\n")
	log, err := audit.Open(filepath.Join(dir, "audit.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := program()
	f, err := p.Check(path, false)
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"gateway.yaml:2:19: other machines can read the metrics", "gateway.yaml:3:15: audit.file: another process writes to ", "mcp.json:1:", "mcp.json:2:"}
	if len(f.Warnings) != len(wants) {
		t.Fatalf("the warnings are\n%v\nwant %q", f.Warnings, wants)
	}
	for i, want := range wants {
		if got := f.Warnings[i].String(); !strings.HasPrefix(got, filepath.Join(dir, want)) {
			t.Errorf("the warning %d is %q, want %q", i, got, want)
		}
	}
	if text := f.Warnings.Error(); !strings.Contains(text, "comand") || !strings.Contains(text, "CHAIN_TEST_NONE_Y") {
		t.Errorf("the warnings are\n%s", text)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := p.Check(path, false); err != nil || strings.Contains(f.Warnings.Error(), "another process") {
		t.Errorf("after the end of the other process: %v, %v", f, err)
	}
	for file, want := range map[string]string{
		"listen: {http: '0.0.0.0:7420'}": "1:16: listen.http: anyone who can reach this address can use the server: there is no authentication; add auth or login, ",
		"listen: {http: '7420'}":         "",
		"listen: {http: '127.0.0.1:1'}":  "",
	} {
		write(t, path, file)
		if _, err := p.Check(path, false); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", file, err, want)
		}
		if _, err := p.Check(path, true); err != nil {
			t.Errorf("%s with a flag that allows it gave %v", file, err)
		}
	}
}

// A folder that this user cannot write to is a fault of the files that would be made in it.
func TestCheckFolder(t *testing.T) {
	dir := t.TempDir()
	locked := filepath.Join(dir, "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Create(filepath.Join(locked, "probe")); err == nil {
		f.Close()
		t.Skip("this user may write to every folder")
	}
	path := filepath.Join(dir, "gateway.yaml")
	p, _ := program()
	for file, want := range map[string]string{
		"audit: {file: a.jsonl, key: locked/audit.key}": "1:29: audit.key: the folder ",
		"audit: {file: locked/new/audit.jsonl}":         "1:15: audit.file: the folder ",
		"record: {dir: locked/frames}":                  "1:15: record.dir: the folder ",
	} {
		write(t, path, file)
		if _, err := p.Check(path, false); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "cannot be written to") {
			t.Errorf("%s gave %v, want %q", file, err, want)
		}
	}
}

// The example of docs/gateway.md has every member that up uses, and no fault.
func TestDocumentedFile(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## One file for a deployment")
	_, example, _ = strings.Cut(example, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {"db": {"command": "x"}}}`)
	write(t, filepath.Join(dir, "policy.yaml"), "rules: [{name: a, effect: allow, when: 'true'}]\n")
	write(t, filepath.Join(dir, "keys.jsonl"), `{"id":"abcdef","hash":"sha256:`+strings.Repeat("ab", 32)+`","subject":"ada"}`+"\n")
	write(t, filepath.Join(dir, "key"), "sesame\n")
	write(t, filepath.Join(dir, "cluster.secret"), "sesame\n")
	write(t, filepath.Join(dir, "gateway.yaml"), example)
	ca := testcert.New(t, filepath.Join(dir, "ca.pem"))
	ca.Sign(t, testcert.Loopback(), filepath.Join(dir, "tls.pem"), filepath.Join(dir, "tls.key"))
	p, _ := program()
	f, err := p.Load(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatalf("%v in\n%s", err, example)
	}
	for _, member := range []string{"servers", "listen.http", "listen.cert", "listen.key", "auth[0]", "login.secret", "ready.wait", "ready.require[0]", "policy", "limits[1]", "teams.from", "audit.key", "record.age", "listen.metrics", "telemetry.otlp", "cluster.secret"} {
		if !f.Has(member) {
			t.Errorf("the example has no %s", member)
		}
	}
}

// The example of a login in docs/gateway.md has every member, and no fault.
func TestDocumentedLogin(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n### People log in")
	_, example, _ = strings.Cut(example, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "key"), "sesame\n")
	path := filepath.Join(dir, "gateway.yaml")
	write(t, path, example)
	p, _ := program()
	f, err := p.Check(path, false)
	if err != nil || len(f.Warnings) > 0 {
		t.Fatalf("%v, %v in\n%s", err, f, example)
	}
	for _, member := range []string{"url", "adminURL", "issuer", "client", "secret", "claims", "require", "scopes", "dir", "session", "token", "schemes"} {
		if !f.Has("login." + member) {
			t.Errorf("the example has no %s", member)
		}
	}
	if _, err := os.Stat(f.Login.Dir); err == nil {
		t.Error("the check has made the folder")
	}
	write(t, path, strings.Replace(example, "TENANT-ID", "common", 1))
	if _, err := p.Check(path, false); err == nil || !strings.Contains(err.Error(), "gateway.yaml:5:11: login.issuer names no tenant") {
		t.Errorf("common: %v", err)
	}
	write(t, path, "listen: {http: 0.0.0.0:8443}\nlogin: {issuer: https://accounts.google.com, client: id, dir: key/x}\n")
	if _, err := p.Check(path, false); err == nil || !strings.Contains(err.Error(), "2:63: login.dir: ") {
		t.Errorf("a folder that cannot be: %v", err)
	}
}

// Files of cluster are checked. Nodes at which people log in have one URL.
func TestClusterFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x")
	path := filepath.Join(dir, "gateway.yaml")
	p, _ := program()
	const embedded = "cluster: {nats: embedded, node: n, listen: '127.0.0.1:1', routes: ['nats://127.0.0.1:1'], "
	for text, want := range map[string]string{
		embedded + "store: file/x}":                                                      "cluster.store: ",
		embedded + "store: s, cert: file, ca: file}":                                     "cluster.cert: ",
		embedded + "store: s, cert: none, ca: none}":                                     "cluster.ca: ",
		"cluster: {nats: 'nats://a', node: n, credentials: nowhere}":                     "cluster.credentials: ",
		embedded + "store: s}\nlogin: {issuer: 'https://login.example.com', client: id}": "2:8: login needs the URL with which hosts reach the nodes; add url: ",
	} {
		write(t, path, text)
		if _, err := p.Check(path, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	write(t, path, embedded+"store: s}\nlogin: {issuer: https://login.example.com, client: id, url: https://mcp.example.com, dir: login}\n")
	if f, err := p.Check(path, false); err != nil || len(f.Warnings) != 0 {
		t.Errorf("login: %v, %+v", err, f)
	}
}

// File names in a SPEC are relative to the file.
func TestAuthFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "users"), "ada:$2a$04$zVHmKQtGGQob.b/Nc7l9NO8UlrYcW05FiuCj/SxsFO/ZtiN9.mNzy\n")
	path := filepath.Join(dir, "gateway.yaml")
	write(t, path, "auth: ['basic:users']\n")
	p, _ := program()
	f, err := p.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "basic:" + filepath.Join(dir, "users"); f.Auth[0] != want {
		t.Errorf("auth is %q, want %q", f.Auth[0], want)
	}
}

// lines is the text of a Talk.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) await(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text := l.String()
		switch {
		case strings.Contains(text, want):
			return
		case time.Now().After(end):
			t.Fatalf("after 30 s there is no %q in %q", want, text)
		}
	}
}

// A gateway.yaml that Kubernetes mounts is followed: a new limit and readiness count without a
// restart, a fault changes nothing, and an address needs a restart.
func TestFollowFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need rights on Windows")
	}
	dir, version := t.TempDir(), 0
	swap := func(text string) {
		t.Helper()
		version++
		name := "..v" + string(rune('0'+version))
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "gateway.yaml"), text)
		if err := os.Symlink(name, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("listen: {http: 127.0.0.1:1}\n")
	path := filepath.Join(dir, "gateway.yaml")
	if err := os.Symlink(filepath.Join("..data", "gateway.yaml"), path); err != nil {
		t.Fatal(err)
	}
	p, _ := program()
	said := new(lines)
	p.Talk = &terminal.Talk{W: said}
	began, err := p.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{File: began}, p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan deploy.Ready, 10)
	var following sync.WaitGroup
	following.Go(func() { c.Follow(ctx, nil, func(r deploy.Ready) { ready <- r }) })
	defer following.Wait()
	defer cancel()

	swap("listen: {http: 127.0.0.1:1}\nlimits: [\"tool:x=1/h\"]\nready: {wait: 9s}\n")
	said.await(t, "changed ready and limits")
	if r := <-ready; r.Wait != 9*time.Second {
		t.Errorf("the gateway waits for %v, want 9s", r.Wait)
	}
	mw := c.limits.limit
	var late *limit.Error
	if first, second := calls(mw); first != nil || !errors.As(second, &late) {
		t.Errorf("with the new limit: %v, %v", first, second)
	}
	swap("listen: {http: 127.0.0.1:1}\nlimits: [\"tool:x=1/h\"]\nready: {wait: 9}\n")
	said.await(t, "has faults; the gateway is unchanged")
	said.await(t, `:3:15: ready.wait is "9", not a time`)
	unapplied := func(want string) {
		t.Helper()
		var got []string
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			var r health.Report
			if c.Report(&r); r.State != "" || r.Audit != nil {
				t.Fatalf("the state is %+v", r)
			}
			if got = r.Unapplied; want == "" && got == nil || want != "" && len(got) == 1 && got[0] == want {
				return
			} else if time.Now().After(end) {
				t.Fatalf("not in use: %q, want %q", got, want)
			}
		}
	}
	unapplied(path + " has faults; the gateway is unchanged: " + path + `:3:15: ready.wait is "9", not a time; write it like 10s, 5m, 12h or 7d`)
	swap("limit: []\nview: x\nteam: {}\n")
	unapplied(path + " has faults; the gateway is unchanged: " + path + `:1:1: the file has no member "limit"; did you mean "limits"? (and 2 more)`)
	swap("listen: {http: 127.0.0.1:2}\nlimits: [\"tool:x=1/h\"]\nready: {wait: 9s}\n")
	said.await(t, "changes of listen.http need a restart")
	unapplied(path + ": changes of listen.http need a restart")
	swap("listen: {http: 127.0.0.1:1}\nready: {wait: 9s}\n")
	said.await(t, "changed limits")
	unapplied("")
	if _, second := calls(mw); second != nil {
		t.Errorf("without the limit: %v", second)
	}
}

// Limits of a flag stay in use.
func TestFlagLimitsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, path, "ready: {wait: 1s}\n")
	p, _ := program()
	said := new(lines)
	p.Talk = &terminal.Talk{W: said}
	began, err := p.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Limits: []string{"5/s"}, File: began}, p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { c.Follow(ctx, nil, func(deploy.Ready) {}) })
	defer following.Wait()
	defer cancel()
	before := c.limits.now.Load()
	write(t, path, "limits: [1/s]\n")
	said.await(t, "changes of limits need a restart")
	if c.limits.now.Load() != before {
		t.Error("the file has replaced the limits of the flag")
	}
}

// Faults of a file of keys are in the state until they are mended, and keep no change of gateway.yaml from
// being used.
func TestKeyFaults(t *testing.T) {
	dir := t.TempDir()
	path, keys := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "keys.jsonl")
	_, entry := auth.NewAPIKey("carl")
	line, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	write(t, keys, string(line)+"\n")
	write(t, path, "auth: [\"apikeys:keys.jsonl\"]\n")
	p, _ := program()
	said := new(lines)
	p.Talk = &terminal.Talk{W: said}
	began, err := p.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{File: began}, p)
	if err != nil {
		t.Fatal(err)
	}
	v, err := listen.Verifier(began.Auth[0], p.Logger)
	if err != nil {
		t.Fatal(err)
	}
	guard := &auth.Guard{Verifiers: []auth.Verifier{v}}
	if err := guard.Check(); err != nil {
		t.Fatal(err)
	}
	counters := new(metrics.Counters)
	c.Count(counters)
	c.Listen(&listen.Options{Guard: guard})
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { c.Follow(ctx, nil, func(deploy.Ready) {}) })
	defer following.Wait()
	defer cancel()
	state := func(want ...string) {
		t.Helper()
		var r health.Report
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if c.Report(&r); slices.EqualFunc(r.Unapplied, want, strings.HasPrefix) {
				break
			} else if time.Now().After(end) {
				t.Fatalf("not in use: %q, want %q", r.Unapplied, want)
			}
		}
		if got := counters.Faults(); got != len(want) {
			t.Errorf("%d faults are counted, want %d", got, len(want))
		}
	}
	state()
	if err := os.Remove(keys); err != nil {
		t.Fatal(err)
	}
	state(keys + " is gone; its credentials are refused")
	write(t, path, "auth: [\"apikeys:keys.jsonl\"]\nlimits: [1/s]\n")
	said.await(t, "changed limits")
	write(t, keys, "{\n"+string(line)+"\n{\n")
	state(keys + " has faults; the rest of it is in use: line 1: ")
	write(t, keys, string(line)+"\n")
	state()
	if text := said.String(); strings.Contains(text, "unchanged") {
		t.Errorf("the person reads\n%s", text)
	}
}

// A log that others have changed is named in the state.
func TestChangedLog(t *testing.T) {
	dir := t.TempDir()
	path, log := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "a.jsonl")
	write(t, path, "audit: {file: a.jsonl, key: a.key}\n")
	for _, want := range []string{"", "has lost the copy of its last checkpoint"} {
		p, _ := program()
		f, err := p.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := New(Config{File: f}, p)
		if err != nil {
			t.Fatal(err)
		}
		var r health.Report
		c.Report(&r)
		c.Close()
		if got := r.Audit.Changed; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("the log is changed: %q, want %q", got, want)
		}
		if err := os.Remove(log + ".head"); err != nil {
			t.Fatal(err)
		}
	}
}
