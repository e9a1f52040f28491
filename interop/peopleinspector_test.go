package interop

import (
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// freePorts returns ports of this machine that are free now.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // once all are known, so that they differ
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return ports
}

// accessToken is an access token in a file of the inspector.
var accessToken = regexp.MustCompile(`"access_token":\s*"([^"]+)"`)

// tokenOf waits for the access token that a program has stored below a folder.
func tokenOf(t *testing.T, dir string) (token string) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); token == "" && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			raw, _ := os.ReadFile(path)
			text := strings.ReplaceAll(string(raw), `\"`, `"`) // JSON in a text of JSON
			if found := accessToken.FindStringSubmatch(text); found != nil {
				token = found[1]
			}
			return nil
		})
	}
	if token == "" {
		t.Fatalf("no access token below %s", dir)
	}
	return token
}

// The web page of the official inspector registers itself at the gateway, its user agrees and logs in, in
// the same browser, and the page lists the tools.
func TestPeopleWithInspector(t *testing.T) {
	t.Parallel()
	gateway, issuer := startPeople(t)
	ports := freePorts(t, 3)
	const secret = "secret of the page"
	store := t.TempDir()
	env := append(home(t), nodePath(t), "HOST=127.0.0.1", "CLIENT_PORT="+ports[0], "MCP_SANDBOX_PORT="+ports[1], "MCP_APP_ORIGIN_PORT="+ports[2],
		"MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_API_TOKEN="+secret, "MCP_STORAGE_DIR="+store, "MCP_INSPECTOR_SECRET_STORE=file")
	inspector := begin(t, append(npmProgram(t, "inspector"), "--web"), env...)
	site := inspector.hears(`(http://127\.0\.0\.1:\d+)`)
	p := newPerson(t)
	link := url.Values{"serverUrl": {gateway}, "transport": {"http"}, "autoConnect": {secret}, "MCP_INSPECTOR_API_TOKEN": {secret}}
	p.GoTo(site + "/?" + link.Encode())
	p.consents("MCP Inspector")
	p.Reads("Connected")
	ofGateway(t, tokenOf(t, store), gateway, issuer, gateway)
	p.Press("radio", "Tools")
	p.Reads("get-orders")
}
