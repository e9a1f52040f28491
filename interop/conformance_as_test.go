package interop

import (
	"fmt"
	"net"
	"testing"
)

// The scenarios for an authorization server.
var authorizationScenarios = []string{"authorization-server-metadata-endpoint", "authorization-code-grant"}

// TestConformanceAuthorizationServer runs the suite against the authorization server of the
// login tests, which therefore run against a conforming one. The suite shows a page on which
// a person signs in and consents.
func TestConformanceAuthorizationServer(t *testing.T) {
	t.Parallel()
	for _, revision := range spoken {
		t.Run(revision, func(t *testing.T) {
			issuer := startIDP(t, "jwt", 3600)
			p := newPerson(t)
			dir := t.TempDir()
			suite := begin(t, []string{
				node(t), suiteNext, "authorization", "--url", issuer, "--client-id", "known", "--resource", "http://127.0.0.1:1/mcp",
				"--port", fmt.Sprint(freePort(t)), "--spec-version", revision, "--output-dir", dir,
			})
			p.goTo(suite.hears(`\n(http\S+/auth\?\S+)\n`))
			p.signIn()
			p.agree("orders")
			p.reads("OK.")
			said := suite.ends(0)
			ran := results(t, dir)
			for _, name := range authorizationScenarios {
				checks := ran["authorization-server-"+name].checks
				if len(checks) == 0 {
					t.Errorf("%s did not run:\n%s", name, said)
				}
				for _, c := range checks {
					if c.Status != "SUCCESS" {
						t.Errorf("%s: %s: %s: %s", name, c.Status, c.ID, c.Message)
					}
				}
				delete(ran, "authorization-server-"+name)
			}
			for name := range ran {
				t.Errorf("the suite ran %q, which is not in our list: add it", name)
			}
		})
	}
}

// freePort is a free port of loopback.
func freePort(t *testing.T) int {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}
