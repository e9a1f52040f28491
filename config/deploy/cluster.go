package deploy

import (
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/cluster"
)

// Embedded is the value of Cluster.NATS for servers of NATS in the nodes themselves.
const Embedded = "embedded"

// Cluster makes one gateway of several processes.
type Cluster struct {
	NATS string // Embedded, or the URL of a server of NATS: nats:// or tls://
	Name string // of the cluster; default "patchbay"
	Node string // name of this process in it; default: the name of the machine

	Listen string   // HOST:PORT, where other nodes connect; without Embedded it may be empty
	Routes []string // of Embedded: where nodes connect, HOST:PORT; its own may be among them
	Store  string   // of Embedded: folder of what NATS keeps
	Secret string   // of Embedded: what nodes show each other; empty: nothing

	Credentials string // file with the credentials for other servers of NATS; empty: none

	Cert, Key, CA string // PEM files of TLS between nodes, or to other servers of NATS; empty: none

	Drain time.Duration // for calls in progress when the node is told to end; default 30 seconds
}

const (
	defaultCluster = "patchbay"
	defaultDrain   = 30 * time.Second
)

func (r *reader) cluster(n *yaml.Node) {
	c := &Cluster{Name: defaultCluster, Drain: defaultDrain}
	r.file.Cluster = c
	ok := r.mapping(n, "cluster", map[string]func(*yaml.Node){
		"nats": func(n *yaml.Node) { c.NATS = r.nats(n) },
		"name": func(n *yaml.Node) { c.Name = r.clusterName(n, "cluster.name", ".") },
		"node": func(n *yaml.Node) { c.Node = r.clusterName(n, "cluster.node", "") },
		"listen": func(n *yaml.Node) {
			c.Listen = r.hostPort(n, "cluster.listen", r.text(n, "cluster.listen"), "0.0.0.0:6222")
		},
		"routes": func(n *yaml.Node) {
			for i, route := range r.list(n, "cluster.routes") {
				at := n
				if n.Kind == yaml.SequenceNode {
					at = n.Content[i]
				}
				address, ok := strings.CutPrefix(route, "nats://")
				if !ok && route != "" {
					r.Fault(at, "write it like nats://10.0.0.2:6222", "cluster.routes has %s, not the address of a node", r.shown(at, route))
					continue
				}
				c.Routes = append(c.Routes, r.hostPort(at, "cluster.routes", address, "nats://10.0.0.2:6222"))
			}
		},
		"store": func(n *yaml.Node) { c.Store = r.path(n, "cluster.store") },
		"secret": func(n *yaml.Node) {
			if c.Secret = r.text(n, "cluster.secret"); literal(n) {
				r.warn(n, plainFix, "cluster.secret is in plain text")
			}
		},
		"credentials": func(n *yaml.Node) { c.Credentials = r.path(n, "cluster.credentials") },
		"cert":        func(n *yaml.Node) { c.Cert = r.path(n, "cluster.cert") },
		"key":         func(n *yaml.Node) { c.Key = r.path(n, "cluster.key") },
		"ca":          func(n *yaml.Node) { c.CA = r.path(n, "cluster.ca") },
		"drain":       func(n *yaml.Node) { c.Drain = r.duration(n, "cluster.drain", 0, 10*time.Minute) },
	})
	if !ok {
		return
	}
	r.needs(n, "cluster", "nats", Embedded)
	if !r.file.Has("cluster.node") {
		var err error
		if c.Node, err = os.Hostname(); err != nil || cluster.Check("node", c.Node) != nil {
			r.Fault(n, "add node: n1", "cluster.node is missing, and the name of this machine cannot be used")
		}
	}
	if c.Key != "" && c.Cert == "" {
		r.Fault(n, "add cert:", "cluster.key needs cluster.cert")
	}
	switch c.NATS {
	case "": // a fault already
	case Embedded:
		r.embedded(n, c)
	default:
		r.elsewhere(n, c)
	}
}

// embedded checks the members for servers of NATS in the nodes.
func (r *reader) embedded(n *yaml.Node, c *Cluster) {
	for _, needed := range []struct{ member, fix string }{
		{"listen", "add listen: 0.0.0.0:6222, where the other nodes connect"},
		{"routes", "add routes: [nats://HOST:6222] with the other nodes"},
		{"store", "add store: and a folder that belongs to this node alone"},
	} {
		if !r.file.Has("cluster." + needed.member) {
			r.Fault(n, needed.fix, "nats: %s needs cluster.%s", Embedded, needed.member)
		}
	}
	if r.file.Has("cluster.credentials") {
		r.Fault(n, "write secret: in place of it", "cluster.credentials is for NATS elsewhere, not for nats: %s", Embedded)
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	if ip := net.ParseIP(host); c.Listen != "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) && !r.file.Has("cluster.secret") {
		r.Fault(n, "add secret: ${NAME} or secret: {file: PATH}, the same at all nodes", "cluster.listen is reached from other machines, and whoever connects has all that the cluster keeps")
	}
	if (c.Cert == "") != (c.CA == "") {
		r.Fault(n, "add cert: and ca:, the authority that signed the certificates of all nodes", "TLS between nodes needs both cluster.cert and cluster.ca")
	}
}

// elsewhere checks the members for other servers of NATS.
func (r *reader) elsewhere(n *yaml.Node, c *Cluster) {
	for _, member := range []string{"routes", "store", "secret"} {
		if r.file.Has("cluster." + member) {
			r.Fault(n, "remove it", "cluster.%s is for nats: %s", member, Embedded)
		}
	}
	if c.Cert+c.CA != "" && !strings.HasPrefix(c.NATS, "tls://") {
		r.Fault(n, "write tls:// in cluster.nats", "cluster.cert and cluster.ca need TLS")
	}
}

// nats returns where NATS is.
func (r *reader) nats(n *yaml.Node) string {
	text := r.text(n, "cluster.nats")
	u, err := url.Parse(text)
	switch {
	case text == "" || text == Embedded:
	case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls":
		r.Fault(n, "write embedded, or a URL like nats://nats:4222 or tls://nats:4222", "cluster.nats is %s, neither %s nor the URL of a server of NATS", r.shown(n, text), Embedded)
		return ""
	case u.User != nil && literal(n):
		r.warn(n, plainFix+", or a file in cluster.credentials", "cluster.nats has a user name or a password in plain text")
	}
	return text
}

// clusterName returns a name in a cluster, without some characters that names of other things may have.
func (r *reader) clusterName(n *yaml.Node, member, without string) string {
	name := r.text(n, member)
	if name == "" {
		return ""
	}
	err := cluster.Check(member, name)
	if err != nil || strings.ContainsAny(name, without) {
		r.Fault(n, "use letters, digits, - and _", "%s cannot be %s", member, r.shown(n, name))
	}
	return name
}

// hostPort checks an address with a port.
func (r *reader) hostPort(n *yaml.Node, member, address, example string) string {
	if address == "" {
		return "" // a fault already
	}
	host, port, err := net.SplitHostPort(address)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || host == "" || number == 0 {
		r.Fault(n, "write it like "+example, "%s has %s, not HOST:PORT", member, r.shown(n, address))
	}
	return address
}
