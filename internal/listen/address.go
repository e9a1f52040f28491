package listen

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrShared is the error of [Address] for an address that other machines reach.
var ErrShared = errors.New("anyone who can reach this address can use the server: there is no authentication")

// Address completes an address to listen on. For a port alone it adds loopback or, if the server is
// shared, all interfaces. If the server is not shared and other machines can reach the address, the
// error is ErrShared. The address is returned even with an error, and so is the port with ErrShared.
func Address(address string, shared bool) (complete string, port int, err error) {
	if !strings.Contains(address, ":") {
		if strings.Contains(address, ".") || address == "localhost" {
			return address, 0, fmt.Errorf("the port is missing: %s:7420", address)
		}
		address = ":" + address
		if !shared {
			address = "127.0.0.1" + address
		}
	}
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return address, 0, err
	}
	if !addr.IP.IsLoopback() && !shared {
		return address, addr.Port, ErrShared
	}
	return address, addr.Port, nil
}

// reachable returns an address to connect to: loopback if a stands for all interfaces.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}
