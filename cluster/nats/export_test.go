package nats

// Abandon ends the connection to NATS as the death of this process would: the other nodes are not told.
func (c *Cluster) Abandon() { c.nc.Close() }
