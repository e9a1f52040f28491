package nats_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/cluster/internal/suite"
	"github.com/patchbay-dev/patchbay/cluster/nats"
	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// Files in the folder of a server that secured reads.
const (
	fileCA, fileCert, fileKey = "ca.pem", "server.pem", "server.key"
	fileNkey                  = "nkey" // the public key of a user
)

// secured makes a server ask for TLS with certificates of both sides, and know a user by a key beside the one with a password, if its folder
// has the files for that.
func secured(opts *server.Options, dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	public, err := os.ReadFile(at(fileNkey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		opts.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: at(fileCert), KeyFile: at(fileKey), CaFile: at(fileCA), Verify: true})
	}
	if err != nil {
		return err
	}
	opts.TLS, opts.TLSVerify, opts.TLSTimeout = true, true, 60 // seconds: the machine may be busy
	opts.Nkeys = []*server.NkeyUser{{Nkey: string(public)}}
	opts.Users = []*server.User{{Username: opts.Username, Password: opts.Password}}
	opts.Username, opts.Password = "", ""
	return nil
}

// secureProcess runs a server with TLS in another process. It returns its address, and the options of connections by what they show: an
// nkey or a password, and something that is wrong.
func secureProcess(t *testing.T) (address string, right, wrong map[string][]natsgo.Option) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	authority := testcert.New(t, at(fileCA))
	authority.Sign(t, testcert.Loopback(), at(fileCert), at(fileKey))
	client := testcert.Loopback()
	client.ExtKeyUsage = nil // any
	authority.Sign(t, client, at("client.pem"), at("client.key"))
	secure := []natsgo.Option{natsgo.RootCAs(at(fileCA)), natsgo.ClientCert(at("client.pem"), at("client.key")), natsgo.Timeout(time.Minute)}
	user := func() (public string, option natsgo.Option) {
		pair, err := nkeys.CreateUser()
		if err == nil {
			public, err = pair.PublicKey()
		}
		if err != nil {
			t.Fatal(err)
		}
		return public, natsgo.Nkey(public, pair.Sign)
	}
	public, known := user()
	_, stranger := user()
	if err := os.WriteFile(at(fileNkey), []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(opts ...natsgo.Option) []natsgo.Option { return append(opts, secure...) }
	right = map[string][]natsgo.Option{"nkey": with(known), "password": with(natsgo.UserInfo("patchbay", "right"))}
	wrong = map[string][]natsgo.Option{
		"another's nkey": with(stranger), "a wrong password": with(natsgo.UserInfo("patchbay", "wrong")), "nothing": secure,
		"no certificate":       {known, natsgo.RootCAs(at(fileCA)), natsgo.Timeout(time.Minute)},
		"an unknown authority": {known, natsgo.Secure(&tls.Config{MinVersion: tls.VersionTLS12}), natsgo.Timeout(time.Minute)},
	}
	return processIn(t, dir), right, wrong
}

// TestExternalSecure runs the tests, and those of nodes, with a server in another process, to which nodes speak TLS with certificates of both
// sides. It knows them by a key or a password, and lets others not in.
func TestExternalSecure(t *testing.T) {
	t.Parallel()
	address, right, wrong := secureProcess(t)
	for name, opts := range wrong {
		if nc, err := natsgo.Connect(address, opts...); err == nil {
			nc.Close()
			t.Errorf("%s was let in", name)
		}
	}
	for name, tc := range map[string]struct{ user, listen string }{"nkey": {user: "nkey"}, "password, linked": {"password", "127.0.0.1:0"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := func(t *testing.T, n int) (all []*nats.Cluster) {
				name := rand.Text()
				for i := range n {
					nc, err := natsgo.Connect(address, append(right[tc.user], natsgo.Name(fmt.Sprint("n", i)))...)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(nc.Close)
					if _, err := nc.TLSConnectionState(); err != nil {
						t.Errorf("a connection without TLS: %v", err)
					}
					ctx, stop := context.WithTimeout(t.Context(), time.Minute)
					defer stop()
					c, err := nats.Open(ctx, nc, nats.Options{Cluster: name, Listen: tc.listen})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					all = append(all, c)
				}
				return all
			}
			if tc.listen == "" {
				suite.State(t, func(t *testing.T) (all []cluster.State) {
					for _, c := range members(t, 2) {
						all = append(all, c)
					}
					return all
				})
				suite.Bus(t, func(t *testing.T) (all []cluster.Bus) {
					for _, c := range members(t, 2) {
						all = append(all, c)
					}
					return all
				})
			}
			suite.Nodes(t, func(t *testing.T) (states []cluster.State, buses []cluster.Bus) {
				for _, c := range members(t, 3) {
					states, buses = append(states, c), append(buses, c)
				}
				return states, buses
			})
			t.Run("links", func(t *testing.T) {
				t.Parallel()
				both := members(t, 2)
				echoes(t, both[1], "there")
				echo(t, dial(t, both[0], "there"))
				want := 0
				if tc.listen != "" {
					want = 1
				}
				if n := both[0].Links(); n != want {
					t.Errorf("%d links, want %d", n, want)
				}
			})
		})
	}
}
