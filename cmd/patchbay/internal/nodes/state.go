package nodes

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Keys of the State.
const (
	nodesKey = "gateway.node"  // and the name of a node: an entry
	drainKey = "gateway.drain" // and the name of a node that drains: a drain
	keysKey  = "gateway.keys"  // a ring
)

// format is the version of the format of the values that this program writes.
const format = 1

const (
	// entryTime is how long a node that has died is listed as not seen.
	entryTime = time.Hour
	// aboutTime is the time between two looks at what others see of this node.
	aboutTime = 3 * time.Second
	// stateTime bounds the wait for an answer of the State.
	stateTime = 3 * time.Second
	// keyTime is how long a key seals.
	keyTime = 24 * time.Hour
)

// About is what others see of a node.
type About struct {
	URL      string    `json:"url"` // for clients
	State    string    `json:"state"`
	Sessions int       `json:"sessions"`
	Since    time.Time `json:"since"`
	Gateway  string    `json:"gateway"` // digest of gateway.yaml
	Servers  string    `json:"servers"` // digest of mcp.json; empty: there is none
}

// Digest returns that of a file; empty: it cannot be read.
func Digest(path string) string {
	if data, err := ownfile.ReadNow(path, maxFile); err == nil && path != "" {
		return fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	}
	return ""
}

// maxFile bounds what is read of a file, in bytes.
const maxFile = 16 << 20

// entry is what a node says of itself.
type entry struct {
	Format  int    `json:"format"`
	Version string `json:"version"` // of its program
	About
}

// drain says that a node drains.
type drain struct {
	Format int    `json:"format"`
	By     string `json:"by"`
}

// ring has the keys of requestState, the newest first.
type ring struct {
	Format int       `json:"format"`
	Since  time.Time `json:"since"` // when the first one was made
	Starts int       `json:"starts"`
	Keys   [][]byte  `json:"keys"`
}

// read decodes a value of the State. The error says if it is newer than this program.
func (m *Member) read(e cluster.Entry, v any) error {
	var of struct{ Format int }
	if err := json.Unmarshal(e.Value, &of); err != nil {
		return fmt.Errorf("%s: %w", e.Key, err)
	}
	if of.Format > format {
		return fmt.Errorf("%s has format %d, which patchbay %s does not know: update this node", e.Key, of.Format, m.options.Version)
	}
	return json.Unmarshal(e.Value, v)
}

// put writes a value, whatever it was before.
func (m *Member) put(ctx context.Context, key string, v any, ttl time.Duration) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	for {
		e, err := m.shared.Get(ctx, key)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		if _, err = m.shared.Put(ctx, key, value, e.Version, ttl); !errors.Is(err, cluster.ErrConflict) {
			return err
		}
	}
}

// remove removes a value, whatever it is.
func (m *Member) remove(ctx context.Context, key string) error {
	for {
		e, err := m.shared.Get(ctx, key)
		if err == nil {
			err = m.shared.Delete(ctx, key, e.Version)
		}
		switch {
		case errors.Is(err, cluster.ErrNotFound):
			return nil
		case !errors.Is(err, cluster.ErrConflict):
			return err
		}
	}
}

// announce makes this node known before its first request, and takes the keys. A start ends the draining of its node.
func (m *Member) announce(ctx context.Context) error {
	name := m.options.Cluster.Node
	m.entry = entry{Format: format, Version: m.options.Version, About: About{State: health.Starting, Since: time.Now()}}
	if err := m.put(ctx, nodesKey+"."+name, m.entry, entryTime); err != nil {
		return err
	}
	if err := m.remove(ctx, drainKey+"."+name); err != nil {
		return err
	}
	return m.takeKeys(ctx)
}

// takeKeys reads the keys, or makes the first one. A server has the same keys until it ends, so that a new key would be unknown
// to nodes that run: one is made only by a node that starts while no other does, if the last one is older than a day. Each start
// changes the ring, so that of two nodes that start at once one looks again.
func (m *Member) takeKeys(ctx context.Context) error {
	for {
		var r ring
		e, err := m.shared.Get(ctx, keysKey)
		if err == nil {
			err = m.read(e, &r)
		}
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		if time.Since(r.Since) > keyTime {
			alone, err := m.alone(ctx)
			if err != nil {
				return err
			}
			if alone || len(r.Keys) == 0 {
				key := make([]byte, 32)
				rand.Read(key) // it never fails
				r.Keys, r.Since = append([][]byte{key}, r.Keys[:min(len(r.Keys), 1)]...), time.Now()
			}
		}
		r.Format, r.Starts = format, r.Starts+1
		value, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = m.shared.Put(ctx, keysKey, value, e.Version, 0)
		switch {
		case err == nil:
			m.keys, m.ring = r.Keys, value
			return nil
		case !errors.Is(err, cluster.ErrConflict):
			return err
		}
	}
}

// alone reports whether no other node is listed.
func (m *Member) alone(ctx context.Context) (bool, error) {
	others := false
	err := m.each(ctx, nodesKey, func(name string, _ cluster.Entry) { others = others || name != m.options.Cluster.Node })
	return !others, err
}

// each calls f with the entries below a key, and the rest of their keys.
func (m *Member) each(ctx context.Context, key string, f func(name string, e cluster.Entry)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for c, err := range m.shared.Watch(ctx, key) {
		switch {
		case err != nil:
			return err
		case c.Key == "":
			return nil
		case !c.Deleted:
			f(c.Key[len(key)+1:], c.Entry)
		}
	}
	return context.Cause(ctx)
}

// watch follows whether this node drains, until ctx ends.
func (m *Member) watch(ctx context.Context) {
	own := drainKey + "." + m.options.Cluster.Node
	for ctx.Err() == nil {
		seen := false
		for c, err := range m.shared.Watch(ctx, drainKey) {
			switch {
			case err != nil:
				m.options.Logger.Warn("changes of draining are not seen for a moment", "err", err)
			case c.Key == "" && !seen:
				m.drains(false)
			case c.Key == own:
				seen = true
				m.drains(!c.Deleted)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// drains notes whether this node drains.
func (m *Member) drains(now bool) {
	if m.draining.Swap(now) != now {
		m.look()
	}
}

// look lets publish look at once.
func (m *Member) look() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// publish writes the entry of this node when it has changed, and before it expires, until ctx ends.
func (m *Member) publish(ctx context.Context, about func() About) {
	tick := time.NewTicker(aboutTime)
	defer tick.Stop()
	var written time.Time
	for {
		now := entry{Format: format, Version: m.options.Version, About: about()}
		try, stop := context.WithTimeout(ctx, stateTime)
		if now != m.entry || time.Since(written) > entryTime/3 || m.lost(try) {
			err := m.put(try, nodesKey+"."+m.options.Cluster.Node, now, entryTime)
			if err == nil {
				m.entry, written = now, time.Now()
			} // else again at the next tick; the node itself warns that it is not seen
		}
		stop()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.changed:
		}
	}
}

// lost reports whether the State has lost the entry of this node, because servers of NATS elsewhere were restarted. The keys are put
// again then, so that nodes that start have those of the others.
func (m *Member) lost(ctx context.Context) bool {
	_, err := m.shared.Get(ctx, nodesKey+"."+m.options.Cluster.Node)
	if !errors.Is(err, cluster.ErrNotFound) {
		return false
	}
	_, _ = m.shared.Put(ctx, keysKey, m.ring, 0, 0) // another node has done it, or the next start makes new ones
	return true
}

var errAway = errors.New("the cluster does not answer: a majority of its nodes has to run and to reach each other")

// List implements [steer.Nodes].
func (m *Member) List(ctx context.Context) (*steer.NodeList, error) {
	ctx, stop := context.WithTimeout(ctx, stateTime)
	defer stop()
	list := &steer.NodeList{Cluster: m.options.Cluster.Name, Node: m.options.Cluster.Node, Nodes: []steer.Node{}}
	drains := map[string]bool{}
	err := m.each(ctx, drainKey, func(name string, _ cluster.Entry) { drains[name] = true })
	var seen []string
	if err == nil {
		seen, err = m.node.Nodes(ctx)
	}
	digests := map[string][]string{} // names of nodes by what they read
	if err == nil {
		err = m.each(ctx, nodesKey, func(name string, e cluster.Entry) {
			var of entry
			if err := m.read(e, &of); err != nil {
				list.Warnings = append(list.Warnings, fmt.Sprintf("node %s: %v", name, err))
			}
			n := steer.Node{Name: name, State: of.State, Version: of.Version, URL: of.URL, Since: of.Since, Sessions: of.Sessions}
			switch {
			case !slices.Contains(seen, name):
				n.State, n.Sessions = steer.NotSeen, 0
			case drains[name]:
				n.State = health.Draining
			}
			list.Nodes = append(list.Nodes, n)
			if n.State != steer.NotSeen && of.Format == format {
				key := of.Gateway + of.Servers
				digests[key] = append(digests[key], name)
			}
		})
	}
	if err != nil {
		m.options.Logger.Warn("the nodes are not listed", "err", err)
		return nil, errAway
	}
	slices.SortFunc(list.Nodes, func(a, b steer.Node) int { return cmp.Compare(a.Name, b.Name) })
	if len(digests) > 1 {
		var groups []string
		for _, names := range digests {
			slices.Sort(names)
			groups = append(groups, strings.Join(names, ", "))
		}
		slices.Sort(groups)
		list.Warnings = append(list.Warnings, "the nodes have different gateway.yaml or mcp.json: "+strings.Join(groups, " | "))
	}
	return list, nil
}

// Drain implements [steer.Nodes].
func (m *Member) Drain(ctx context.Context, node string, undo bool, by string) error {
	ctx, stop := context.WithTimeout(ctx, stateTime)
	defer stop()
	var err error
	if undo {
		err = m.remove(ctx, drainKey+"."+node)
	} else {
		err = m.put(ctx, drainKey+"."+node, drain{format, by}, 0)
	}
	if err != nil {
		m.options.Logger.Warn("a node was not drained", "node", node, "err", err)
		return errAway
	}
	m.options.Drained(node, undo, by)
	return nil
}

// forget removes the entries of a node that ends.
func (m *Member) forget(ctx context.Context) error {
	name := m.options.Cluster.Node
	return errors.Join(m.remove(ctx, nodesKey+"."+name), m.remove(ctx, drainKey+"."+name))
}

// quiet leaves out what a server of NATS says at every start.
type quiet struct{ slog.Handler }

// usual are the beginnings of such texts. Open says which nodes it waits for, and nodes show each other a secret that each needs
// as it is.
var usual = []string{
	"nats: Error trying to connect to route", "nats: Waiting for routing to be established", "nats: JetStream has not established contact with a meta leader",
	"nats: Plaintext passwords detected",
}

// Handle implements [slog.Handler].
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if slices.ContainsFunc(usual, func(begin string) bool { return strings.HasPrefix(r.Message, begin) }) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
