package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// Three nodes are one authorization server: a host that has registered at one logs people in at another, and tokens have the same
// keys. The tests of package issuer have the rest.
func TestUpClusterLogin(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	nodes := threeNodes(t, map[string]any{"a": stubServer(t)})
	file := nodes[0].cmd.Args[3]
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const site = "http://127.0.0.1:1"
	text = append(text, "login: {issuer: 'http://127.0.0.1:1', client: gateway, url: '"+site+"', dir: '${NODE}-login'}\n"...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		n.begin(t)
	}
	ask := func(n *node, path, body string) string {
		t.Helper()
		var res *http.Response
		var err error
		if at := strings.TrimSuffix(n.url, "/mcp") + path; body == "" {
			res, err = http.Get(at)
		} else {
			res, err = http.Post(at, "application/json", strings.NewReader(body))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode/100 != 2 {
			t.Fatalf("%s at %s: %s, %s, %v", path, n.name, res.Status, data, err)
		}
		return string(data)
	}
	for _, n := range nodes {
		n.serves(t)
	}
	var host struct {
		ID string `json:"client_id"`
	}
	if err := json.Unmarshal([]byte(ask(nodes[0], "/oauth/register", `{"client_name":"Desk","redirect_uris":["https://desk.example.com/back"],"token_endpoint_auth_method":"none"}`)), &host); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(strings.Repeat("v", 43)))
	authorize := "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {host.ID}, "redirect_uri": {"https://desk.example.com/back"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {site + "/mcp"},
	}.Encode()
	keys := ask(nodes[0], "/oauth/keys", "")
	for _, n := range nodes {
		if page := ask(n, authorize, ""); !strings.Contains(page, "Desk") {
			t.Errorf("%s does not know the host: %s", n.name, page)
		}
		if got := ask(n, "/oauth/keys", ""); got != keys {
			t.Errorf("%s has the keys %s, want %s", n.name, got, keys)
		}
	}
}
