package nats

// Abandon ends the connection to NATS as the death of this process would: the other nodes are not told.
func (c *Cluster) Abandon() { c.nc.Close() }

// Deafen makes the node lose what comes on its connections, and nothing else.
func (c *Cluster) Deafen() error {
	messages := c.subs[0]
	c.subs = c.subs[1:]
	return messages.Unsubscribe()
}
