package nats

import "github.com/nats-io/nats-server/v2/server"

// Health says why the server does not do all that it should; empty: it does.
func (s *Server) Health() string { return s.current.Load().Healthz(&server.HealthzOptions{}).Error }

// Abandon ends the connection to NATS as the death of this process would: the other nodes are not told.
func (c *Cluster) Abandon() { c.nc.Close() }

// Deafen makes the node lose what comes on its connections, and nothing else.
func (c *Cluster) Deafen() error {
	messages := c.subs[0]
	c.subs = c.subs[1:]
	return messages.Unsubscribe()
}
