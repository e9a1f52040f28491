package chain

import (
	"errors"

	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
)

// PageAt returns the hosts of the page of an endpoint, and the origin at which it shows views of apps, which is that of a
// gateway.yaml if it has one (f is nil without such a file). An empty origin means that it shows none, and why is the reason.
func PageAt(e *listen.Endpoint, f *deploy.File) (hosts []string, sandbox, why string, err error) {
	if hosts = e.Hosts(); !e.Loopback() && len(hosts) == 0 && e.Shared() {
		return nil, "", "", &Error{Err: errors.New("--page: browsers on other machines need the name of this one"), Next: "--allow-host mcp.example.com", Usage: true}
	}
	if sandbox = f.PageSandbox(); sandbox == "" {
		sandbox, why = e.Sandbox()
		return hosts, sandbox, why, nil
	}
	if err := e.SandboxAt(sandbox); err != nil {
		return nil, "", "", &Error{Err: errors.New(f.Problem("page.sandbox", "page.sandbox: "+err.Error(), "name another host that leads here too").String()), Usage: true}
	}
	return hosts, sandbox, "", nil
}
