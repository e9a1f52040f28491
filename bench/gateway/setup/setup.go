//go:build linux

// Package setup starts patchbay up for measurements, in front of one server with the tool "echo", with
// none of its duties or with some of them.
//
//	g, err := setup.Start(ctx, setup.Options{Program: "patchbay", Server: []string{"server", "stdio"}, Duties: setup.All})
//	if err != nil {
//		return err
//	}
//	sample, err := g.Echo(g.Tool, load.Text(100), 1, warm, dur)
//	done, err := g.End()
//
// # Guarantees
//
//   - Everything stays on loopback and in a folder of its own, which End removes.
//   - End is an error if a duty was not done: a log without the calls, or a collector without spans.
package setup

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/patchbay-dev/patchbay/bench/load"
)

// Duty is something that a gateway does for each call, and that it can do without.
type Duty string

// The duties. Counters are always on.
const (
	JWT       Duty = "jwt"       // checks an access token, ES256
	Policy    Duty = "policy"    // evaluates rules
	Audit     Duty = "audit"     // writes signed lines, on disk before a call leaves
	Telemetry Duty = "telemetry" // sends spans and metrics to a collector
)

// All are all duties.
var All = []Duty{JWT, Policy, Audit, Telemetry}

// Options describe a gateway.
type Options struct {
	Program string   // patchbay
	Server  []string // the command of the server, or the URL of one
	Duties  []Duty
	Args    []string // more arguments of up
	Gateway string   // more lines of gateway.yaml
	Dir     string   // the folder for its files is made there; empty: the folder for temporary files
}

// Gateway is a running gateway. End must follow.
type Gateway struct {
	*load.HTTP
	Tool string // the name of "echo" at the gateway

	dir       string
	duties    []Duty
	collector *collector // nil: none
}

const (
	issuer   = "https://login.example.com"
	audience = "bench"
)

// rules are a policy whose second rule allows the calls.
const rules = `rules:
  - name: administrators may do everything
    when: '"admin" in principal.roles'
    effect: allow
  - name: short messages
    when: server == "echo" && kind == "tool" && name == "echo" && size(arguments.message) <= 10000
    effect: allow
`

// Start starts a gateway and waits until it lists the tool of its server.
func Start(ctx context.Context, o Options) (*Gateway, error) {
	dir, err := os.MkdirTemp(o.Dir, "gateway")
	if err != nil {
		return nil, err
	}
	g := &Gateway{dir: dir, duties: o.Duties}
	if err := g.start(ctx, o); err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

func (g *Gateway) start(ctx context.Context, o Options) error {
	entry := map[string]any{"command": o.Server[0], "args": o.Server[1:]}
	if strings.Contains(o.Server[0], "://") {
		entry = map[string]any{"url": o.Server[0]}
	}
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"echo": entry}})
	if err != nil {
		return err
	}
	if err := g.write("mcp.json", servers); err != nil {
		return err
	}
	argv := append([]string{o.Program, "up", "--http", load.Addr, "--config", g.file("mcp.json")}, o.Args...)
	start := func() (err error) {
		g.HTTP, err = load.StartHTTP(ctx, load.Modern, argv...)
		return err
	}
	if len(g.duties) > 0 || o.Gateway != "" { // a program of before may not know the file
		token, err := g.deploy(o.Gateway)
		if err != nil {
			return err
		}
		argv = append(argv, "--gateway", g.file("gateway.yaml"))
		if token != "" {
			start = func() (err error) {
				g.HTTP, err = load.StartHTTPAs(ctx, load.Modern, token, argv...)
				return err
			}
		}
	}
	if err := start(); err != nil {
		return err
	}
	if g.Tool, err = g.HTTP.Tool(ctx, "echo"); err != nil {
		g.Close()
	}
	return err
}

// deploy writes gateway.yaml and what it names, and returns the token that calls need, if any.
func (g *Gateway) deploy(more string) (token string, err error) {
	file := bytes.NewBufferString(more)
	for _, d := range g.duties {
		switch d {
		case JWT:
			if token, err = g.signed("keys.pem"); err != nil {
				return "", err
			}
			fmt.Fprintf(file, "auth: ['jwt:%s,keys=keys.pem,audience=%s,roles=roles']\n", issuer, audience)
		case Policy:
			if err := g.write("policy.yaml", []byte(rules)); err != nil {
				return "", err
			}
			file.WriteString("policy: policy.yaml\n")
		case Audit:
			file.WriteString("audit: {file: audit.jsonl, key: audit.key}\n")
		case Telemetry:
			g.collector = newCollector()
			fmt.Fprintf(file, "telemetry: {otlp: '%s'}\n", g.collector.url)
		default:
			return "", fmt.Errorf("there is no duty %q; use jwt, policy, audit or telemetry", d)
		}
	}
	return token, g.write("gateway.yaml", file.Bytes())
}

// signed writes a public key, and returns a token that its owner has signed.
func (g *Gateway) signed(name string) (token string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", err
	}
	if err := g.write(name, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})); err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"sub":"alice","exp":9999999999,"scope":"tools","roles":["eng-web"]}`, issuer, audience))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func (g *Gateway) file(name string) string { return filepath.Join(g.dir, name) }

func (g *Gateway) write(name string, content []byte) error {
	return os.WriteFile(g.file(name), content, 0o600)
}

// Done says what the duties of a gateway have left behind.
type Done struct {
	Lines int // of the audit log, of kind call.begin
	Spans int // that the collector has got
}

// End ends the gateway, and reports what its duties have left behind.
func (g *Gateway) End() (Done, error) {
	defer g.remove()
	g.Close()
	var done Done
	if slices.Contains(g.duties, Audit) {
		files, err := filepath.Glob(g.file("audit*.jsonl*"))
		if err != nil {
			return done, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return done, err
			}
			done.Lines += bytes.Count(content, []byte(`"kind":"call.begin"`))
		}
		if done.Lines == 0 {
			return done, errors.New("the audit log has no calls")
		}
	}
	if g.collector != nil {
		var err error
		if done.Spans, err = g.collector.spans(); err == nil && done.Spans == 0 {
			err = errors.New("the collector has got no spans")
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (g *Gateway) remove() {
	if g.collector != nil {
		g.collector.close()
	}
	os.RemoveAll(g.dir)
}
