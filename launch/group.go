package launch

import (
	"slices"

	"github.com/patchbay-dev/patchbay/breaker"
	"github.com/patchbay-dev/patchbay/config"
)

// grouped returns the servers with each group as one server, which has the name of the group, the place
// and settings of its first member, and the tools that all members offer. It also returns the members of
// each group, and the servers that are left out because they have the name of a group that they are not in.
func grouped(list []config.Server) (out []config.Server, members map[string][]config.Server, refused []config.Server) {
	members = map[string][]config.Server{}
	isGroup := func(name string) bool {
		return slices.ContainsFunc(list, func(s config.Server) bool { return s.Group == name })
	}
	for _, s := range list {
		switch {
		case s.Group != s.Name && isGroup(s.Name):
			refused = append(refused, s)
		case s.Group == "":
			out = append(out, s)
		default:
			if members[s.Group] == nil {
				out = append(out, s) // replaced below
			}
			members[s.Group] = append(members[s.Group], s)
		}
	}
	for i, s := range out {
		if s.Group != "" {
			out[i] = groupEntry(s.Group, members[s.Group])
		}
	}
	return out, members, refused
}

// Offered is a server as callers of a gateway see it: one of a file, or a group of them.
type Offered struct {
	config.Server                        // of a group: its name, and the settings of the first member
	Replicas      int                    // servers that calls are spread over, at least one
	Offers        func(tool string) bool // by the server's own name; nil: all of its tools
}

// Offer returns the servers of a gateway, with each group as one. Those that a gateway does not start
// because they have the name of a group are left out.
func Offer(list []config.Server) (out []Offered) {
	all, members, _ := grouped(list)
	for _, s := range all {
		one := &server{Server: s, members: members[s.Name]}
		out = append(out, Offered{s, len(one.replicaEntries()), one.offers()})
	}
	return out
}

// Rule returns when the breaker of a replica opens.
func (o *Offered) Rule() breaker.Rule {
	return ruleOf(o.Server).WithDefaults()
}

// groupEntry returns a group as one server.
func groupEntry(name string, members []config.Server) config.Server {
	s := members[0]
	s.Name, s.Dev = name, config.Dev{}
	for _, m := range members[1:] {
		s.Trusted = s.Trusted && m.Trusted
		s.Required = s.Required || m.Required
		s.Cache = min(s.Cache, m.Cache)
	}
	return s
}

// offers returns a filter for the tools of a server that callers may see; nil: all. All members of a
// group must offer a tool.
func (s *server) offers() func(tool string) bool {
	if s.members == nil {
		return offersOf(s.Server)
	}
	if !slices.ContainsFunc(s.members, func(m config.Server) bool { return offersOf(m) != nil }) {
		return nil
	}
	return func(tool string) bool {
		return !slices.ContainsFunc(s.members, func(m config.Server) bool { return !m.Offers(tool) })
	}
}
