package nats_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/suite"
	"github.com/patchbay-dev/patchbay/cluster/nats"
)

// TestMain runs a server of NATS in a process of its own for TestExternal.
func TestMain(m *testing.M) {
	if dir := os.Getenv("NATS_TEST_SERVER"); dir != "" {
		if err := external(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// external serves until its input ends, and prints its address.
func external(dir string) error {
	opts := &server.Options{
		Host: "127.0.0.1", Port: -1, Username: "patchbay", Password: "right", JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
	}
	if err := secured(opts, dir); err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return fmt.Errorf("server of NATS did not start")
	}
	fmt.Println(s.ClientURL())
	_, err = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	return err
}

// process runs a server in another process, and returns its address.
func process(t *testing.T) string {
	t.Helper()
	return processIn(t, t.TempDir())
}

// processIn is process with a folder, which may have what secured reads.
func processIn(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NATS_TEST_SERVER="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// dialer can break the connections that it has made.
type dialer struct {
	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, c)
	return c, err
}

func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		c.Close()
	}
}

// TestReconnect sees that connections between nodes end when the one to NATS breaks, on both sides, and that the node works again
// when it is back.
func TestReconnect(t *testing.T) {
	t.Parallel()
	address := process(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var d dialer
	var nodes []*nats.Cluster
	for _, opts := range [][]natsgo.Option{{natsgo.SetCustomDialer(&d), natsgo.ReconnectWait(10 * time.Millisecond)}, nil} {
		nc, err := natsgo.Connect(address, append(opts, natsgo.UserInfo("patchbay", "right"))...)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		c, err := nats.Open(ctx, nc, nats.Options{Cluster: "reconnect"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		nodes = append(nodes, c)
	}
	l, err := nodes[0].Listen("here")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	far, err := nodes[1].Dial(ctx, "here")
	if err != nil {
		t.Fatal(err)
	}
	near := <-accepted
	d.cut()
	for side, c := range map[string]net.Conn{"near": near, "far": far} {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read on the %s side: %v", side, err)
		}
	}
	for { // the subscription comes back with the connection
		if far, err = nodes[1].Dial(ctx, "here"); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	far.Close()
}

// TestExternal runs the tests with a server in another process, which knows its clients by a password.
func TestExternal(t *testing.T) {
	t.Parallel()
	address := process(t)
	if _, err := natsgo.Connect(address, natsgo.UserInfo("patchbay", "wrong")); err == nil {
		t.Fatal("a wrong password was taken")
	}
	t.Run("suite", func(t *testing.T) {
		at := func(t *testing.T, name, listen string) *nats.Cluster {
			nc, err := natsgo.Connect(address, natsgo.UserInfo("patchbay", "right"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(nc.Close)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c, err := nats.Open(ctx, nc, nats.Options{Cluster: name, Listen: listen})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return c
		}
		connect := func(t *testing.T, name string) *nats.Cluster { return at(t, name, "") }
		t.Run("linked", func(t *testing.T) {
			t.Parallel()
			name := rand.Text()
			here, there, without := at(t, name, "127.0.0.1:0"), at(t, name, "127.0.0.1:0"), connect(t, name)
			echoes(t, there, "there")
			echo(t, dial(t, here, "there"))
			if n := here.Links(); n != 1 {
				t.Errorf("%d links", n)
			}
			echo(t, dial(t, without, "there"))
			if n := there.Links(); n != 1 {
				t.Errorf("%d links with a node that has none", n)
			}
		})
		suite.State(t, func(t *testing.T) []cluster.State {
			name := rand.Text()
			return []cluster.State{connect(t, name), connect(t, name)}
		})
		suite.Bus(t, func(t *testing.T) []cluster.Bus {
			name := rand.Text()
			return []cluster.Bus{connect(t, name), connect(t, name)}
		})
	})
}

// authority signs certificates for 127.0.0.1.
func authority(t *testing.T) func() *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	sign := func(c, parent *x509.Certificate, public any) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, c, parent, public, key)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	root := sign(ca, ca, key.Public())
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return func() *tls.Config {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		leaf := sign(&x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}, root, own.Public())
		return &tls.Config{
			Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: own, Leaf: leaf}},
			RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
		}
	}
}

// TestRoutesAreSecure sees that servers with certificates of one authority and the password are one cluster, and that a server
// which lacks one of these does not get in.
func TestRoutesAreSecure(t *testing.T) {
	t.Parallel()
	certify, stranger := authority(t), authority(t)
	addrs := []string{free(t), free(t), free(t)}
	var list []*nats.Server
	for i, addr := range addrs {
		list = append(list, start(t, nats.ServerOptions{
			Cluster: "secure", Node: fmt.Sprint("n", i), Dir: t.TempDir(), Listen: addr, Routes: addrs,
			User: "route", Password: "right", TLS: certify(),
		}))
	}
	a, b := open(t, list[0], "secure"), open(t, list[2], "secure")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	version, err := a.Put(ctx, "k", []byte("v"), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := b.Get(ctx, "k"); err != nil || e.Version != version {
		t.Fatalf("Get: %+v, %v", e, err)
	}
	for name, opts := range map[string]nats.ServerOptions{
		"wrong password":        {User: "route", Password: "wrong", TLS: certify()},
		"without TLS":           {User: "route", Password: "right"},
		"another's certificate": {User: "route", Password: "right", TLS: stranger()},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Cluster, opts.Node, opts.Dir = "secure", "intruder", t.TempDir()
			opts.Listen, opts.Routes = "127.0.0.1:0", addrs
			s := start(t, opts)
			nc, err := s.Connect()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			if _, err := nats.Open(ctx, nc, nats.Options{Cluster: "secure"}); err == nil {
				t.Error("the intruder is in the cluster")
			}
		})
	}
}
