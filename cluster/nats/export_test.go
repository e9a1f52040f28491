package nats

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// PeerID is peerID.
var PeerID = peerID

// Peer returns the id of the server as it has it.
func (s *Server) Peer() string { return s.current.Load().Node() }

// Health says why the server does not do all that it should; empty: it does.
func (s *Server) Health() string { return s.current.Load().Healthz(&server.HealthzOptions{}).Error }

// Leads reports whether the server leads the stream of the State of a cluster.
func (s *Server) Leads(cluster string) bool {
	return s.current.Load().JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "patchbay-"+cluster+"-state")
}

// Copied reports whether the server has its copy of the State of a cluster and of the events there, as each of three servers does.
func (s *Server) Copied(cluster string) bool {
	for _, stream := range []string{"-state", "-recent"} {
		if !s.current.Load().JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, "patchbay-"+cluster+stream) {
			return false
		}
	}
	return true
}

// Abandon ends the connections of this process as its death would: the other nodes are not told.
func (c *Cluster) Abandon() {
	c.nc.Close()
	if c.links.listener != nil {
		c.links.listener.Close()
	}
	c.BreakLinks()
}

// BreakLinks closes the links of TCP under this node, and returns how many there were.
func (c *Cluster) BreakLinks() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.links.all {
		l.conn.Close()
	}
	return len(c.links.all)
}

// Links returns how many links there are.
func (c *Cluster) Links() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.links.all)
}

// Sent returns how many messages this node has sent over NATS.
func (c *Cluster) Sent() uint64 { return c.nc.Stats().OutMsgs }

// Reconnect breaks the connection to NATS.
func (c *Cluster) Reconnect() error { return c.nc.ForceReconnect() }

// Offer is the offer of a link.
func (c *Cluster) Offer() string { return c.links.offer }

// SetOffer changes the offer, before anybody has seen it.
func (c *Cluster) SetOffer(offer string) { c.links.offer = offer }

// SetIdle changes how long a link without connections stays, before there is one.
func (c *Cluster) SetIdle(d time.Duration) { c.links.idle = d }

// Host returns where a server of another name is.
func (s *Server) Host(name string) string { return s.host(name) }

// Conns returns how many ends of connections this node has.
func (c *Cluster) Conns() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// Deafen makes the node lose what comes on its connections, and nothing else.
func (c *Cluster) Deafen() error {
	messages := c.subs[0]
	c.subs = c.subs[1:]
	return messages.Unsubscribe()
}
