// Package nodes makes one gateway of several "patchbay up", which the member cluster of gateway.yaml describes.
//
// [Open] joins what the nodes share, in servers of NATS in the nodes themselves or elsewhere, and waits until a majority
// of them answers. [Member.Serve] then puts a [cluster.Node] in front of the endpoint. NATS is imported here alone.
//
// # Guarantees
//
//   - Nothing is written for a call, except for one that opens or ends a session, for the first one of a session to a server that
//     keeps state for it, and for the first one of a session, or each one without a session, to an exclusive server. Leases are renewed, and checkpoints of audit logs exchanged, by time.
//   - A value in the State has the version of its format. One that is newer than this program is refused, and the error says so.
//   - While the State does not answer, what was known about draining stays as it is.
package nodes

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth/issuer"
	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/limit"
	"github.com/patchbay-dev/patchbay/store"
)

// Options configure [Open]. All fields are required.
type Options struct {
	Cluster *deploy.Cluster
	Version string            // of this program
	Logger  *slog.Logger      // of warnings
	Note    func(text string) // is called with what the start waits for

	// Steered is called after a person at this node has done something to a node: "drain", "undrain" or "remove".
	Steered func(node, event, by string)
}

// ErrAway is the error of [Open] if a majority of the nodes, or NATS elsewhere, does not answer in time.
var ErrAway = fmt.Errorf("nodes: no answer within %v", formTime)

// Member is this process as a node of a cluster. A nil Member is a gateway alone: of its methods, List and Drain are not
// called then.
type Member struct {
	options Options
	server  *nats.Server // nil: NATS runs elsewhere
	conn    *natsgo.Conn
	shared  *nats.Cluster
	node    *cluster.Node
	hints   hints // of the server
	keys    ring
	files   atomic.Pointer[Files] // as the others see them; nil: not yet
	entry   entry
	limits  *limit.Group
	apart   func() // ends limits

	joined   bool          // the others know this node
	begun    chan struct{} // closed when join lets it serve
	left     bool          // Leave was called
	draining atomic.Bool   // because a person wants it
	ending   atomic.Bool   // Ending was called
	changed  chan struct{} // has a value when one of these has changed
	stop     context.CancelFunc
	ended    sync.WaitGroup
}

const (
	// formTime bounds the wait for a majority of the nodes at the start.
	formTime = 2 * time.Minute
	// noteTime is how long it waits before it says for what, and then between two looks.
	noteTime = 3 * time.Second
	// leaveTime bounds what a node that ends says to the others.
	leaveTime = 3 * time.Second
	// lockTime is how long an exclusive server is not used after the death of the node that had it.
	lockTime = 5 * time.Second
	// secretUser is the name with which nodes show each other their secret.
	secretUser = "patchbay"
)

// Open joins the cluster. It waits until a majority of its nodes answers, at most two minutes, or until ctx ends. Close ends
// what it has begun.
func Open(ctx context.Context, o Options) (*Member, error) {
	m := &Member{options: o, begun: make(chan struct{}), changed: make(chan struct{}, 1), node: &cluster.Node{Name: o.Cluster.Node, Logger: o.Logger}}
	ctx, stop := context.WithTimeoutCause(ctx, formTime, ErrAway)
	defer stop()
	if err := m.open(ctx); err != nil {
		m.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("cluster %s: %w", o.Cluster.Name, err)
	}
	return m, nil
}

func (m *Member) open(ctx context.Context) error {
	c := m.options.Cluster
	noted, note := context.WithCancel(ctx)
	var noting sync.WaitGroup
	defer noting.Wait()
	defer note()
	noting.Go(func() { m.wait(noted) })
	var err error
	if c.NATS == deploy.Embedded {
		err = m.embed()
	} else {
		err = m.connect(ctx)
	}
	if err != nil {
		return err
	}
	o := nats.Options{Cluster: c.Name, Server: m.server}
	if m.server == nil {
		o.Listen = c.Listen
	}
	if m.shared, err = nats.Open(ctx, m.conn, o); err != nil {
		if errors.Is(context.Cause(ctx), ErrAway) {
			return fmt.Errorf("%w of %s; nodes need the same name of the cluster, secret and authority, and addresses that they all reach", ErrAway, m.missing(context.WithoutCancel(ctx)))
		}
		return err
	}
	m.node.State, m.node.Bus = m.shared, m.shared
	m.limits = &limit.Group{Nodes: m.node, Bus: m.shared}
	if m.apart, err = m.limits.Join(); err != nil {
		return err
	}
	return m.announce(ctx)
}

// embed starts a server of NATS in this process.
func (m *Member) embed() error {
	c := m.options.Cluster
	o := nats.ServerOptions{Cluster: c.Name, Node: c.Node, Listen: c.Listen, Routes: c.Routes, Dir: c.Store, Logger: slog.New(quiet{m.options.Logger.Handler(), &m.hints})}
	if c.Secret != "" {
		o.User, o.Password = secretUser, c.Secret
	}
	var err error
	if c.Cert != "" {
		if o.TLS, err = between(c.Cert, c.Key, c.CA); err != nil {
			return err
		}
	}
	if m.server, err = nats.Start(o); err != nil {
		return err
	}
	m.conn, err = m.server.Connect(natsgo.Name(c.Node))
	return err
}

// between returns the TLS of connections between nodes: each shows its certificate, which ca has signed, and checks the
// others'. The certificate is read again for each connection.
func between(cert, key, ca string) (*tls.Config, error) {
	config, err := tlsfiles.Client("", cert, key)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool() // authorities of the system know nothing of nodes
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	config.RootCAs, config.ClientCAs, config.ClientAuth = pool, pool, tls.RequireAndVerifyClientCert
	show := config.GetClientCertificate
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return show(nil) }
	return config, nil
}

// connect connects to a server of NATS elsewhere.
func (m *Member) connect(ctx context.Context) error {
	c := m.options.Cluster
	opts := []natsgo.Option{natsgo.Name(c.Node), natsgo.MaxReconnects(-1), natsgo.ReconnectWait(time.Second / 4), natsgo.IgnoreAuthErrorAbort(), natsgo.Timeout(2 * time.Second)}
	if c.Credentials != "" {
		opts = append(opts, natsgo.UserCredentials(c.Credentials))
	}
	secure, err := tlsfiles.Client(c.CA, c.Cert, c.Key)
	if err != nil {
		return err
	}
	if secure != nil {
		opts = append(opts, natsgo.Secure(secure))
	}
	for {
		if m.conn, err = natsgo.Connect(c.NATS, opts...); err == nil || errors.Is(err, natsgo.ErrAuthorization) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", context.Cause(ctx), withoutUser(c.NATS), err)
		case <-time.After(time.Second / 2):
		}
	}
}

// withoutUser returns a URL of NATS for people.
func withoutUser(at string) string {
	scheme, host, _ := strings.Cut(at, "://")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:]
}

// wait says what the start waits for, until ctx ends.
func (m *Member) wait(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(noteTime):
		}
		if missing := m.missing(ctx); missing != said && ctx.Err() == nil {
			m.options.Note("waiting for " + missing)
			said = missing
		}
	}
}

// missing says what a start lacks.
func (m *Member) missing(ctx context.Context) string {
	c := m.options.Cluster
	if c.NATS != deploy.Embedded {
		return "JetStream of " + withoutUser(c.NATS)
	}
	_, own, _ := net.SplitHostPort(c.Listen)
	others := 0
	var away []string
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, route := range c.Routes {
		asked.Go(func() {
			conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", route)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				away = append(away, route)
				others++
				return
			}
			defer conn.Close()
			from, to := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
			if !(from.IP.Equal(to.IP) && fmt.Sprint(to.Port) == own) { // to this node itself
				others++
			}
		})
	}
	asked.Wait()
	if others == 0 {
		return "other nodes: cluster.routes names this one alone; it has the addresses of all"
	}
	text := fmt.Sprintf("a majority of %d nodes (at the first start of a cluster, for three): ", others+1)
	switch hints := m.hints.last(); {
	case len(hints) > 0:
		return text + strings.Join(hints, "; ")
	case len(away) == 0:
		return text + "all can be reached; they choose a leader, or this node copies what they share"
	case len(away) == 1:
		return text + away[0] + " does not answer"
	}
	slices.Sort(away)
	return text + strings.Join(away, ", ") + " do not answer"
}

// Serve serves an endpoint, and starts what it serves with the function start; Leave ends the node. As the port of the endpoint takes
// connections, a node serves before it has joined the others: a request waits then, three seconds at most, and is answered with 503.
// The function about is called every few seconds, for what others see of this node. The nodes note each other's checkpoints in their
// audit logs; nil: this one has none. Its log is closed after Leave. The channel is that of the endpoint's Serve.
func (m *Member) Serve(ctx context.Context, e *listen.Endpoint, about func() About, trail *audit.Trail, start func()) (<-chan error, error) {
	if m == nil {
		start()
		return e.Serve(), nil
	}
	e.InFront(m.front)
	served := e.Serve()
	if err := m.join(ctx, about, trail, start); err != nil {
		_ = e.End(ctx, 0) // nothing has begun
		return nil, fmt.Errorf("cluster %s: %w", m.options.Cluster.Name, err)
	}
	return served, nil
}

// front puts the node in front of a handler, which serves what a single process would.
func (m *Member) front(here http.Handler) http.Handler {
	m.node.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-m.begun:
		default:
			select {
			case <-m.begun:
			case <-r.Context().Done():
				return
			}
		}
		here.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.leaves() {
			// The client, or a proxy, sends its next request over a new connection, which goes to another node. A request that it
			// sends at the moment at which this node closes the connection would be lost.
			w.Header().Set("Connection", "close")
		}
		m.node.ServeHTTP(w, r)
	})
}

// join makes the node known to the others, and lets it serve.
func (m *Member) join(ctx context.Context, about func() About, trail *audit.Trail, start func()) error {
	ctx, stop := context.WithTimeoutCause(ctx, formTime, fmt.Errorf("another node has the name %q", m.options.Cluster.Node))
	defer stop()
	if err := m.node.Join(ctx); err != nil {
		return err
	}
	m.joined = true
	live, end := context.WithCancel(context.Background())
	m.stop = end
	if trail != nil {
		run, err := exchange(live, m.shared, m.shared, trail.Log)
		if err != nil {
			return err
		}
		m.ended.Go(run)
	}
	m.ended.Go(func() { m.watch(live) })
	start()
	close(m.begun)
	m.ended.Go(func() { m.publish(live, about) })
	return nil
}

// leaves says whether load balancers should send this node no requests.
func (m *Member) leaves() bool { return m.draining.Load() || m.ending.Load() }

// Leave ends the node: the others no longer send it requests, and do not miss it.
func (m *Member) Leave(ctx context.Context) {
	if m == nil || !m.joined || m.left {
		return
	}
	m.left = true
	m.stop()
	m.ended.Wait()
	bounded := func(f func(context.Context) error) error {
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer stop()
		return f(ctx)
	}
	err := errors.Join(bounded(m.node.Leave), bounded(m.forget))
	if err != nil {
		m.options.Logger.Warn("the other nodes were not told that this one ends", "err", err)
	}
}

// Close leaves the cluster, and ends the connection to NATS and its server in this process.
func (m *Member) Close(ctx context.Context) {
	if m == nil {
		return
	}
	m.Leave(ctx)
	if m.apart != nil {
		m.apart()
	}
	if m.shared != nil {
		_ = m.shared.Close() // of a connection that ends next
	}
	if m.conn != nil {
		m.conn.Close()
	}
	if m.server == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer stop()
	if err := m.server.Close(ctx); err != nil {
		m.options.Logger.Warn("the server of NATS did not end", "err", err)
	}
}

// TaskKeys seal the ids of tasks at all nodes; the first seals, all open. Nil: each process has its own.
func (m *Member) TaskKeys() [][]byte {
	if m == nil {
		return nil
	}
	return m.keys.Keys
}

// Tasks keeps what tasks that end with a node have come to; nil: this process is alone.
func (m *Member) Tasks() store.Tasks {
	if m == nil {
		return nil
	}
	return m.node.Tasks("gateway")
}

// Lock returns the function for [gateway.Gateway] that takes an exclusive server for one node at a time; nil: this process is alone.
func (m *Member) Lock() func(ctx context.Context, server string) (gateway.Lock, error) {
	if m == nil {
		return nil
	}
	return func(ctx context.Context, server string) (gateway.Lock, error) {
		name := fmt.Sprintf("server.%x", sha256.Sum256([]byte(server))) // a name has characters that a key has not
		l, err := cluster.Acquire(ctx, m.shared, name, m.options.Cluster.Node, lockTime)
		switch {
		case errors.Is(err, cluster.ErrConflict):
			return nil, fmt.Errorf("%w (%w)", gateway.ErrInUse, err)
		case err != nil:
			return nil, err
		}
		return l, nil
	}
}

// Share returns what the nodes share for a server at a path below the endpoint, "" for the endpoint itself; nil: this process is
// alone.
func (m *Member) Share(path string) store.Shared {
	if m == nil {
		return nil
	}
	if path != "" {
		path = "/" + path
	}
	return m.node.Share(listen.Path + path)
}

// Limits returns the nodes as those that have their limits together; nil: this process is alone.
func (m *Member) Limits() *limit.Group {
	if m == nil {
		return nil
	}
	return m.limits
}

// Owned returns the check for [gateway.Gateway]: for a session that another node may have, nothing is sent to a server; nil: this process
// is alone.
func (m *Member) Owned() func(context.Context) error {
	if m == nil {
		return nil
	}
	return func(ctx context.Context) error {
		if err := m.node.Own(ctx); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "cluster: "))
		}
		return nil
	}
}

// Report adds the cluster to the state of this process.
func (m *Member) Report(r *health.Report) {
	if m == nil {
		return
	}
	r.Cluster = &health.Cluster{Name: m.options.Cluster.Name, Node: m.options.Cluster.Node}
	if f := m.files.Load(); f != nil {
		r.Cluster.Config = f.digest()
	}
	select {
	case <-m.begun:
	default:
		if r.State != health.Failing {
			r.State, r.Reason = health.Starting, "this node has not joined the others yet"
		}
	}
	if m.leaves() && (r.State == health.Ready || r.State == health.Degraded) {
		r.State = health.Draining
	}
}

// balanceTime is how long load balancers may take to see that a node drains.
const balanceTime = 5 * time.Second

// Ending lets load balancers send this node no new requests, and waits until they have seen that, or ended is readable. It returns
// the time that calls in progress then have: that of the configuration, or alone without a cluster.
func (m *Member) Ending(ended <-chan error, alone time.Duration) time.Duration {
	if m == nil {
		return alone
	}
	m.ending.Store(true)
	m.look()
	select {
	case <-ended:
	case <-time.After(balanceTime):
	}
	m.node.Retire()
	return m.options.Cluster.Drain
}

// Logins makes the authorization servers that a function returns one over all nodes.
func (m *Member) Logins(f func(resource, address, admin string, scopes []string, log *slog.Logger) *issuer.Server) func(resource, address, admin string, scopes []string, log *slog.Logger) *issuer.Server {
	if f == nil {
		return nil
	}
	return func(resource, address, admin string, scopes []string, log *slog.Logger) *issuer.Server {
		s := f(resource, address, admin, scopes, log)
		if s != nil {
			s.State = m.shared
		}
		return s
	}
}
