package nonblock

import (
	"context"
	"net"
)

// Dial returns dial, whose TCP connections are those of [Conn]. Nil means that of a zero [net.Dialer].
func Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok && err == nil {
			return Conn(tcp), nil
		}
		return c, err
	}
}
