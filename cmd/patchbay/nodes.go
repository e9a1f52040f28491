package main

import (
	"errors"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/nodes"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
)

var nodesVerb = verb{
	name: "nodes", summary: "Show the nodes of the cluster of a running gateway.",
	examples: []string{"patchbay nodes", "patchbay nodes --json"},
	minor:    true,
	details: `Asks the patchbay up of yours on this machine. A node that was killed, or cannot
be reached, is listed as "not seen" for an hour.`,
	server:  gatewayServer,
	command: func() command { return new(nodesCmd) },
}

type nodesCmd struct{ steer.Where }

func (c *nodesCmd) Run(a *app) error {
	to, err := a.gateway(&c.Where, "")
	if err != nil {
		return err
	}
	return to.ShowNodes(a.ctx, a.JSON, func(line string) { a.print(a.shown(line)) }, a.printGrid)
}

var drainVerb = verb{
	name: "drain", summary: "Let load balancers send a node of a cluster no new requests.", usage: "NODE",
	examples: []string{"patchbay drain n1", "patchbay drain n1 --undo", "patchbay drain n4 --remove"},
	minor:    true,
	details: `Its /readyz answers 503, until --undo or its next start. It goes on with what it
gets, and with sessions that it has. Any node of the cluster can be asked.`,
	server:  gatewayServer,
	command: func() command { return new(drainCmd) },
}

type drainCmd struct {
	Node   string `arg:"" help:"A node that patchbay nodes lists."`
	Undo   bool   `help:"Let it get requests again."`
	Remove bool   `help:"Forget a node that has ended for good; it counts until then."`
	steer.Where
}

func (c *drainCmd) Run(a *app) error {
	to, err := a.gateway(&c.Where, "")
	if err != nil {
		return err
	}
	return to.Drain(a.ctx, c.Node, c.Undo, c.Remove, a.JSON, func(line string) { a.print(a.shown(line)) })
}

// candidates completes the names of nodes.
func (c *drainCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if to, err := a.gateway(&c.Where, ""); err == nil && len(a.words) == 0 {
		if list, _, err := to.Nodes(a.ctx); err == nil {
			for _, n := range list.Nodes {
				out = append(out, complete.Candidate{Text: n.Name, About: n.State})
			}
		}
	}
	return out
}

// member makes this process a node of the cluster of gateway.yaml; nil: it has none.
func (a *app) member(steered func(node, event, by string)) (*nodes.Member, error) {
	if a.deployed == nil || a.deployed.Cluster == nil {
		return nil, nil
	}
	m, err := nodes.Open(a.ctx, nodes.Options{Cluster: a.deployed.Cluster, Version: Version, Logger: a.logger(), Note: func(text string) { a.talk.Note("%s", text) }, Steered: steered})
	switch {
	case a.ctx.Err() != nil:
		return nil, nil
	case errors.Is(err, nodes.ErrAway):
		return nil, &fault{Code: exitUnreachable, Err: err}
	}
	return m, err
}

// nodeSteered reports what a person has done to a node.
func (h *upServer) nodeSteered(node, event, by string) {
	h.a.talk.Note("node %s: %s, by %s", node, nodes.Texts[event], by)
	h.chain.Steered(by, event, "", map[string]any{"action": event, "node": node})
}

// seen returns what other nodes see of this one.
func (h *upServer) seen() nodes.About {
	r := h.report()
	_, sessions := h.steers.Sessions.List()
	return nodes.About{URL: r.URL, State: r.State, Sessions: sessions, Since: h.began, Files: nodes.Read(h.a.deployed, h.path)}
}
