package listen

import (
	"net"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

// files are the sockets that systemd has passed. They are read as the program starts, since programs that it starts get what it has: the
// variables that announce the sockets, and the sockets until they are set to be closed then.
var files = activation.Files(true)

// passed returns the listeners among the files, and the names of the others, which it closes.
func passed() (list []*socket, odd []string) {
	for _, f := range files {
		accepts, _ := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN) // 0 for no socket
		name := f.Name()
		l, err := net.FileListener(f)
		if err == nil {
			if _, tcp := l.Addr().(*net.TCPAddr); tcp && accepts == 1 {
				list = append(list, &socket{l})
				f.Close() // l has a descriptor of its own
				continue
			}
			name = l.Addr().Network() + " " + l.Addr().String()
			l.Close()
		} else if p, err := net.FilePacketConn(f); err == nil {
			name = p.LocalAddr().Network() + " " + p.LocalAddr().String()
			p.Close()
		}
		odd = append(odd, name)
		f.Close()
	}
	return list, odd
}
