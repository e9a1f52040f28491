// Package freeport finds ports for programs that must know their port before they start, such as a
// debugger or the server of a test.
//
// The ports lie below those that systems give to outgoing connections, so that such a connection
// does not take a port before the program listens there.
package freeport

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

const first, count = 10_000, 20_000

// next counts the ports tried. Processes that run at the same time start at different ports.
var next atomic.Uint32

func init() { next.Store(uint32(os.Getpid()) * 61) }

// Addr returns an address of 127.0.0.1 with a port at which nothing listens. It never returns the
// same port twice in one process, unless it has tried all 20,000 ports in between.
func Addr() (string, error) {
	var err error
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", first+next.Add(1)%count)
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			return addr, l.Close()
		}
	}
	return "", fmt.Errorf("freeport: 100 ports were tried, the last one: %w", err)
}
