// Package explain says what a gateway would do with a call of a tool, and why, without a call.
//
// [Deployment.Explain] makes the chain, the gateway and the views of "patchbay up" with a gateway.yaml, around
// servers that only list their tools. It sends the call through them as each view would get it, and notes
// what decides. So its verdict is that of up.
//
// # Guarantees
//
//   - No server is started or asked, no file is written, and no limit is used up.
//   - The annotations of tools are those that the caller of Explain gives. Without a list of a server, it
//     has the tool that is explained.
package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/launch"
)

// Deployment is what a gateway would serve.
type Deployment struct {
	File    *deploy.File
	Servers *config.File // mcp.json
	Program chain.Program
	Trusted func(config.Server) bool // the annotations of the server's tools count

	Lists  map[string][]json.RawMessage // the tools of servers, by the servers' own names; without an entry: unknown
	States map[string]string            // of servers in a running gateway; without an entry: unknown
	Shares map[string]string            // likewise
	Source string                       // where Lists come from, in words; empty: there are none
}

// Call is a call to explain.
type Call struct {
	Tool        string          // its name at the gateway or, with View, in that view
	View        string          // empty: all views
	Principal   *auth.Principal // nil: the caller is anonymous
	Arguments   json.RawMessage // an object; nil: none
	Annotations json.RawMessage // in place of those of the tool; nil: its own
}

// Explanation is what a gateway would do with a call.
type Explanation struct {
	Tool    string `json:"tool"`    // its name at the gateway
	Server  string `json:"server"`  // that has it
	Own     string `json:"own"`     // its name there
	Allowed bool   `json:"allowed"` // in any of Ways
	Ways    []Way  `json:"ways"`    // to the tool, in the order of gateway.yaml
	Facts   []Fact `json:"facts"`
}

// Way is one path of a gateway, at which a client may call the tool.
type Way struct {
	View    string   `json:"view,omitempty"` // empty: the file has no views
	Path    string   `json:"path"`           // below the address of the gateway
	Name    string   `json:"name"`           // of the tool there
	Through string   `json:"through,omitempty"`
	Allowed bool     `json:"allowed"`
	By      string   `json:"by"` // in words, with the place
	Rule    string   `json:"rule,omitempty"`
	File    string   `json:"file,omitempty"` // that By names
	Line    int      `json:"line,omitzero"`
	Scopes  []string `json:"scopes,omitempty"` // that would allow it
	Why     string   `json:"why,omitempty"`    // more of the reason
}

// Fact is one property of the call, in words.
type Fact struct {
	Of   string `json:"of"`
	Text string `json:"text"`
}

// tool is a tool of the deployment.
type tool struct {
	name, server, own string
	definition        json.RawMessage
	known             bool // it comes from a list
}

// Explain explains a call. The error is for a person, such as that no server has the tool.
func (d *Deployment) Explain(ctx context.Context, c *Call) (*Explanation, error) {
	servers := launch.Offer(launch.Enabled(d.Servers))
	if c.View != "" && !slices.ContainsFunc(d.views(), func(v deploy.View) bool { return v.Name == c.View }) {
		var names []string
		for _, v := range d.views() {
			names = append(names, v.Name)
		}
		return nil, advice.Usagef("%s has no view %q; views: %s%s", d.File.Path, c.View, cmp.Or(strings.Join(names, ", "), "none"), screen.DidYouMean(c.View, names))
	}
	t, err := d.find(c, servers)
	if err != nil {
		return nil, err
	}
	if c.Annotations != nil {
		t.definition = jsonx.With(nil, t.definition, "annotations", c.Annotations)
	}
	r, err := d.rehearsal(servers, t)
	if err != nil {
		return nil, err
	}
	out := &Explanation{Tool: t.name, Server: t.server, Own: t.own}
	for _, v := range d.views() {
		if c.View == "" || c.View == v.Name {
			out.Ways = append(out.Ways, r.way(ctx, c, t, &v))
		}
	}
	if d.File.Views == nil {
		out.Ways = append(out.Ways, r.way(ctx, c, t, nil))
	}
	out.Allowed = slices.ContainsFunc(out.Ways, func(w Way) bool { return w.Allowed })
	i := slices.IndexFunc(servers, func(s launch.Offered) bool { return s.Name == t.server })
	out.Facts = d.facts(c, t, &servers[i], r.team(ctx, c))
	return out, nil
}

func (d *Deployment) views() []deploy.View { return d.File.Views }

// find returns the tool that a call is about.
func (d *Deployment) find(c *Call, servers []launch.Offered) (*tool, error) {
	names := map[string]*tool{}
	gw, err := owners(servers)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		for _, definition := range d.Lists[s.Name] {
			quoted, _ := jsonx.Lookup(definition, "name")
			own, err := jsonx.Unquote(quoted)
			if err == nil && (s.Offers == nil || s.Offers(own)) {
				name := gateway.Name(s.Name, own)
				names[name] = &tool{name, s.Name, own, definition, true}
			}
		}
	}
	for _, name := range d.candidates(c) {
		if t := names[name]; t != nil {
			return t, nil
		}
		server, own := gw.Owner(name)
		_, listed := d.Lists[server]
		if server == "" || listed {
			continue
		}
		if own == "" {
			return nil, advice.Usagef("%q is a shortened name; only a running patchbay up with %s can tell which tool of %q it stands for", name, d.Servers.Path, server)
		}
		i := slices.IndexFunc(servers, func(s launch.Offered) bool { return s.Name == server })
		if servers[i].Offers != nil && !servers[i].Offers(own) {
			return nil, advice.Usagef("server %q has the tool %q, but its entry leaves it out (%s)", server, own, servers[i].Source)
		}
		return &tool{name, server, own, bare(own), false}, nil
	}
	for _, s := range d.Servers.Servers {
		if s.Disabled && strings.HasPrefix(c.Tool, gateway.Name(s.Name, "x")[:len(gateway.Name(s.Name, "x"))-1]) {
			return nil, advice.Usagef("%q is a tool of %q, which is disabled (%s)", c.Tool, s.Name, s.Source)
		}
	}
	return nil, d.unknown(c, servers, slices.Sorted(maps.Keys(names)))
}

// owners returns a gateway that can tell to which server a name belongs.
func owners(servers []launch.Offered) (*gateway.Gateway, error) {
	gw := new(gateway.Gateway)
	for _, s := range servers {
		if err := gw.Set(s.Name, new(stage)); err != nil {
			return nil, err
		}
	}
	return gw, nil
}

// bare returns the definition of a tool of which only the name is known.
func bare(own string) json.RawMessage {
	return jsonx.With(nil, []byte(`{"inputSchema":{"type":"object"}}`), "name", jsonx.AppendString(nil, own))
}

// candidates returns the names at the gateway that the tool of a call may have: its own, and those that a view
// gives its name to.
func (d *Deployment) candidates(c *Call) (names []string) {
	for _, v := range d.views() {
		for _, change := range v.Changes {
			if change.Name == c.Tool && (c.View == "" || c.View == v.Name) && !slices.Contains(names, change.Tool) {
				names = append(names, change.Tool)
			}
		}
	}
	if c.View != "" {
		return append(names, c.Tool)
	}
	return append([]string{c.Tool}, names...)
}

// unknown is the error for a tool that no server has.
func (d *Deployment) unknown(c *Call, servers []launch.Offered, names []string) error {
	var begin []string
	for _, s := range servers {
		begin = append(begin, gateway.Name(s.Name, "NAME"))
	}
	if len(servers) == 0 {
		return advice.Usagef("%s has no enabled server", d.Servers.Path)
	}
	f := advice.Usagef("no server has the tool %q%s", c.Tool, screen.DidYouMean(c.Tool, names))
	return f.Hint("names of tools are " + strings.Join(begin, ", "))
}

// nameIn returns the name of a tool in a view.
func nameIn(v *deploy.View, t *tool) string {
	for _, c := range v.Changes {
		if c.Tool == t.name && c.Name != "" {
			return c.Name
		}
	}
	return t.name
}

// place describes the place of a member of gateway.yaml.
func (d *Deployment) place(member string) string {
	return fmt.Sprintf("%s:%d", filepath.Base(d.File.Path), d.File.Problem(member, "", "").Line)
}
