package launch

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"slices"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/spread"
)

// groupOf returns the replicas of a server, or nil if it has none and its breaker is not set: a breaker
// of a single server would refuse calls that no other server can take, so it is off unless it is set.
func (f *Servers) groupOf(s *server, open func(context.Context, config.Server) (gateway.Upstream, error)) *spread.Group {
	entries := s.replicaEntries()
	if len(entries) == 1 && !s.Breaker.On {
		return nil
	}
	g := &spread.Group{
		Name: s.Name, Trusted: s.Trusted, NoBreaker: s.Breaker.Off, Logger: f.log(), OnChange: f.onReplica(s.Name),
		Rule: ruleOf(s.Server),
	}
	for _, e := range entries {
		g.Replicas = append(g.Replicas, spread.Replica{Name: e.name, Open: func(ctx context.Context) (gateway.Upstream, error) { return e.open(ctx, f, open) }})
	}
	for name, says := range f.out[s.Name] {
		_, _ = g.Disable(name, says, 0) // it may be gone from the configuration
	}
	return g
}

// ruleOf returns the rule of the breakers of a server as it is set.
func ruleOf(s config.Server) breaker.Rule {
	return breaker.Rule{Failures: s.Breaker.Failures, Calls: s.Breaker.Calls, Window: s.Breaker.Window, For: s.Breaker.For}
}

// replicaEntry is one replica of a server as it is configured.
type replicaEntry struct {
	name    string
	entry   config.Server
	address string // in place of the entry's URL; empty: that
}

// replicaEntries returns the replicas of a server: the members of its group, each with its addresses.
func (s *server) replicaEntries() (all []replicaEntry) {
	members := s.members
	if members == nil {
		members = []config.Server{s.Server}
	}
	names := map[string]int{}
	for _, m := range members {
		for i, address := range append([]string{""}, m.Replicas...) {
			name := m.Name
			if i > 0 || len(m.Replicas) > 0 {
				name = hostOf(cmp.Or(address, m.URL))
			}
			if names[name]++; names[name] > 1 { // two paths of one host
				name = withoutQuery(cmp.Or(address, m.URL))
			}
			all = append(all, replicaEntry{name, m, address})
		}
	}
	return all
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return withoutQuery(address)
}

// withoutQuery returns an address without the parts that may hold secrets.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "?"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// open opens a connection to the replica.
func (e replicaEntry) open(ctx context.Context, f *Servers, open func(context.Context, config.Server) (gateway.Upstream, error)) (gateway.Upstream, error) {
	entry := e.entry
	if e.address != "" {
		resolved, err := f.Env.Resolve(entry) // else the input of "url" would replace the address
		if err != nil {
			return open(ctx, entry) // it returns the error in the form for others
		}
		entry = resolved
		entry.URL = e.address
	}
	return open(ctx, entry)
}

func (f *Servers) log() *slog.Logger {
	if f.Gateway.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return f.Gateway.Logger
}

// onReplica returns a function for the changes of the replicas of a server.
func (f *Servers) onReplica(name string) func(spread.Status) {
	if f.Replica == nil {
		return nil
	}
	return func(s spread.Status) { f.Replica(name, s) }
}

// Replicas returns the state of the replicas of a server, or of the server itself if only its breaker is
// set; nil: it has neither.
func (f *Servers) Replicas(name string) []spread.Status {
	f.mu.Lock()
	i := slices.IndexFunc(f.list, func(s *server) bool { return s.Name == name })
	if i < 0 || f.list[i].group == nil {
		f.mu.Unlock()
		return nil
	}
	g := f.list[i].group
	f.mu.Unlock()
	return g.Status()
}
