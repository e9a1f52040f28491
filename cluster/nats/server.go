package nats

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// ServerOptions configure [Start].
type ServerOptions struct {
	// Cluster names the cluster, and Node this server in it. Both are required.
	Cluster, Node string
	// Listen is where the other servers of the cluster connect, HOST:PORT. Empty: this server is alone.
	Listen string
	// Routes are the addresses of other servers, HOST:PORT. One of them is enough: servers tell each other of the others. Its own
	// address may be among them. They are required with Listen.
	Routes []string
	// User and Password are what servers show each other. They have to be set if Listen is not an address of this
	// machine alone.
	User, Password string
	// TLS of the connections between servers. Nil: they are not encrypted. Each server shows its certificate and checks the
	// others', both as a server and as a client.
	TLS *tls.Config
	// Dir is the folder of what JetStream keeps: at least what the servers have agreed on. It belongs to this server alone.
	Dir string
	// MaxMemory and MaxDisk bound what JetStream keeps, in bytes. Zero: 256 MiB and 1 GiB.
	MaxMemory, MaxDisk int64
	// Logger has warnings and errors of the server. Nil: none.
	Logger *slog.Logger
}

// Server is a server of NATS in this process. One that has stopped, because a file could not be written, begins again when the
// disk has space. The other servers of its cluster then give it what it lacks.
type Server struct {
	options *server.Options
	log     *slog.Logger
	current atomic.Pointer[server.Server]
	close   context.CancelFunc
	unlock  func()        // of the folder
	closed  chan struct{} // closed when current stays as it is
}

// Start runs a server of NATS in this process. It listens for other servers alone; this process connects in memory. That the
// servers have found each other is for [Open] to wait for.
//
// The first call with Listen shortens the times of elections for all servers of NATS in the process, which should have none before.
func Start(opts ServerOptions) (*Server, error) {
	for what, name := range map[string]string{"cluster": opts.Cluster, "node": opts.Node} {
		if err := cluster.Check(what, name); err != nil {
			return nil, err
		}
	}
	if opts.Dir == "" {
		return nil, errors.New("the server of NATS needs a folder")
	}
	o := &server.Options{
		ServerName: opts.Node, NoSigs: true,
		JetStream: true, StoreDir: opts.Dir, DisableJetStreamBanner: true,
		JetStreamMaxMemory: or(opts.MaxMemory, 256<<20), JetStreamMaxStore: or(opts.MaxDisk, 1<<30),
		MaxPayload: 1 << 20,
	}
	if opts.Listen != "" {
		if err := route(o, opts); err != nil {
			return nil, err
		}
		hurry()
	}
	// A server that has routes listens for clients too: only this process knows the passwords.
	o.Host, o.Port = "127.0.0.1", -1
	system := server.NewAccount(server.DEFAULT_SYSTEM_ACCOUNT)
	o.Accounts, o.SystemAccount = []*server.Account{system}, system.Name
	o.Users = []*server.User{{Username: user, Password: rand.Text()}, {Username: systemUser, Password: rand.Text(), Account: system}}
	o.DontListen = opts.Listen == ""
	s := &Server{options: o, log: opts.Logger, closed: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.unlock, err = alone(opts.Dir); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.close = stop
	if err := s.begin(ctx); err != nil {
		stop()
		s.unlock()
		return nil, err
	}
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		o.Cluster.Port = addr.Port // also when it begins again
	}
	go s.keep(ctx)
	return s, nil
}

// alone locks a folder for a server of this process.
func alone(dir string) (unlock func(), err error) {
	ctx, stop := context.WithTimeout(context.Background(), lockTime)
	defer stop()
	if unlock, err = ownfile.Lock(ctx, filepath.Join(dir, "patchbay.lock")); ctx.Err() != nil {
		return nil, fmt.Errorf("the folder %s is in use by another server of NATS, or another node: each needs one of its own", dir)
	}
	return unlock, err
}

// lockTime is how long a server waits for one before it to end.
const lockTime = 3 * time.Second

// begin runs a new server on the folder, until ctx ends before it has started.
func (s *Server) begin(ctx context.Context) error {
	n, err := server.NewServer(s.options.Clone())
	if err != nil {
		return fmt.Errorf("server of NATS: %w", err)
	}
	log := logger{s.log, make(chan string, 1)}
	n.SetLoggerV2(log, false, false, false)
	go n.Start()
	ready := make(chan bool, 1)
	go func() { ready <- n.ReadyForConnections(patience) }()
	failed := fmt.Sprintf("it did not start within %v", patience)
	select {
	case ok := <-ready:
		if ok {
			s.current.Store(n)
			return nil
		}
	case failed = <-log.fatal:
	case <-ctx.Done():
		failed = context.Cause(ctx).Error()
	}
	shutdown(n)
	failed = fmt.Sprintf("server of NATS with the folder %s: %s", s.options.StoreDir, failed)
	if strings.Contains(failed, "snapshot corrupt") && s.options.Cluster.Name != "" {
		failed += "; if the folder is moved away, the server copies from the others what was in it"
	}
	return errors.New(failed)
}

// patience is how long a server may take to start. It reads what JetStream has kept.
const patience = time.Minute

// The users of a server.
const (
	user       = "patchbay"
	systemUser = "system"
)

func or(n, otherwise int64) int64 {
	if n == 0 {
		return otherwise
	}
	return n
}

// route configures the connections between servers.
func route(o *server.Options, opts ServerOptions) error {
	host, port, err := net.SplitHostPort(opts.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return fmt.Errorf("listen %s: %q is not a port", opts.Listen, port)
	}
	if ip := net.ParseIP(host); opts.Password == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen %s: servers on other machines need a user and a password: whoever connects has all that the cluster keeps", opts.Listen)
	}
	if len(opts.Routes) == 0 {
		return fmt.Errorf("listen %s: routes are missing, the addresses of the other servers", opts.Listen)
	}
	if number == 0 {
		number = -1 // any free one
	}
	o.Cluster = server.ClusterOpts{
		Name: opts.Cluster, Host: host, Port: number, Username: opts.User, Password: opts.Password,
		TLSConfig: opts.TLS, TLSTimeout: 5, NoAdvertise: false, PoolSize: -1,
	}
	scheme := "nats"
	if opts.TLS != nil {
		scheme = "tls"
	}
	for _, r := range opts.Routes {
		if _, _, err := net.SplitHostPort(r); err != nil {
			return fmt.Errorf("route: %w", err)
		}
		u := &url.URL{Scheme: scheme, Host: r}
		if opts.Password != "" {
			u.User = url.UserPassword(opts.User, opts.Password)
		}
		o.Routes = append(o.Routes, u)
	}
	return nil
}

// Addr is where the server listens for others, nil if it does not.
func (s *Server) Addr() net.Addr {
	if addr := s.current.Load().ClusterAddr(); addr != nil {
		return addr
	}
	return nil
}

// Connect connects this process to its server, also when that begins again.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	return nats.Connect("", append([]nats.Option{
		nats.InProcessServer(dialer{s}), nats.UserInfo(user, s.options.Users[0].Password), nats.MaxReconnects(-1), nats.ReconnectWait(10 * settle),
	}, opts...)...)
}

// dialer connects this process to the server that runs now.
type dialer struct{ *Server }

// InProcessConn implements [nats.InProcessConnProvider].
func (d dialer) InProcessConn() (net.Conn, error) { return d.current.Load().InProcessConn() }

// whole waits until this server has a copy of a stream as it is, or is none of those that have one. The error is that of ctx.
func (s *Server) whole(ctx context.Context, stream string) error {
	for {
		n := s.current.Load()
		if n.JetStreamIsCurrent() && (!n.JetStreamIsStreamAssigned(server.DEFAULT_GLOBAL_ACCOUNT, stream) || n.JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, stream)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a copy: %w", context.Cause(ctx))
		case <-time.After(settle):
		}
	}
}

// Close ends the server. Others go on if they are a majority. It waits until its goroutines have ended, or until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	s.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-s.closed
		shutdown(s.current.Load())
		s.unlock()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("server of NATS: %w", context.Cause(ctx))
	}
}

// logger hands the log of a server on, and why it does not start.
type logger struct {
	*slog.Logger
	fatal chan string
}

func (l logger) Noticef(format string, v ...any) { l.Debug(text(format, v)) }
func (l logger) Warnf(format string, v ...any)   { l.Warn(text(format, v)) }
func (l logger) Errorf(format string, v ...any)  { l.Error(text(format, v)) }
func (l logger) Debugf(string, ...any)           {}
func (l logger) Tracef(string, ...any)           {}

func (l logger) Fatalf(format string, v ...any) {
	l.Error(text(format, v))
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}

func text(format string, v []any) string {
	return "nats: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}
