package listen

import (
	"fmt"
	"net"
	"slices"
	"sync"
)

// A socket unit of systemd listens before the process runs, and while another process takes its place. Connections wait
// until one accepts them.

// socket is a listener that systemd has passed to this process.
type socket struct{ net.Listener }

var sockets struct {
	mu   sync.Mutex
	read bool      // guarded by mu
	free []*socket // those that nothing has taken; guarded by mu
	odd  []string  // the names of sockets that do not listen for TCP connections; guarded by mu
}

// free returns the sockets that nothing has taken. The caller holds the lock of sockets.
func free() []*socket {
	if !sockets.read {
		sockets.read = true
		sockets.free, sockets.odd = passed()
	}
	return sockets.free
}

// Open listens at an address. If systemd has passed a socket that listens there, that is the listener: it has the same port, and
// the same IP address or, as the address, all of them. A socket is returned once.
func Open(address string) (net.Listener, error) {
	sockets.mu.Lock()
	defer sockets.mu.Unlock()
	if len(free()) == 0 {
		return net.Listen("tcp", address)
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(sockets.free, func(s *socket) bool { a := s.at(); return a.Port == at.Port && a.Zone == at.Zone && a.IP.Equal(at.IP) })
	if i < 0 && (at.IP == nil || at.IP.IsUnspecified()) {
		i = slices.IndexFunc(sockets.free, func(s *socket) bool { return s.at().Port == at.Port && s.at().IP.IsUnspecified() })
	}
	if i >= 0 {
		s := sockets.free[i]
		sockets.free = slices.Delete(sockets.free, i, i+1)
		return s, nil
	}
	l, err := net.Listen("tcp", address)
	if i = slices.IndexFunc(sockets.free, func(s *socket) bool { return s.at().Port == at.Port }); err != nil && i >= 0 {
		return nil, fmt.Errorf("systemd passes a socket at %v: %s", sockets.free[i].Addr(), sameAddress)
	}
	return l, err
}

// sameAddress is the next step for a socket at another address.
const sameAddress = "set --http (listen.http of gateway.yaml) or ListenStream= to the same address"

func (s *socket) at() *net.TCPAddr { return s.Addr().(*net.TCPAddr) }

// unused closes the sockets that Open has not returned, and returns a line for people about each.
func unused() (lines []string) {
	sockets.mu.Lock()
	defer sockets.mu.Unlock()
	for _, s := range free() {
		lines = append(lines, fmt.Sprintf("systemd passes a socket at %v, where nothing listens: %s", s.Addr(), sameAddress))
		s.Close()
	}
	for _, name := range sockets.odd {
		lines = append(lines, fmt.Sprintf("systemd passes %s, which does not listen for TCP connections: set ListenStream= to HOST:PORT, and Accept=no", name))
	}
	sockets.free, sockets.odd = nil, nil
	return lines
}
