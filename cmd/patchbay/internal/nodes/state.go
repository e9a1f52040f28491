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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/config/deploy"
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
	aboutTime = time.Second
	// stateTime bounds the wait for an answer of the State.
	stateTime = 3 * time.Second
	// removeTime bounds the wait until a node is forgotten; if it led NATS, another leader is chosen first.
	removeTime = 10 * time.Second
)

// About is what others see of a node.
type About struct {
	URL      string    `json:"url"` // for clients
	State    string    `json:"state"`
	Sessions int       `json:"sessions"`
	Since    time.Time `json:"since"`
	Files
}

// Files are digests of the files that nodes should have alike; empty: a node has none, or cannot read it.
type Files struct {
	Gateway string `json:"gateway"` // gateway.yaml
	Servers string `json:"servers"` // mcp.json
	Policy  string `json:"policy,omitempty"`
	Auth    string `json:"auth,omitempty"` // all that are named there
}

// Read reads the digests for a deployment with its servers at a path.
func Read(f *deploy.File, servers string) Files {
	auth := ""
	for _, spec := range f.Auth {
		if _, path, ok := strings.Cut(spec, ":"); ok {
			if path, _, _ = strings.Cut(path, ","); !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(f.Path), path)
			}
			auth += digest(path) // without a file of that name nothing
		}
	}
	return Files{digest(f.Path), digest(servers), digest(f.Policy), auth}
}

// digest returns one of all.
func (f Files) digest() string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(f.Gateway+" "+f.Servers+" "+f.Policy+" "+f.Auth)))
}

// digest returns that of a file; empty: it cannot be read.
func digest(path string) string {
	if data, err := ownfile.ReadNow(path, maxFile); err == nil && path != "" {
		return fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	}
	return ""
}

// kinds are the files, for people.
var kinds = []struct {
	name string
	of   func(Files) string
}{
	{"gateway.yaml", func(f Files) string { return f.Gateway }},
	{"mcp.json", func(f Files) string { return f.Servers }},
	{"policies", func(f Files) string { return f.Policy }},
	{"files of auth", func(f Files) string { return f.Auth }},
}

// differ says which files nodes have not alike.
func differ(nodes map[string]Files) (warnings []string) {
	for _, k := range kinds {
		with := map[string][]string{}
		for name, files := range nodes {
			with[k.of(files)] = append(with[k.of(files)], name)
		}
		if len(with) < 2 {
			continue
		}
		var groups []string
		for _, names := range with {
			slices.Sort(names)
			groups = append(groups, strings.Join(names, ", "))
		}
		slices.Sort(groups)
		warnings = append(warnings, "the nodes have different "+k.name+": "+strings.Join(groups, " | "))
	}
	return warnings
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

// ring has the keys that seal the ids of tasks. They stay, because tasks do.
type ring struct {
	Format int      `json:"format"`
	Keys   [][]byte `json:"keys"`
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
	if err := m.unnamed(ctx, name); err != nil {
		return err
	}
	m.entry = entry{Format: format, Version: m.options.Version, About: About{State: health.Starting, Since: time.Now()}}
	if err := m.put(ctx, nodesKey+"."+name, m.entry, entryTime); err != nil {
		return err
	}
	if err := m.remove(ctx, drainKey+"."+name); err != nil {
		return err
	}
	return m.takeKeys(ctx)
}

// nameTime is more than a process that was killed keeps the name of its node.
const nameTime = 10 * time.Second

// unnamed waits until no node has a name.
func (m *Member) unnamed(ctx context.Context, name string) error {
	for end := time.Now().Add(nameTime); ; {
		seen, err := m.node.Nodes(ctx)
		switch {
		case err != nil:
			return err
		case !slices.Contains(seen, name):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("another node has the name %q: cluster.node differs at each", name)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// takeKeys reads the keys, or makes one.
func (m *Member) takeKeys(ctx context.Context) error {
	for {
		var r ring
		e, err := m.shared.Get(ctx, keysKey)
		if err == nil {
			if err = m.read(e, &r); err == nil {
				m.keys = r
				return nil
			}
		}
		if !errors.Is(err, cluster.ErrNotFound) {
			return err
		}
		key := make([]byte, 32)
		rand.Read(key) // it never fails
		if err := m.putKeys(ctx, ring{Format: format, Keys: [][]byte{key}}); err != nil && !errors.Is(err, cluster.ErrConflict) {
			return err
		}
	}
}

// putKeys puts the keys where there are none.
func (m *Member) putKeys(ctx context.Context, r ring) error {
	value, err := json.Marshal(r)
	if err == nil {
		_, err = m.shared.Put(ctx, keysKey, value, 0, 0)
	}
	return err
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
				m.files.Store(&now.Files)
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
	_ = m.putKeys(ctx, m.keys) // another node has done it, or the next start makes another one
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
	files := map[string]Files{} // by node
	if err == nil {
		err = m.each(ctx, nodesKey, func(name string, e cluster.Entry) {
			var of entry
			if err := m.read(e, &of); err != nil {
				list.Warnings = append(list.Warnings, fmt.Sprintf("node %s: %v", name, err))
			}
			n := steer.Node{Name: name, State: of.State, Version: of.Version, URL: of.URL, Since: of.Since, Sessions: of.Sessions}
			if n.State == "" {
				n.State = steer.NotRead
			}
			switch {
			case !slices.Contains(seen, name):
				n.State, n.Sessions = steer.NotSeen, 0
			case drains[name]:
				n.State = health.Draining
			}
			list.Nodes = append(list.Nodes, n)
			if n.State != steer.NotSeen && of.Format == format {
				files[name] = of.Files
			}
		})
	}
	if own := m.options.Cluster.Node; err == nil && !slices.Contains(seen, own) {
		err = fmt.Errorf("node %s, which this is, is not seen", own)
	}
	if err != nil {
		m.options.Logger.Warn("the nodes are not listed", "err", err)
		return nil, errAway
	}
	slices.SortFunc(list.Nodes, func(a, b steer.Node) int { return cmp.Compare(a.Name, b.Name) })
	list.Warnings = append(append(list.Warnings, differ(files)...), m.missed(ctx, list.Nodes)...)
	return list, nil
}

// membersTime bounds the wait for the leader of the servers of NATS.
const membersTime = time.Second

// missed returns warnings of nodes that have ended in order, so that they are not listed, and count for a majority.
func (m *Member) missed(ctx context.Context, listed []steer.Node) (warnings []string) {
	if m.server == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, membersTime)
	defer stop()
	members, err := m.server.Members(ctx)
	if err != nil {
		m.options.Logger.Debug("the nodes that count are not known", "err", err)
		return nil
	}
	slices.Sort(members)
	for _, name := range members {
		if !slices.ContainsFunc(listed, func(n steer.Node) bool { return n.Name == name }) {
			warnings = append(warnings, fmt.Sprintf("node %s does not run, and counts for a majority: start it, or, if it has ended for good, remove it (%s)", name, screen.Shell([]string{"patchbay", "drain", name, "--remove"})))
		}
	}
	return warnings
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
	event := "drain"
	if undo {
		event = "undrain"
	}
	m.options.Steered(node, event, by)
	return nil
}

// Texts say what the events of Options.Steered have made of a node.
var Texts = map[string]string{"drain": "draining", "undrain": "no longer draining", "remove": "removed"}

// Remove implements [steer.Nodes].
func (m *Member) Remove(ctx context.Context, node, by string) error {
	if m.server == nil {
		return errors.New("nodes with a NATS of their own do not count in it: nothing is to be removed")
	}
	ctx, stop := context.WithTimeout(ctx, removeTime)
	defer stop()
	if err := m.server.Remove(ctx, node); ctx.Err() != nil {
		return errAway
	} else if err != nil {
		return err
	}
	_ = errors.Join(m.remove(ctx, nodesKey+"."+node), m.remove(ctx, drainKey+"."+node)) // they expire, or the next start of the node removes them
	m.options.Steered(node, "remove", by)
	return nil
}

// forget removes the entries of a node that ends.
func (m *Member) forget(ctx context.Context) error {
	name := m.options.Cluster.Node
	return errors.Join(m.remove(ctx, nodesKey+"."+name), m.remove(ctx, drainKey+"."+name))
}

// quiet leaves out what a server of NATS says at every start, and says in words of the configuration, once in a while, what a node that
// is not let in has wrong.
type quiet struct {
	slog.Handler
	hints *hints
}

// usual are the beginnings of such texts. Open says which nodes it waits for, and nodes show each other a secret that each needs
// as it is.
var usual = []string{
	"nats: Error trying to connect to route", "nats: Waiting for routing to be established", "nats: JetStream has not established contact with a meta leader",
	"nats: Plaintext passwords detected",
}

// again are parts of what it says after the death of a process, when it reads its folder, and of connections that end.
var again = []string{"attempting to recover using linear scan", "will rebuild", "Recovering stream state from index errored", "Error flushing", "Metalayer blocking snapshot", "Falling behind in health check"}

// faulty are parts of texts that say what is wrong, and what to do.
var faulty = []struct{ part, hint string }{
	{"authentication error", "a node shows another cluster.secret: each needs the same one"},
	{"Authorization Violation", "a node shows another cluster.secret: each needs the same one"},
	{"duplicate name", "another node has the same name: cluster.node differs at each"},
	{"outer parser ERROR", "an address of cluster.routes, or cluster.listen, is reached by something else than a node: routes has the cluster.listen of each node"},
	{"Error listening on router port", "cluster.listen is in use by another program"},
	{"TLS route handshake error", "the certificates of nodes do not fit: cluster.cert has to be signed by cluster.ca at each, for the addresses of cluster.routes"},
}

// hintTime is how long a hint is not said again.
const hintTime = 30 * time.Second

// hints remembers what was said last, for the words about what a start waits for.
type hints struct {
	mu   sync.Mutex
	said map[string]time.Time // guarded by mu
}

// of returns the hint of a text, and whether it is due to be said.
func (h *hints) of(text string) (hint string, due bool) {
	for _, f := range faulty {
		if strings.Contains(text, f.part) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if due = time.Since(h.said[f.hint]) > hintTime; due {
				if h.said == nil {
					h.said = map[string]time.Time{}
				}
				h.said[f.hint] = time.Now()
			}
			return f.hint, due
		}
	}
	return "", false
}

// last returns the hints of the last time.
func (h *hints) last() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for hint, at := range h.said {
		if time.Since(at) <= hintTime {
			list = append(list, hint)
		}
	}
	slices.Sort(list)
	return list
}

// Handle implements [slog.Handler].
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if slices.ContainsFunc(usual, func(begin string) bool { return strings.HasPrefix(r.Message, begin) }) || slices.ContainsFunc(again, func(part string) bool { return strings.Contains(r.Message, part) }) {
		return nil
	}
	if hint, due := q.hints.of(r.Message); hint != "" {
		if !due {
			return nil
		}
		r = r.Clone()
		r.AddAttrs(slog.String("hint", hint))
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.hints}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.hints} }
