// Package mcpjson gives a host the servers of an mcp.json.
//
//	err := mcpjson.Add(h, "mcp.json", nil)
//
// Approvals are kept for the name of a server, its URL or command, and the folder in which it starts, with a digest of
// the secrets in them: a server that another file or folder names alike is another one.
package mcpjson

import (
	"context"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/serverid"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Add adds the enabled servers of a file to a host, as the host's fields are set by then. An error that is
// [config.Problems] is about some of the servers: the others are added. A nil Env is the zero Env.
func Add(h *host.Host, path string, env *launch.Env) error {
	if env == nil {
		env = new(launch.Env)
	}
	file, faults, err := config.Inspect(path, nil)
	if err != nil {
		return err
	}
	var digest func(string) (string, error)
	if kept, ok := h.Approvals.(interface {
		Digest(text string) (string, error)
	}); ok {
		digest = kept.Digest
	}
	for _, s := range launch.Enabled(file) {
		id, err := serverid.Of(s, env.Resolve, digest)
		if err != nil {
			return err
		}
		log := env.NewLog(s.Name, nil)
		err = h.Add(host.Server{
			Name: s.Name, Identity: id, Trusted: s.Trusted, Group: s.Group, Cache: s.Cache, Offers: s.Offers,
			CallTimeout: s.CallTimeout, Idle: s.Idle, StartTimeout: s.StartTimeout, Stderr: log.Last,
			Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) { return env.Upstream(ctx, s, c, log) },
		})
		if err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}
