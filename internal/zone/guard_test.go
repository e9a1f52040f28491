package zone

import (
	"net"
	"net/netip"
	"testing"
)

func TestGuardAllowsHosts(t *testing.T) {
	g := Guard{Hosts: []string{"Intranet.example", "bücher.example", "[fd00::1]:80", "fd00::2", "10.0.0.1:8080"}}
	for at, want := range map[[2]string]bool{
		{"intranet.example", "80"}:      true,
		{"INTRANET.example.", "443"}:    true,
		{"x.intranet.example", "80"}:    false,
		{"xn--bcher-kva.example", "80"}: true,
		{"fd00::1", "80"}:               true,
		{"fd00:0::1", "80"}:             true,
		{"fd00::1", "81"}:               false,
		{"fd00::2", "81"}:               true,
		{"10.0.0.1", "8080"}:            true,
		{"10.0.0.1", "80"}:              false,
	} {
		if got := g.allows(at[0], at[1]); got != want {
			t.Errorf("%s port %s: %v, want %v", at[0], at[1], got, want)
		}
	}
}

// A guard refuses what it dials, also by a name, and tells only its owner the address.
func TestGuardDials(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var told netip.Addr
	g := &Guard{Refused: func(_ string, ip netip.Addr) { told = ip }}
	_, err = g.Dial(t.Context(), "tcp", l.Addr().String())
	if r, ok := IsRefusal(err); !ok || r.Host != "127.0.0.1" || r.Zone != Local || !told.IsLoopback() {
		t.Errorf("dialled %v, told %v", err, told)
	}
	for _, g := range []*Guard{{Private: true}, {Hosts: []string{l.Addr().String()}}} {
		conn, err := g.Dial(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if g := (&Guard{Private: true}); g.Judge("metadata", "80", netip.MustParseAddr("169.254.169.254")) == nil {
		t.Error("a private guard permits a link-local address")
	}
	if err := (&Guard{Hosts: []string{"https://a"}}).Check(); err == nil {
		t.Error("a URL passes for a host")
	}
}
