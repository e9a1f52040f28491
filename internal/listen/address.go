package listen

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// ErrShared is the error of [Address] for an address that other machines reach.
var ErrShared = errors.New("anyone who can reach this address can use the server: there is no authentication")

// Address completes an address to listen on. For a port alone it adds loopback or, if the server is
// shared, all interfaces. If the server is not shared and other machines can reach the address, the
// error is ErrShared. The address is returned even with an error, and so is the port with ErrShared.
func Address(address string, shared bool) (complete string, port int, err error) {
	if u, err := url.Parse(address); err == nil && strings.Contains(address, "://") {
		return address, 0, fmt.Errorf("a URL is not an address; use %s", net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "7420")))
	}
	_, number := strconv.Atoi(address)
	if _, service := net.LookupPort("tcp", address); number == nil || service == nil {
		address = ":" + address
		if !shared {
			address = "127.0.0.1" + address
		}
	}
	if err := checkPort(address); err != nil {
		return address, 0, err
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

// checkPort returns an error that names the form of an address which has no port or a wrong one.
func checkPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		if host = strings.TrimSuffix(address, ":"); net.ParseIP(host) == nil {
			host = strings.Trim(host, "[]")
		}
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return err
		}
		return fmt.Errorf("the port is missing; use %s", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), "7420"))
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q is not a port, a number from 0 to 65535; use %s", port, net.JoinHostPort(host, "7420"))
	}
	return nil
}

// reachable returns an address to connect to: loopback if a stands for all interfaces.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}
