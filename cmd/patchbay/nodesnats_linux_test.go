package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/internal/testcert"
)

// With testRun=nats this program is a server of NATS.
func init() {
	if os.Getenv(testRun) == "nats" {
		if err := natsServer(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func natsServer(file string) error {
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

const natsFile = `
listen: %q
jetstream: {store_dir: %q}
tls: {cert_file: %q, key_file: %q, ca_file: %[5]q, verify: true}
operator: %[6]q
resolver: MEMORY
resolver_preload: {%[7]s: %[8]q, %[9]s: %[10]q}
system_account: %[9]s
`

const chaosExternal = `  nats: tls://%s
  credentials: user.creds
  ca: nats-ca.pem
  cert: client.pem
  key: client.key
`

// natsElsewhere makes what a server of NATS needs, which asks for certificates and for the credentials of a user. It returns the file
// of its configuration, and what gateway.yaml has of it in the same folder.
func natsElsewhere(t *testing.T, address string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	authority := testcert.New(t, at("nats-ca.pem"))
	both := testcert.Loopback()
	authority.Sign(t, both, at("server.pem"), at("server.key"))
	client := testcert.Loopback()
	client.ExtKeyUsage = nil // any
	authority.Sign(t, client, at("client.pem"), at("client.key"))

	make := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		pair, err := create()
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return pair, public
	}
	operator, operatorID := make(nkeys.CreateOperator)
	account, accountID := make(nkeys.CreateAccount)
	_, systemID := make(nkeys.CreateAccount)
	user, userID := make(nkeys.CreateUser)
	signed := func(c jwt.Claims, by nkeys.KeyPair) string {
		token, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	may := jwt.NewAccountClaims(accountID)
	may.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := jwt.FormatUserConfig(signed(jwt.NewUserClaims(userID), account), seed)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(natsFile, address, at("store"), at("server.pem"), at("server.key"), at("nats-ca.pem"),
		signed(jwt.NewOperatorClaims(operatorID), operator), accountID, signed(may, operator), systemID, signed(jwt.NewAccountClaims(systemID), operator))
	for name, content := range map[string]string{"user.creds": string(credentials), "nats.conf": config} {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, at("nats.conf")
}

// back waits until each node sees all of them as ready.
func (c *chaos) back(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		awaited(t, n.name+" sees all nodes", func() bool {
			list, _, _ := nodesAt(t, n)
			return len(list.Nodes) == len(c.nodes) && strings.Count(states(list), " ready") == len(c.nodes)
		})
	}
}

// Clients of every revision call through three nodes, in the gate two, whose NATS is killed and begins again, with what is on
// its disk. The nodes are ready again by themselves, no session ends, and whatever holds for other faults holds here.
func TestNodesChaosNATS(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	address := freeAddresses(t, 1)[0]
	dir, file := natsElsewhere(t, address)
	var nats *node
	begin := func() {
		nats = &node{name: "nats", running: new(running)}
		nats.cmd, nats.stderr = program(t, file)
		nats.cmd.Env = append(os.Environ(), testRun+"=nats")
		nats.begin(t)
		awaited(t, "NATS answers", func() bool {
			if nats.over() {
				t.Fatal(nats.stderr)
			}
			c, err := net.Dial("tcp", address)
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	begin()
	c := newChaos(t, dir, long.Or(3, 2), clocks, fmt.Sprintf(chaosExternal, address), func(int) []string { return nil })
	c.run(t, long.Or(200, 10), long.Or(5*time.Minute, 14*time.Second), func(end time.Time) {
		for time.Now().Before(end.Add(-4 * time.Second)) {
			h := harmed{how: "NATS", span: span{from: time.Now()}}
			nats.cmd.Process.Kill()
			nats.cmd.Wait()
			time.Sleep(long.Or(4*time.Second, time.Second)) // without NATS
			begin()
			c.back(t)
			c.did(h)
			if !long.On() {
				break
			}
			time.Sleep(7 * time.Second)
		}
	})
}
