package interop

import (
	"net"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/freeport"
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
				"--port", freePort(t), "--spec-version", revision, "--output-dir", dir,
			})
			p.GoTo(suite.hears(`\n(http\S+/auth\?\S+)\n`))
			p.signIn()
			p.agree("orders")
			p.Reads("OK.")
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

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	return port
}
