package steer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Nodes are those of the cluster that a gateway is in.
type Nodes interface {
	// List returns the nodes that run, and those that have ended without a word within an hour.
	List(ctx context.Context) (*NodeList, error)
	// Drain says that a node should get no new requests, or with undo that it should, for a person.
	Drain(ctx context.Context, node string, undo bool, by string) error
	// Remove makes the others forget a node that has ended for good, for a person. The error is for people.
	Remove(ctx context.Context, node, by string) error
}

// NodeList is the state of a cluster.
type NodeList struct {
	Cluster  string   `json:"cluster"`
	Node     string   `json:"node"` // that answers
	Nodes    []Node   `json:"nodes"`
	Warnings []string `json:"warnings,omitempty"`
}

// Node is the state of a node.
type Node struct {
	Name     string    `json:"name"`
	State    string    `json:"state"` // as in a report, or draining, NotSeen or NotRead
	Version  string    `json:"version,omitempty"`
	URL      string    `json:"url,omitempty"` // for clients
	Since    time.Time `json:"since,omitzero"`
	Sessions int       `json:"sessions"`
}

// NotSeen is the state of a node that has ended without a word, or cannot be reached.
const NotSeen = "not seen"

// NotRead is the state of a node of a newer version, which says it in a format that this one does not know.
const NotRead = "unknown"

// Drained says what a request to drain a node has done.
type Drained struct {
	Node     string `json:"node"`
	Draining bool   `json:"draining"`
	Text     string `json:"text"` // all of it, for people
}

// nodes lists the nodes.
func (g *Gateway) nodes(w http.ResponseWriter, r *http.Request, _ *asked) error {
	list, err := g.listNodes(r.Context())
	if err == nil {
		write(w, http.StatusOK, list)
	}
	return err
}

func (g *Gateway) listNodes(ctx context.Context) (*NodeList, error) {
	if g.Nodes == nil {
		return nil, fail(http.StatusNotFound, "this gateway is alone: cluster of gateway.yaml makes one of several")
	}
	list, err := g.Nodes.List(ctx)
	if err != nil {
		return nil, fail(http.StatusServiceUnavailable, "%v", err)
	}
	return list, nil
}

// drain reads the body of a request to drain a node, and does it.
func (g *Gateway) drain(w http.ResponseWriter, r *http.Request, c *asked) error {
	raw, err := readBody(w, r)
	if err != nil {
		return err
	}
	var body struct {
		Undo   bool `json:"undo"`
		Remove bool `json:"remove"`
	}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := decode(raw, &body, "undo", "remove"); err != nil {
			return fail(http.StatusBadRequest, "the body is not an object with the member undo or remove, or without one: %v", err)
		}
	}
	if body.Undo && body.Remove {
		return fail(http.StatusBadRequest, "undo and remove are for two requests")
	}
	list, err := g.listNodes(r.Context())
	if err != nil {
		return err
	}
	var names []string
	for _, n := range list.Nodes {
		if names = append(names, n.Name); n.Name != c.server {
			continue
		}
		if body.Remove && n.State != NotSeen {
			return fail(http.StatusConflict, "node %s runs; end it first", n.Name)
		}
		if body.Remove {
			break
		}
		if n.State == NotSeen && !body.Undo {
			return fail(http.StatusConflict, "node %s is not seen, so that it gets no requests", n.Name)
		}
		if err := g.Nodes.Drain(r.Context(), c.server, body.Undo, c.by); err != nil {
			return fail(http.StatusServiceUnavailable, "%v", err)
		}
		out := &Drained{c.server, !body.Undo, c.server + ": draining; load balancers send it no new requests, until " + screen.Shell([]string{"patchbay", "drain", c.server, "--undo"}) + " or its next start"}
		if body.Undo {
			out.Text = c.server + ": no longer draining"
		}
		write(w, http.StatusOK, out)
		return nil
	}
	if body.Remove { // it may have ended long ago
		if err := g.Nodes.Remove(r.Context(), c.server, c.by); err != nil {
			return fail(http.StatusConflict, "%v", err)
		}
		write(w, http.StatusOK, &Drained{c.server, false, c.server + ": removed; it no longer counts for a majority, and a node of that name does again after five minutes"})
		return nil
	}
	return fail(http.StatusNotFound, "no node %q; nodes: %s%s", c.server, strings.Join(names, ", "), screen.DidYouMean(c.server, names))
}

// Nodes returns the state of the cluster of the gateway.
func (c *Client) Nodes(ctx context.Context) (list *NodeList, raw []byte, err error) {
	list = new(NodeList)
	raw, err = c.ask(ctx, http.MethodGet, "/nodes", nil, list)
	return list, raw, err
}

// ShowNodes prints the state of the cluster, as JSON or as a table.
func (c *Client) ShowNodes(ctx context.Context, asJSON bool, line func(string), grid func(*screen.Grid)) error {
	list, raw, err := c.Nodes(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		line(string(raw))
		return nil
	}
	line(fmt.Sprintf("cluster %s, as node %s sees it", list.Cluster, list.Node))
	g, now := &screen.Grid{Right: []bool{false, false, true, true}}, time.Now()
	g.Add("NODE", "STATE", "SESSIONS", "SINCE", "VERSION", "ADDRESS")
	for _, n := range list.Nodes {
		since := "-"
		if !n.Since.IsZero() {
			since = screen.Age(n.Since, now)
		}
		g.Add(n.Name, n.State, fmt.Sprint(n.Sessions), since, n.Version, n.URL)
	}
	grid(g)
	for _, w := range list.Warnings {
		line("warning: " + w)
	}
	return nil
}

// Drain says that a node of the cluster should get no new requests, with undo that it should, or with remove that it has ended for
// good, and prints what was done.
func (c *Client) Drain(ctx context.Context, node string, undo, remove, asJSON bool, line func(string)) error {
	body, err := json.Marshal(map[string]bool{"undo": undo, "remove": remove})
	if err != nil {
		return err
	}
	var did Drained
	raw, err := c.ask(ctx, http.MethodPost, "/nodes/"+url.PathEscape(node)+"/drain", body, &did)
	switch {
	case err != nil:
		return err
	case asJSON:
		line(string(raw))
	default:
		line(did.Text)
	}
	return nil
}
