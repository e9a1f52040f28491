package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/inspector"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
	"github.com/patchbay-dev/patchbay/policy/rules"
)

// Live explains what a running gateway would do with calls, for its page. It sends nothing to servers.
type Live struct {
	Rules   func() (set *rules.Set, file string) // in use; a nil set: there is no policy
	Tools   func(server string) mcp.Result       // that a server has listed, as tools/list does; nil: unknown
	Trusted func(server string) bool             // the annotations of the server's tools count
	Auth    []string                             // as --auth has them: their API keys are callers that are known
	File    func() (*Deployment, error)          // of gateway.yaml; nil: there is none
}

// Answer is what a page gets.
type Answer struct {
	*verdict.Verdict
	Text  []string `json:"text"` // for people
	Ways  []Way    `json:"ways,omitempty"`
	Facts []Fact   `json:"facts,omitempty"`
	Known []Seen   `json:"known"`
}

// maxKnown bounds the callers of an answer.
const maxKnown = 200

// Explain explains a call.
func (l *Live) Explain(ctx context.Context, a *inspector.Access) (any, error) {
	definition, known, err := l.definition(a)
	if err != nil {
		return nil, err
	}
	p, err := l.principal(a)
	if err != nil {
		return nil, err
	}
	access := &policy.Access{Principal: p, Server: a.Server, Method: "tools/call", Kind: mcp.KindTool, Name: a.Tool, Arguments: a.Arguments}
	if known && l.Trusted(a.Server) {
		said := verdict.Hints(definition)
		access.Annotations = func() *policy.Annotations { return said }
	}
	set, file := l.Rules()
	out := &Answer{Verdict: decided(ctx, set, access), Known: []Seen{}}
	if set == nil {
		out.Text = []string{"The gateway has no policy: every caller who gets in may call every tool."}
	} else {
		out.Text = out.Lines(access, file)
	}
	if !known {
		out.Text = append(out.Text, "The server has not listed its tools yet, so their hints are not known.")
	}
	for _, p := range l.callers() {
		one := *access
		one.Principal = p
		v := decided(ctx, set, &one)
		c := Seen{Listed: v.Listed, Allowed: v.Allowed, Rule: v.Rule}
		if p != nil {
			c.ID, c.Name, c.Roles = p.ID, p.Name, p.Roles
		}
		out.Known = append(out.Known, c)
	}
	if l.File != nil {
		d, err := l.File()
		if err == nil {
			d.Lists, d.Source = l.lists(d), "the servers of this gateway"
			var e *Explanation
			if e, err = d.Explain(ctx, &Call{Tool: gateway.Name(a.Server, a.Tool), Principal: p, Arguments: a.Arguments}); err == nil {
				out.Ways, out.Facts = e.Ways, e.Facts
			}
		}
		if err != nil {
			out.Text = append(out.Text, fmt.Sprintf("Views, limits and caches of gateway.yaml are not explained: %v", err))
		}
	}
	return out, nil
}

// Seen is a caller who is known before a call, and what the call would come to.
type Seen struct {
	ID      string   `json:"id"` // empty: anonymous
	Name    string   `json:"name,omitempty"`
	Roles   []string `json:"roles,omitempty"`
	Listed  bool     `json:"listed"`
	Allowed bool     `json:"allowed"`
	Rule    string   `json:"rule"`
}

// lists returns the tools that the servers have listed.
func (l *Live) lists(d *Deployment) map[string][]json.RawMessage {
	out := map[string][]json.RawMessage{}
	for _, s := range d.Servers.Servers {
		if res := l.Tools(s.Name); res != nil {
			var tools []json.RawMessage
			if list, _ := jsonx.Lookup(res.JSON(), "tools"); jsonx.Unmarshal(list, &tools) == nil {
				out[s.Name] = tools
			}
		}
	}
	return out
}

// decided is [verdict.Of], without a policy too.
func decided(ctx context.Context, set *rules.Set, a *policy.Access) *verdict.Verdict {
	if set == nil {
		return &verdict.Verdict{Allowed: true, Listed: true, Rule: "none", Tried: []rules.Tried{}}
	}
	return verdict.Of(ctx, set, a)
}

// definition returns the tool of an access, if the list of its server is known.
func (l *Live) definition(a *inspector.Access) (definition json.RawMessage, known bool, err error) {
	res := l.Tools(a.Server)
	if res == nil {
		return nil, false, nil
	}
	list, _ := jsonx.Lookup(res.JSON(), "tools")
	var tools []json.RawMessage
	if err := jsonx.Unmarshal(list, &tools); err != nil {
		return nil, false, err
	}
	var names []string
	for _, t := range tools {
		quoted, _ := jsonx.Lookup(t, "name")
		name, _ := jsonx.Unquote(quoted)
		if name == a.Tool {
			return t, true, nil
		}
		names = append(names, name)
	}
	return nil, false, fmt.Errorf("server %q has no tool %q%s", a.Server, a.Tool, screen.DidYouMean(a.Tool, names))
}

// Harmless reports whether a tool of a server only reads, as the server says and may be believed.
func (l *Live) Harmless(server, tool string) bool {
	definition, known, err := l.definition(&inspector.Access{Server: server, Tool: tool})
	return err == nil && known && l.Trusted(server) && verdict.Hints(definition).ReadOnly
}

// principal returns the caller of an access. An API key that is known has its own roles and scopes unless the access
// gives some.
func (l *Live) principal(a *inspector.Access) (*auth.Principal, error) {
	if a.Principal == "" || a.Principal == "anonymous" {
		if len(a.Roles)+len(a.Scopes) > 0 {
			return nil, fmt.Errorf("roles and scopes need a principal, such as apikey#ada")
		}
		return nil, nil
	}
	if len(a.Roles)+len(a.Scopes) == 0 {
		for _, p := range l.callers() {
			if p != nil && p.ID == a.Principal {
				return p, nil
			}
		}
	}
	return verdict.Principal(a.Principal, a.Scopes, a.Roles, nil)
}

// callers returns the callers who are known: an anonymous one, which is nil, and those with an API key.
func (l *Live) callers() []*auth.Principal {
	out := []*auth.Principal{nil}
	for _, spec := range l.Auth {
		path, ok := strings.CutPrefix(spec, "apikeys:")
		if !ok {
			continue
		}
		path, _, _ = strings.Cut(path, ",")
		content, err := ownfile.ReadNow(path, maxFile)
		if err != nil {
			continue // the guard reports it
		}
		keys, _ := auth.ParseAPIKeys(content)
		for _, k := range keys {
			if len(out) > maxKnown {
				return out
			}
			out = append(out, &auth.Principal{ID: "apikey#" + k.Subject, Scheme: "apikey", Subject: k.Subject, Name: k.Name, Roles: k.Roles, Scopes: k.Scopes})
		}
	}
	return out
}

// Owners returns a function that finds the server of a name at a gateway with these servers.
func Owners(servers []string) (func(name string) (server, own string), error) {
	var list []launch.Offered
	for _, name := range servers {
		list = append(list, launch.Offered{Server: config.Server{Name: name}})
	}
	gw, err := owners(list)
	if err != nil {
		return nil, err
	}
	return gw.Owner, nil
}

// Follow returns a function that reads a gateway.yaml as it is now, with servers of the mcp.json at path, for [Live]; nil:
// there was none at the start.
func Follow(program chain.Program, begun *deploy.File, path string, servers []config.Server, trusted func(config.Server) bool) func() (*Deployment, error) {
	if begun == nil {
		return nil
	}
	return func() (*Deployment, error) {
		f, err := program.Load(begun.Path)
		return &Deployment{File: f, Servers: &config.File{Path: path, Servers: servers}, Program: program, Trusted: trusted}, err
	}
}
