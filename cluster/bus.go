package cluster

import (
	"context"
	"net"
)

// A Bus connects nodes.
type Bus interface {
	// Listen accepts connections to the node of that name, until the listener is closed. Other nodes may see that it listens,
	// or that it has ended, a moment later. A name has one listener at a time
	// in a process; if two processes use the same name, connections come to either.
	Listen(node string) (net.Listener, error)

	// Dial opens a connection to a node, and returns when that has accepted it: nothing is sent that the node would not read. The
	// error is [ErrNoNode] if no node of that name listens, or can be reached; it is another one if the node has not accepted the
	// connection within three seconds. If the node dies later, reads and writes fail with ErrNoNode within about two seconds. A Node keeps a connection for its next request only if it has a method Live() bool, which
	// says that both ends are open and nothing has come that was not read.
	Dial(ctx context.Context, node string) (net.Conn, error)

	// Publish sends data, at most [MaxValue] bytes, to all subscribers of a topic.
	Publish(ctx context.Context, topic string, data []byte) error

	// Subscribe calls f, one call at a time, with what is published from now on. Data that other nodes publish at the same
	// moment may be missing.
	Subscribe(topic string, f func(data []byte)) (stop func(), err error)
}
