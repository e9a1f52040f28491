package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/doctor"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/mcp"
)

// modelServer lists models to callers with the right key.
func modelServer(t *testing.T) (base string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := `{"data": [{"id": "small"}, {"id": "large"}]}`
		switch {
		case r.URL.Path == "/v1/models" && r.Header.Get("Authorization") == "Bearer planted-right":
		case r.URL.Path == "/anthropic/v1/models" && r.Header.Get("X-Api-Key") == "planted-right" && r.Header.Get("Anthropic-Version") != "":
			if r.URL.Query().Get("limit") == "1000" { // else there are only 20
				list = `{"data": [{"id": "small"}, {"id": "large"}, {"id": "old"}]}`
			}
		case r.URL.Path == "/gemini/models" && r.Header.Get("Authorization") == "Bearer planted-right":
			list = `{"object": "list", "data": [{"id": "models/gemini-x"}, {"id": "models/gemini-y"}]}`
		case r.URL.Path == "/open/models" && r.Header.Get("Authorization") == "":
		case r.URL.String() == "/azure/models?api-version=2024-10-21":
		case r.URL.Path == "/moved/models":
			http.Redirect(w, r, "/open/models", http.StatusFound)
			return
		case r.URL.Path == "/page/models":
			list = "<html>"
		case r.URL.Path == "/none/models":
			http.NotFound(w, r)
			return
		default:
			w.WriteHeader(http.StatusUnauthorized)
			list = fmt.Sprintf(`{"error": {"message": "Incorrect API key: %s%s"}}`, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
		}
		fmt.Fprint(w, list)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// inFolder runs a test in a new folder with a trusted mcp.json.
func inFolder(t *testing.T, text string) (dir string) {
	t.Helper()
	ownFolders(t)
	dir = t.TempDir()
	t.Chdir(dir)
	if text != "" {
		if err := os.WriteFile("mcp.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		typedRun(t, "", exitOK, "config", "trust")
	}
	return dir
}

func TestDoctorOfModels(t *testing.T) {
	base := modelServer(t)
	t.Setenv("RIGHT", "planted-right")
	t.Setenv("WRONG", "planted-wrong")
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("AWS_REGION", "")
	inFolder(t, strings.ReplaceAll(`{"patchbay": {"models": {
  "good": {"provider": "openai", "name": "small", "baseUrl": "BASE/v1/", "key": "${env:RIGHT}"},
  "claude": {"provider": "anthropic", "name": "large", "baseUrl": "BASE/anthropic", "key": "${RIGHT}"},
  "open": {"provider": "text", "name": "smal", "baseUrl": "BASE/open"},
  "wrong": {"provider": "openai-responses", "name": "small", "baseUrl": "BASE/v1", "key": "${WRONG}"},
  "nokey": {"provider": "openai", "name": "small", "baseUrl": "BASE/v1"},
  "unset": {"provider": "openai", "name": "small", "baseUrl": "BASE/v1", "key": "${NEVER_SET_AT_ALL}"},
  "default": {"provider": "openai", "name": "small"},
  "moved": {"provider": "openai", "name": "small", "baseUrl": "BASE/moved"},
  "page": {"provider": "openai", "name": "small", "baseUrl": "BASE/page"},
  "none": {"provider": "openai", "name": "small", "baseUrl": "BASE/none"},
  "azure": {"provider": "openai", "name": "small", "baseUrl": "BASE/azure?api-version=2024-10-21", "key": "${RIGHT}"},
  "claude-of-another-page": {"provider": "anthropic", "name": "old", "baseUrl": "BASE/anthropic", "key": "${RIGHT}"},
  "gemini": {"provider": "gemini", "name": "gemini-x", "baseUrl": "BASE/gemini", "key": "${RIGHT}"},
  "foundry": {"provider": "azure", "name": "small", "baseUrl": "BASE/v1", "key": "${RIGHT}"},
  "region": {"provider": "bedrock", "name": "small", "key": "${RIGHT}"},
  "home": {"provider": "vllm", "name": "small", "baseUrl": "BASE/open"},
  "bad": {"provider": "openai"}
}}}`, "BASE", base))
	for name, want := range map[string][]string{
		"good":   {"0", "ok       key         RIGHT of the environment", "ok       http        it answers and accepts the key", "ok       model       one of 2 listed"},
		"claude": {"0", "ok       model       one of 3 listed"},

		"claude-of-another-page": {"0", "ok model one of 3 listed"},
		"gemini":                 {"0", "ok model one of 2 listed"},
		"foundry":                {"0", "warning http azure does not list the deployments: neither the key nor the name is checked"},
		"region":                 {"1", "failed address AWS_REGION is not set"},
		"home":                   {"0", "ok key none", "ok model one of 2 listed"},

		"open":    {"0", "ok       key         none", `warning  model       "smal" is not among the 2 models`, `did you mean "small"`},
		"wrong":   {"1", "failed   auth        HTTP 401 Unauthorized: \"Incorrect API key: Bearer …\"", "for this provider: WRONG of the environment"},
		"nokey":   {"1", "failed   auth        HTTP 401", `give the model a "key"`},
		"unset":   {"1", "failed   key         the environment variable NEVER_SET_AT_ALL is not set"},
		"default": {"1", "failed   key         missing, and OPENAI_API_KEY is not set"},
		"moved":   {"1", "failed   http        HTTP 302 Found", "redirects to"},
		"page":    {"0", "warning  http        it answers, but not with a list"},
		"none":    {"0", "warning  http        HTTP 404 Not Found"},
		"azure":   {"0", "ok       model       one of 2 listed"},
		"bad":     {"1", "failed   config ", `the model "bad" has no name`},
	} {
		code := int(want[0][0] - '0')
		text := strings.Join(strings.Fields(typedRun(t, "", code, "config", "doctor", name)), " ")
		for _, line := range want[1:] {
			if !strings.Contains(text, strings.Join(strings.Fields(line), " ")) {
				t.Errorf("doctor of %s does not say %q: %s", name, line, text)
			}
		}
	}
	if text := typedRun(t, "", 1, "config", "doctor"); !strings.Contains(text, "7 of 17 checks failed") {
		t.Errorf("doctor of all says %s", text)
	}
	var reports []doctor.Report
	text := typedRun(t, "", 0, "config", "doctor", "good", "--json")
	if err := json.Unmarshal([]byte(text), &reports); err != nil || len(reports) != 1 || reports[0].Model != "openai/small" || !reports[0].OK {
		t.Errorf("as JSON: %+v, %v", reports, err)
	}
}

// /model lists what the server of the model offers. A name before a slash is that of a model of mcp.json, or
// else of a provider.
func TestOfferedModels(t *testing.T) {
	t.Setenv("RIGHT", "planted-right")
	inFolder(t, strings.ReplaceAll(`{"patchbay": {"model": "openai", "models": {
  "openai": {"provider": "openai", "name": "small", "baseUrl": "BASE/v1", "key": "${RIGHT}", "window": 5000},
  "page": {"provider": "openai", "name": "small", "baseUrl": "BASE/page"}
}}}`, "BASE", modelServer(t)))
	out := typed(t, "/model\n/model openai/large\n/model\n/model page\n/model\n/model deepsek/x\n", "chat", "--no-memory", "-s", "shop")
	got := strings.Join(strings.Fields(out.stdout+out.stderr), " ")
	for _, want := range []string{
		"model: openai/small, 5.0k tokens others: openai, page 2 models offered: openai/small, openai/large",
		"the model is now openai/large", "model: openai/large others: openai, page 2 models offered",
		"its server lists no models: openai/small: not understood", `did you mean "deepseek"?`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("chat does not say %q: %s", want, got)
		}
	}
}

// A model that no file lists is examined as run reaches it, with the settings of the environment.
func TestDoctorOfUnlistedModels(t *testing.T) {
	t.Setenv("OPENAI_BASE_URL", modelServer(t)+"/v1")
	t.Setenv("OPENAI_API_KEY", "planted-right")
	inFolder(t, "")
	for _, args := range [][]string{{"config", "doctor", "openai/small"}, {"config", "doctor"}} {
		said := typedRun(t, "", 0, args...)
		for _, want := range []string{"OPENAI_API_KEY of the environment", "one of 2 listed"} {
			if !strings.Contains(said, want) {
				t.Errorf("%q does not say %q: %s", args, want, said)
			}
		}
		if err := os.WriteFile("mcp.json", []byte(`{"patchbay": {"model": "openai/small"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		typedRun(t, "", exitOK, "config", "trust")
	}
	if said := typedRun(t, "", 0, "config", "doctor", "openai/small"); strings.Count(said, "one of 2 listed") != 1 {
		t.Errorf("the default, named too, is not looked at once: %s", said)
	}
	t.Setenv("OPENAI_API_KEY", "planted-wrong")
	if said := typedRun(t, "", exitModel, "run", "hi", "--model", "openai/small"); !strings.Contains(said, "patchbay config doctor openai/small") {
		t.Errorf("run says %s", said)
	}
}

// A CA that the command line names is trusted on every path to a model; no client certificate is
// sent to a model.
func TestModelTLS(t *testing.T) {
	shown := make(chan int, 100)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- len(r.TLS.PeerCertificates)
		w.WriteHeader(http.StatusUnauthorized)
		w.Write([]byte(`{"error": {"message": "it was reached"}}`))
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	defer srv.Close()
	dir := inFolder(t, `{"patchbay": {"models": {"m": {"provider": "openai", "name": "m", "baseUrl": "`+srv.URL+`/v1", "key": "k-1234567"}}}}`)
	ca, mine := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "mine.pem")
	key, err := x509.MarshalPKCS8PrivateKey(srv.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	both := append(slices.Clone(authority), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := errors.Join(os.WriteFile(ca, authority, 0o600), os.WriteFile(mine, both, 0o600)); err != nil {
		t.Fatal(err)
	}
	for code, args := range map[int][]string{1: {"config", "doctor", "m"}, exitModel: {"run", "hi", "--model", "m"}} {
		if said := typedRun(t, "", code, append(args, "--server-ca", ca, "--client-cert", mine)...); !strings.Contains(said, "it was reached") {
			t.Errorf("%q does not reach it: %s", args, said)
		}
		select {
		case n := <-shown:
			if n != 0 {
				t.Errorf("%q shows %d certificates", args, n)
			}
		default:
			t.Errorf("%q asks nothing", args)
		}
	}
}

// A key is asked for once, kept for its address, and never shown.
func TestModelAddWithKey(t *testing.T) {
	base := modelServer(t)
	inFolder(t, `{"mcpServers": {"a": {"builtin": "everything"}}} // mine`)
	said := typedRun(t, "planted-right\n", 0, "config", "model", "add", "fast", "--provider", "openai", "--model", "small", "--base-url", base+"/v1", "--key-input")
	for _, want := range []string{"API key of the model fast (hidden)", "stored in ", "added fast to mcp.json", "now the default model"} {
		if !strings.Contains(said, want) {
			t.Errorf("config model add does not say %q: %s", want, said)
		}
	}
	text, err := os.ReadFile("mcp.json")
	if err != nil || !strings.Contains(string(text), "// mine") || !strings.Contains(string(text), "${input:fast-key}") || strings.Contains(string(text), "planted") {
		t.Errorf("mcp.json is %s, %v", text, err)
	}
	if said := typedRun(t, "", 0, "config", "doctor", "fast"); !strings.Contains(said, "one of 2 listed") {
		t.Errorf("doctor says %s", said)
	}
	if said := typedRun(t, "", 0, "config", "inputs"); !strings.Contains(said, "fast-key") || !strings.Contains(said, "stored for") {
		t.Errorf("config inputs says %s", said)
	}
	var rows []models.Row
	if err := json.Unmarshal([]byte(typedRun(t, "", 0, "config", "models", "--json")), &rows); err != nil || len(rows) != 1 || !rows[0].HasKey || rows[0].Key != "stored" || !rows[0].Default {
		t.Errorf("config models: %+v, %v", rows, err)
	}
	// The file changes, and directs the key elsewhere.
	changed := strings.Replace(string(text), base, "http://127.0.0.1:1", 1)
	if err := os.WriteFile("mcp.json", []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := typedRun(t, "", exitUsage, "config", "doctor", "fast"); !strings.Contains(said, "not trusted yet") {
		t.Errorf("doctor of another address says %s", said)
	}
	typedRun(t, "", exitOK, "config", "trust")
	if said := typedRun(t, "", 1, "config", "doctor", "fast"); !strings.Contains(said, "the stored answer is for another server") {
		t.Errorf("doctor of another address says %s", said)
	}
	if said := typedRun(t, "", 0, "config", "models"); !strings.Contains(said, "stored for another address") {
		t.Errorf("config models says %s", said)
	}
}

func TestModelVerbs(t *testing.T) {
	inFolder(t, "")
	t.Setenv("OPENAI_API_KEY", "planted-right")
	typedRun(t, "", 0, "config", "model", "add", "one", "--provider", "openai")
	said := typedRun(t, "", 0, "config", "model", "add", "two", "--provider", "anthropic", "--key-env", "NEVER_SET_AT_ALL")
	if !strings.Contains(said, "NEVER_SET_AT_ALL is not set") {
		t.Errorf("nobody is told of the variable: %s", said)
	}
	said = typedRun(t, "", 0, "config", "models")
	for _, want := range []string{"openai/one", "default", "OPENAI_API_KEY of the environment", "NEVER_SET_AT_ALL is not set"} {
		if !strings.Contains(said, want) {
			t.Errorf("config models does not say %q: %s", want, said)
		}
	}
	typedRun(t, "", 0, "config", "model", "use", "two")
	typedRun(t, "", 0, "config", "model", "use", "openai/gpt-5-mini")
	typedRun(t, "", 0, "config", "model", "remove", "one")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
	if said := typedRun(t, "", 0, "config", "models"); strings.Contains(said, "openai/one") || !strings.Contains(said, "127.0.0.1:9") || !strings.Contains(said, "openai/gpt-5-mini") {
		t.Errorf("config models says %s", said)
	}
	for _, args := range [][]string{
		{"add", "two", "--provider", "openai"},
		{"add", "x", "--provider", "opena"},
		{"add", "x"},
		{"add", "a/b", "--provider", "openai"},
		{"add", "x", "--provider", "openai", "--key-env", "A", "--key-input"},
		{"add", "x", "--provider", "openai", "--base-url", "ftp://h"},
		{"add", "x", "--provider", "openai", "--key-env", "${planted-wrong}"},
		{"use", "three"}, {"use", "opena/x"}, {"use", "openai/"},
		{"remove", "three"}, {"forget", "x"},
	} {
		typedRun(t, "", 2, append([]string{"config", "model"}, args...)...)
	}
}

// Models of the person's own file are available in every folder; those of the folder override them.
func TestModelsOfTheOwnFile(t *testing.T) {
	inFolder(t, `{"patchbay": {"models": {"fast": {"provider": "openai", "name": "here"}}}}`)
	own, ok := config.UserFile()
	if !ok {
		t.Fatal("there is no folder of settings")
	}
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"patchbay": {"model": "slow", "models": {"fast": {"provider": "openai", "name": "mine"}, "slow": {"provider": "openai", "name": "other"}}}}`
	if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"": "fast here false, slow other true", "--config=mcp.json": "fast here false"} {
		var rows []models.Row
		if err := json.Unmarshal([]byte(typedRun(t, "", 0, strings.Fields("config models --json "+args)...)), &rows); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(r.Name, " ", r.Model, " ", r.Default))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("config models %s: %s; want %s", args, text, want)
		}
	}
}

// A faulty model does not prevent the use of a server.
func TestModelFaultsAreNoHindrance(t *testing.T) {
	inFolder(t, `{"mcpServers": {"a": {"builtin": "everything"}}, "patchbay": {"models": {"m": {"provider": "openai", "key": "${NEVER_SET_AT_ALL}"}}}}`)
	typedRun(t, "", 0, "call", "a/echo", "message=hi")
	if said := typedRun(t, "", 1, "config", "models"); !strings.Contains(said, `the model "m" has no name`) {
		t.Errorf("config models says %s", said)
	}
}

func TestApprovals(t *testing.T) {
	inFolder(t, "")
	if said := typedRun(t, "", 0, "config", "approvals"); !strings.Contains(said, "no approvals") {
		t.Errorf("without approvals: %s", said)
	}
	f, err := approval.Open("")
	if err != nil {
		t.Fatal(err)
	}
	allow := func(server string, tools ...string) {
		for _, name := range tools {
			one, err := approval.Of("url of "+server, server, approval.Rule{}, &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{}`)})
			if err == nil {
				err = f.Allow(one)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	allow("shop", "buy", "sell")
	allow("bank", "pay")
	if said := typedRun(t, "", 0, "config", "approvals"); !strings.Contains(said, "shop    buy") || !strings.Contains(said, "url of bank") {
		t.Errorf("approvals: %s", said)
	}
	for _, args := range []string{"revoke", "revoke none", "revoke shop none", "revoke shop --all", "shop", "--all", "revoke a b c"} {
		typedRun(t, "", 2, append([]string{"config", "approvals"}, strings.Fields(args)...)...)
	}
	left := func(n int) {
		t.Helper()
		var list []approval.Approval
		if err := json.Unmarshal([]byte(typedRun(t, "", 0, "config", "approvals", "--json")), &list); err != nil || len(list) != n {
			t.Errorf("there are %d approvals, %v; want %d", len(list), err, n)
		}
	}
	left(3)
	typedRun(t, "", 0, "config", "approvals", "revoke", "shop", "buy")
	left(2)
	typedRun(t, "", 0, "config", "approvals", "revoke", "bank")
	left(1)
	typedRun(t, "", 0, "config", "approvals", "revoke", "--all")
	left(0)
}

// The changes of allowed tools are those between the approval and the tool that the server lists now.
func TestChangesOfApprovals(t *testing.T) {
	inFolder(t, `{"mcpServers": {"shop": {"builtin": "shop"}, "off": {"command": "no-such-program"}}}`)
	if said := typedRun(t, "", 0, "config", "approvals", "changes"); !strings.Contains(said, "no allowed tool has changed") {
		t.Errorf("without approvals: %s", said)
	}
	f, err := approval.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []approval.Rule{{}, {Text: "shop/*"}} {
		one, err := approval.Of("shop", "shop", rule, &mcp.Tool{Name: "products", Description: "Lists everything\u202e.", InputSchema: json.RawMessage(`{"type":"object"}`)})
		if err == nil {
			err = f.Allow(one)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	said := typedRun(t, "", 0, "config", "approvals", "changes")
	if !strings.Contains(said, "shop/products: annotations, description, inputSchema") || !strings.Contains(said, "\n- Lists everything⟨U+202E⟩.\n+ ") || !strings.Contains(said, "\n  argument category, new\n") || strings.Count(said, "shop/products: ") != 1 {
		t.Errorf("the changes: %s", said)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(typedRun(t, "", 0, "config", "approvals", "changes", "--json")), &list); err != nil || len(list) != 1 || list[0]["tool"] != "products" {
		t.Errorf("as JSON: %v, %v", list, err)
	}
}

func TestModelSuggestions(t *testing.T) {
	inFolder(t, `{"patchbay": {"models": {"fast": {"provider": "openai", "name": "x"}}}}`)
	for words, want := range map[string]string{
		"config model":                  "",
		"config model use":              "fast",
		"config model add x --provider": "anthropic",
		"config approvals":              "revoke",
		"config doctor":                 "fast",
	} {
		var out strings.Builder
		suggest(t.Context(), append(append([]string{"fish"}, strings.Fields(words)...), ""), &out)
		if want == "" {
			want = "use\t"
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("behind %q is suggested %q; want %s in it", words, out.String(), want)
		}
	}
}
