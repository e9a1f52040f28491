package deploy_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config/deploy"
)

// A file with every member gives all values, with absolute file names.
func TestEveryMember(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "address", "127.0.0.1:9090\n")
	t.Setenv("DEPLOY_TEST_AGE", "2d")
	path := filepath.Join(dir, "gateway.yaml")
	f, err := deploy.Parse(path, []byte(`
servers: mcp.json
listen: {http: "${DEPLOY_TEST_NONE:-0.0.0.0}:8443", metrics: {file: address}, admin: "127.0.0.1:9443", api: "true", cert: tls.pem, key: tls.key}
auth: ["jwt:https://idp.example,roles=groups"]
login: {issuer: "https://login.example.com", client: id, secret: {file: address}, url: "https://mcp.example.com/", scopes: [openid, groups], claims: groups, require: {hd: [example.com]}, schemes: [cursor], dir: state, token: 5m, session: 7d}
page: {client: inspector, sandbox: "https://Apps.Example.com:443/"}
ready: {wait: 1m, require: [jira]}
policy: policy.yaml
teams: {from: principal.claims.realm.groups, members: {dev: ["eng-*"], ops: oncall}}
limits: ["100/s", "tool:web_*=60/h"]
audit: {file: audit.jsonl, arguments: none, checkpoint: 20s, key: audit.ed25519, onFailure: pass, sync: none}
telemetry: {otlp: http://collector:4318, content: redacted, headers: {X-Key: {file: address}}}
record: {dir: frames, bytes: 1.5MiB, age: "${DEPLOY_TEST_AGE}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct{ got, want any }{
		{f.Servers, in("mcp.json")},
		{f.Listen, deploy.Listen{HTTP: "0.0.0.0:8443", Metrics: "127.0.0.1:9090", Admin: "127.0.0.1:9443", API: true, Cert: in("tls.pem"), Key: in("tls.key")}},
		{f.Auth, []string{"jwt:https://idp.example,roles=groups"}},
		{f.Login, &deploy.Login{
			Issuer: "https://login.example.com", Client: "id", Secret: "127.0.0.1:9090", URL: "https://mcp.example.com", Scopes: []string{"openid", "groups"},
			Claims: []string{"groups"}, Require: []deploy.Requirement{{"hd", []string{"example.com"}}}, Schemes: []string{"cursor"}, Dir: in("state"),
			Token: 5 * time.Minute, Session: 7 * 24 * time.Hour,
		}},
		{f.PageClient(), "inspector"},
		{f.PageSandbox(), "https://apps.example.com"},
		{f.Ready, deploy.Ready{Wait: time.Minute, Require: []string{"jira"}}},
		{f.Policy, in("policy.yaml")},
		{f.Teams, deploy.Teams{From: "principal.claims.realm.groups", Members: []deploy.Team{{"dev", []string{"eng-*"}}, {"ops", []string{"oncall"}}}}},
		{f.Limits, []string{"100/s", "tool:web_*=60/h"}},
		{f.Audit, &deploy.Audit{File: in("audit.jsonl"), Arguments: "none", Checkpoint: 20 * time.Second, Key: in("audit.ed25519"), OnFailure: "pass", Sync: "none"}},
		{f.Telemetry, &deploy.Telemetry{OTLP: "http://collector:4318", Content: "redacted", Headers: map[string]string{"X-Key": "127.0.0.1:9090"}}},
		{f.Record, &deploy.Record{Dir: in("frames"), Bytes: 3 << 19, Age: 48 * time.Hour}},
		{f.Files, []string{in("address"), in("address"), in("address")}},
		{len(f.Warnings), 0},
		{f.Problem("limits[1]", "text", "fix").String(), path + ":10:19: text; fix"},
		{f.Problem("listen.http", "text", "").String(), path + ":3:16: text"},
		{f.Problem("nothing", "text", "").String(), path + ":1:1: text"},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("got %#v, want %#v", tt.got, tt.want)
		}
	}
}

// The file of docs/nodes.md makes a node whose name is that of the machine.
func TestDocumentedCluster(t *testing.T) {
	page, err := os.ReadFile("../../docs/nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	dir := t.TempDir()
	write(t, dir, "cluster.secret", "sesame\n")
	f, err := deploy.Parse(filepath.Join(dir, "gateway.yaml"), []byte(example))
	if err != nil {
		t.Fatalf("%v in\n%s", err, example)
	}
	name, _ := os.Hostname()
	want := &deploy.Cluster{
		NATS: deploy.Embedded, Name: "patchbay", Node: name, Listen: "0.0.0.0:6222", Routes: []string{"10.0.0.1:6222", "10.0.0.2:6222", "10.0.0.3:6222"},
		Store: f.Cluster.Store, Secret: "sesame", Cert: filepath.Join(dir, "node.pem"), CA: filepath.Join(dir, "nodes-ca.pem"), Drain: 30 * time.Second,
	}
	if !reflect.DeepEqual(f.Cluster, want) || len(f.Warnings) > 0 {
		t.Errorf("%+v, want %+v; %v", f.Cluster, want, f.Warnings)
	}
}

func TestDefaults(t *testing.T) {
	f, err := deploy.Parse("g", []byte("audit: {file: a}\ntelemetry: {otlp: 'https://c'}\nrecord: {dir: d}\n"))
	if err != nil {
		t.Fatal(err)
	}
	here, _ := os.Getwd()
	for _, tt := range []struct{ got, want any }{
		{f.Ready, deploy.Ready{Wait: 5 * time.Second}},
		{f.Audit, &deploy.Audit{File: filepath.Join(here, "a"), Arguments: "digest", Checkpoint: 10 * time.Second, OnFailure: "refuse", Sync: "group"}},
		{f.Telemetry, &deploy.Telemetry{OTLP: "https://c", Content: "none"}},
		{f.Record, &deploy.Record{Dir: filepath.Join(here, "d"), Bytes: 1 << 30, Age: 7 * 24 * time.Hour}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("got %#v, want %#v", tt.got, tt.want)
		}
	}
}

// Each fault has its place, names the member, and says how to correct it.
func TestFaults(t *testing.T) {
	t.Setenv("DEPLOY_TEST_SECRET", "s3cret")
	for _, tt := range []struct{ file, fault string }{
		{"", "1:1: the file is empty; begin with servers: mcp.json"},
		{"- a", "1:1: the file must be a mapping, name: value"},
		{"server: x", `1:1: the file has no member "server"; did you mean "servers"?`},
		{"servers: x\nservers: y", `2:1: the file has "servers" twice; keep one`},
		{"servers: []", "1:10: servers must be text; write text, or {file: PATH}"},
		{"servers: ''", "1:10: servers is empty"},
		{"servers: ' '", "1:10: servers is empty"},
		{"servers:", "1:9: servers must be text"},
		{`servers: "a\nb"`, "1:10: servers must be one line of text"},
		{"servers: {file: nowhere}", "1:17: servers: "},
		{"servers: ${DEPLOY_TEST_NONE}", "1:10: servers needs the variable DEPLOY_TEST_NONE, which is not set; set it, or write ${DEPLOY_TEST_NONE:-default}"},
		{"servers: ${input:x}", "1:10: servers has a ${ that is not a variable"},
		{"servers: &a x", "1:10: servers: anchors and aliases are not supported"},
		{"guards: []", "1:1: guards is not supported yet; remove it"},
		{"views: {}", "1:8: views is empty; remove it"},
		{"views: {a/b: {}}", `1:9: the view "a/b" cannot be part of a URL`},
		{"views: {a: {tool: x}}", `1:13: views.a has no member "tool"; did you mean "tools"?`},
		{"views: {a: {mode: find}}", `1:19: views.a.mode cannot be "find"`},
		{"views: {a: {budget: 1MB}}", "1:12: views.a.budget needs the mode search; add mode: search"},
		{"views: {a: {mode: search, budget: 10 tokens}}", `1:35: views.a.budget is "10 tokens", out of bounds; use 100 to 10000000 tokens`},
		{"views: {a: {mode: search, budget: many tokens}}", `1:35: views.a.budget is "many tokens", out of bounds; use 100 to 10000000 tokens`},
		{"views: {a: {rename: [x]}}", "1:21: views.a.rename must be a mapping"},
		{"views: {a: {changes: {t: {arguments: x}}}}", "1:38: views.a.changes.t.arguments must be a mapping of arguments to their values"},
		{"views: {a: {promptChanges: {p: {arguments: [x]}}}}", "1:44: views.a.promptChanges.p.arguments must be a mapping"},
		{"views: {a: {promptChanges: {p: {nam: x}}}}", `1:33: views.a.promptChanges.p has no member "nam"; did you mean "name"?`},
		{"views: {a: {resourceChanges: {'kb://p': {hidden: true}}}}", `1:42: views.a.resourceChanges.kb://p has no member "hidden"`},
		{"listen: {htp: x}", `1:10: listen has no member "htp"; did you mean "http"?`},
		{"listen: {api: yes}", `1:15: listen.api cannot be "yes"`},
		{"listen: {api: {}}", "1:15: listen.api must be text"},
		{"listen: {key: x}", "1:9: listen.key needs listen.cert; add cert:"},
		{"auth: []", "1:7: auth is an empty list; remove it"},
		{"auth: [a, a]", "1:11: auth has the same value twice; keep one"},
		{"auth: [&a x]", "1:8: auth[0]: anchors and aliases are not supported"},
		{"auth: [a, [b]]", "1:11: auth[1] must be text"},
		{"page: {}", "1:7: page needs client or sandbox; page: {client: ID}"},
		{"page: {sandbox: 'http://apps.example.com'}", "1:17: page.sandbox is not the origin of a host with HTTPS; write it like https://apps.example.com"},
		{"page: {sandbox: apps.example.com}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://apps.example.com/views'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://ada@apps.example.com'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://apps.example.com?'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://*.example.com'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://a;script-src'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://apps.example.com.'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://:8443'}", "1:17: page.sandbox is not the origin"},
		{"page: {sandbox: 'https://MCP.example.com:8443'}\nlogin: {issuer: 'https://x', client: y, url: 'https://mcp.example.com'}", "1:17: page.sandbox is the host of the gateway itself, whose cookies browsers send to all its ports; name another host that leads here too"},
		{"page: {sandbox: 'https://192.0.2.7'}\nlisten: {http: '192.0.2.7:8443'}", "1:17: page.sandbox is the host of the gateway itself"},
		{"page: {client: x}", "1:16: page.client needs the authorization server at which people log in; have one of jwt:ISSUER and introspect:ISSUER in auth"},
		{"auth: ['jwt:https://a.example', 'introspect:https://b.example,id=x,secret=y']\npage: {client: x}", "2:16: page.client needs the authorization server"},
		{"auth: ['introspect:,url=https://b.example/introspect']\npage: {client: x}", "2:16: page.client needs the authorization server"},
		{"auth: ['hmac:secret.txt,issuer=https://b.example']\npage: {client: x}", "2:16: page.client needs the authorization server"},
		{"login: {issuer: 'https://x'}", "1:8: login needs client; login: {client: ID}"},
		{"login: {client: x}", "1:8: login needs issuer; login: {issuer: https://login.example.com}"},
		{"login: {issuer: x, client: y, scope: z}", `1:31: login has no member "scope"; did you mean "scopes"?`},
		{"login: {issuer: x, client: y, session: 1y}", `1:40: login.session is "1y", not a time`},
		{"login: {issuer: x, client: y, token: 2h}", `1:38: login.token is "2h", out of bounds; use 1s to 1h`},
		{"login: {issuer: x, client: y, require: [hd]}", "1:40: login.require must be a mapping"},
		{"login: {issuer: x, client: y, require: {hd: []}}", "1:45: login.require.hd is an empty list; remove it"},
		{"ready: 5s", "1:8: ready must be a mapping"},
		{"ready: {wait: 5}", `1:15: ready.wait is "5", not a time; write it like 10s, 5m, 12h or 7d`},
		{"ready: {wait: 1d}", `1:15: ready.wait is "1d", out of bounds; use 0s to 10m`},
		{"ready: {wait: NaNd}", `1:15: ready.wait is "NaNd", not a time`},
		{"ready: {wait: '${DEPLOY_TEST_SECRET}'}", "1:15: ready.wait is the value it refers to, not a time"},
		{"teams: {from: principal.roles}", "1:8: teams needs from and members"},
		{"teams: {from: roles, members: {a: b}}", `1:15: teams.from has the unknown source "roles"; use principal.roles`},
		{"teams: {from: principal.claims., members: {a: b}}", "1:15: teams.from has the unknown source"},
		{"teams: {from: principal.id, members: {'': b}}", "1:39: a team has no name"},
		{"audit: {}", "1:8: audit needs file; audit: {file: audit.jsonl}"},
		{"audit: {file: a, sync: groups}", `1:24: audit.sync cannot be "groups"; did you mean "group"?`},
		{"audit: {file: a, checkpoint: 1ms}", `1:30: audit.checkpoint is "1ms", out of bounds; use 1s to 1h`},
		{"telemetry: {content: none}", "1:12: telemetry needs otlp"},
		{"telemetry: {otlp: 'collector:4318'}", "1:19: telemetry.otlp is not the URL of a collector; write it like http://collector:4318"},
		{"telemetry: {otlp: 'http://u:s3cret@c'}", "1:19: telemetry.otlp has a user name or a password; write it in telemetry.headers"},
		{"telemetry: {otlp: 'http://c', headers: [a]}", "1:40: telemetry.headers must be a mapping"},
		{"cluster: embedded", "1:10: cluster must be a mapping"},
		{"cluster: {node: n1}", "1:10: cluster needs nats; cluster: {nats: embedded}"},
		{"cluster: {nats: embeded, node: n1}", `1:17: cluster.nats is "embeded", neither embedded nor the URL of a server of NATS; write embedded, or a URL like nats://nats:4222`},
		{"cluster: {nats: 'http://nats:4222', node: n1}", `1:17: cluster.nats is "http://nats:4222", neither`},
		{"cluster: {nats: embedded, node: n 1}", `1:33: cluster.node cannot be "n 1"; use letters, digits, - and _`},
		{"cluster: {nats: embedded, name: a.b}", `1:33: cluster.name cannot be "a.b"; use letters`},
		{"cluster: {nats: embedded, nod: n1}", `1:27: cluster has no member "nod"; did you mean "node"?`},
		{"cluster: {nats: embedded, routes: ['nats://a:1'], store: s}", "1:10: nats: embedded needs cluster.listen; add listen: 0.0.0.0:6222"},
		{"cluster: {nats: embedded, listen: '127.0.0.1:1', store: s}", "1:10: nats: embedded needs cluster.routes; add routes: [nats://HOST:6222]"},
		{"cluster: {nats: embedded, listen: '127.0.0.1:1', routes: ['nats://a:1']}", "1:10: nats: embedded needs cluster.store; add store:"},
		{"cluster: {nats: embedded, listen: '0.0.0.0:1', routes: ['nats://a:1'], store: s}", "1:10: cluster.listen is reached from other machines, and whoever connects has all that the cluster keeps; add secret: ${NAME}"},
		{"cluster: {nats: embedded, listen: 'n1:1', routes: ['nats://a:1'], store: s}", "1:10: cluster.listen is reached from other machines"},
		{"cluster: {nats: embedded, listen: '6222', node: n1}", `1:35: cluster.listen has "6222", not HOST:PORT; write it like 0.0.0.0:6222`},
		{"cluster: {nats: embedded, listen: ':6222', node: n1}", `1:35: cluster.listen has ":6222", not HOST:PORT`},
		{"cluster: {nats: embedded, listen: 'a:0', node: n1}", `1:35: cluster.listen has "a:0", not HOST:PORT`},
		{"cluster: {nats: embedded, routes: ['a:1'], node: n1}", `1:36: cluster.routes has "a:1", not the address of a node; write it like nats://10.0.0.2:6222`},
		{"cluster: {nats: embedded, routes: ['nats://a'], node: n1}", `1:36: cluster.routes has "a", not HOST:PORT`},
		{"cluster: {nats: embedded, credentials: c, node: n1}", "1:10: cluster.credentials is for NATS elsewhere, not for nats: embedded; write secret:"},
		{"cluster: {nats: embedded, cert: c, node: n1}", "1:10: TLS between nodes needs both cluster.cert and cluster.ca"},
		{"cluster: {nats: embedded, key: c, node: n1}", "1:10: cluster.key needs cluster.cert; add cert:"},
		{"cluster: {nats: 'nats://nats:4222', routes: ['nats://a:1'], node: n1}", "1:10: cluster.routes is for nats: embedded; remove it"},
		{"cluster: {nats: 'nats://nats:4222', ca: c, node: n1}", "1:10: cluster.cert and cluster.ca need TLS; write tls:// in cluster.nats"},
		{"cluster: {nats: embedded, drain: 1d, node: n1}", `1:34: cluster.drain is "1d", out of bounds; use 0s to 10m`},
		{"record: {bytes: 1GiB}", "1:9: record needs dir"},
		{"record: {dir: d, bytes: 1}", `1:25: record.bytes is "1", not a size with a unit; write it like 512MiB or 10GB`},
		{"record: {dir: d, bytes: 1KB}", `1:25: record.bytes is "1KB", out of bounds; use 1MiB to 1024TiB`},
		{"record: {dir: d, bytes: NaNB}", `1:25: record.bytes is "NaNB", not a size`},
		{"record: {dir: d, age: -1d}", `1:23: record.age is "-1d", out of bounds`},
		{strings.Repeat("#", 1<<20) + "\na: b", "1:1: the file has more than"},
	} {
		f, err := deploy.Parse("g", []byte(tt.file))
		var bad deploy.Problems
		if f != nil || !errors.As(err, &bad) {
			t.Errorf("%.60q gave %v and the error %v, want the fault %q", tt.file, f, err, tt.fault)
			continue
		}
		if got := bad.Error(); !strings.Contains(got, "g:"+tt.fault) || strings.Contains(got, "s3cret") {
			t.Errorf("%.60q has the faults %q, want %q", tt.file, got, tt.fault)
		}
	}
}

// All faults are reported at once, in the order of the file.
func TestAllFaults(t *testing.T) {
	_, err := deploy.Parse("g", []byte("record: {}\nguards: {}\naudit: {sync: x}\n"))
	var bad deploy.Problems
	if !errors.As(err, &bad) || len(bad) != 4 || bad[0].Line != 1 || bad[1].Line != 2 || bad[3].Line != 3 {
		t.Errorf("the faults are %v, want four in order", err)
	}
}

// A secret in the file is a warning, which does not show it; one from elsewhere is not.
func TestPlainSecret(t *testing.T) {
	t.Setenv("DEPLOY_TEST_PASSWORD", "s3cret")
	for file, want := range map[string]string{
		"telemetry: {otlp: 'http://c', headers: {X-Key: s3cret}}":                                                                "g:1:48: telemetry.headers has a value in plain text, which is often a secret; write ${NAME} or {file: PATH} in place of it",
		"telemetry: {otlp: 'http://c', headers: {X-Key: '${DEPLOY_TEST_PASSWORD}'}}":                                             "",
		"login: {issuer: 'https://x', client: y, secret: s3cret}":                                                                "g:1:49: login.secret is in plain text; write ${NAME} or {file: PATH} in place of it",
		"login: {issuer: 'https://x', client: y, secret: '${DEPLOY_TEST_PASSWORD}'}":                                             "",
		"cluster: {nats: embedded, node: n, listen: 'a:1', routes: ['nats://b:1'], store: s, secret: s3cret}":                    "g:1:93: cluster.secret is in plain text; write ${NAME} or {file: PATH} in place of it",
		"cluster: {nats: embedded, node: n, listen: 'a:1', routes: ['nats://b:1'], store: s, secret: '${DEPLOY_TEST_PASSWORD}'}": "",
		"cluster: {nats: 'nats://u:s3cret@b', node: n}":                                                                          "g:1:17: cluster.nats has a user name or a password in plain text; write ${NAME} or {file: PATH} in place of it, or a file in cluster.credentials",
	} {
		f, err := deploy.Parse("g", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Warnings.Error(); got != want {
			t.Errorf("%s has the warnings %q, want %q", file, got, want)
		}
	}
}

func TestValueFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "long", strings.Repeat("x", 1<<16+1))
	write(t, dir, "binary", "\xff")
	write(t, dir, "empty", "\n")
	for name, want := range map[string]string{
		"long": "has more than 65536 bytes", "binary": "is not text in UTF-8", "empty": "servers is empty", "none": filepath.Join(dir, "none") + ": ", ".": "",
	} {
		_, err := deploy.Parse(filepath.Join(dir, "g"), []byte("servers: {file: "+name+"}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the file %s gave %v, want a fault with %q", name, err, want)
		}
	}
}

func TestChanged(t *testing.T) {
	parse := func(text string) *deploy.File {
		f, err := deploy.Parse("g", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	was := parse("listen: {http: a, cert: c}\nlimits: 1/s\naudit: {file: a}\n")
	for text, want := range map[string]string{
		"# comment\naudit: {file: a}\nlimits: [1/s]\nlisten: {http: a, cert: c}":                          "",
		"listen: {http: b, cert: c, key: d}\nlimits: 1/s\naudit: {file: a}":                               "listen.http listen.key",
		"listen: {http: a, cert: c, api: true}\nlimits: 1/s\naudit: {file: a}":                            "listen.api",
		"limits: 1/s\naudit: {file: a}\nlisten: {http: a, cert: c}\npage: {sandbox: 'https://b'}":         "page",
		"listen: {http: a, cert: c}\nlimits: 1/s\naudit: {file: a}\ncluster: {nats: 'nats://c', node: n}": "cluster",
		"limits: 2/s\naudit: {file: a, sync: none}\nready: {wait: 1s}":                                    "listen.http listen.cert ready limits audit",
	} {
		if got := strings.Join(parse(text).Changed(was), " "); got != want {
			t.Errorf("%q has changed %q, want %q", text, got, want)
		}
	}
	if got := strings.Join(was.Changed(nil), " "); got != "listen.http listen.cert limits audit" {
		t.Errorf("changed from no file: %q", got)
	}
}

func TestTeams(t *testing.T) {
	teams := deploy.Teams{Members: []deploy.Team{{"dev", []string{"eng-*", "qa"}}, {"all", []string{"*"}}}}
	for values, want := range map[string]string{"": "", "eng-1": "dev", "x qa": "dev", "x": "all"} {
		if got := teams.Of(strings.Fields(values)); got != want {
			t.Errorf("the team of %q is %q, want %q", values, got, want)
		}
	}
}

// Parse gives a file or faults with places, never both and never neither.
func FuzzParse(f *testing.F) {
	f.Add([]byte("servers: mcp.json\nlisten: {http: a}\nauth: [a, b]\nready: {wait: 5s}\n"))
	f.Add([]byte("record: {dir: d, bytes: 1GiB, age: 7d}\nteams: {from: principal.id, members: {a: b}}"))
	f.Add([]byte("audit: {file: '${A:-b}'}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if strings.Contains(string(data), "file") {
			return // it may name any file of the machine
		}
		file, err := deploy.Parse("g", data)
		if file != nil && err == nil {
			return
		}
		var bad deploy.Problems
		if file != nil || !errors.As(err, &bad) || len(bad) == 0 {
			t.Fatalf("Parse(%q) = %v, %v", data, file, err)
		}
		for _, p := range bad {
			if p.Line < 1 || p.Column < 1 || p.Text == "" {
				t.Errorf("Parse(%q) has the fault %+v without a place", data, p)
			}
		}
	})
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
