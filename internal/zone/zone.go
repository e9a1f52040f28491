// Package zone classifies addresses by reach, for programs that connect to addresses given by
// others and must not give them access to internal networks.
//
// Check the address in the dialer ([net.Dialer.ControlContext]) just before the connection, because
// a name may resolve to another address each time.
package zone

import "net/netip"

// Zone is the reach of an address. A larger zone is more internal.
type Zone int

const (
	Public  Zone = iota // reached from anywhere
	Private             // of this site, or without a known use
	Local               // of this machine: its listeners often trust local clients
	Link                // of this link; in a cloud, where machines get their credentials
)

// String returns z in words, to follow "is": "a private address".
func (z Zone) String() string {
	switch z {
	case Public:
		return "a public address"
	case Private:
		return "a private address"
	case Local:
		return "an address of this machine"
	}
	return "an address of this link, or a cloud's metadata service"
}

// Of returns the zone of an address. An IPv6 address that embeds an IPv4 address, for a
// translator or a tunnel, has the zone of that address. Only addresses known to be public are
// public.
func Of(ip netip.Addr) Zone {
	ip = ip.WithZone("").Unmap() // no prefix contains an address with a zone
	if !ip.IsValid() {
		return Link
	}
	for _, r := range ranges {
		if r.prefix.Contains(ip) {
			if r.embedded > 0 {
				b := ip.As16()
				return Of(netip.AddrFrom4([4]byte(b[r.embedded : r.embedded+4])))
			}
			return r.zone
		}
	}
	if ip.Is4() || global.Contains(ip) {
		return Public
	}
	return Private
}

// global is the range of IPv6 for global unicast (RFC 4291, 2.4, and the IANA registry of the
// address space).
var global = netip.MustParsePrefix("2000::/3")

// ranges are the special ranges of the IANA registries of special-purpose addresses. The first
// that contains an address counts.
var ranges = []struct {
	prefix   netip.Prefix
	zone     Zone
	embedded int // offset of an IPv4 address in the 16 bytes; 0: it has none
}{
	// Metadata services that are not on link-local addresses.
	{p("168.63.129.16/32"), Link, 0},     // Azure
	{p("100.100.100.200/32"), Link, 0},   // Alibaba Cloud
	{p("192.0.0.192/32"), Link, 0},       // Oracle Cloud
	{p("fd00:ec2::254/128"), Link, 0},    // Amazon
	{p("fd20:ce::254/128"), Link, 0},     // Google
	{p("169.254.0.0/16"), Link, 0},       // link-local, RFC 3927
	{p("fe80::/10"), Link, 0},            // link-local, RFC 4291
	{p("0.0.0.0/8"), Local, 0},           // this host on this network, RFC 791
	{p("127.0.0.0/8"), Local, 0},         // loopback, RFC 1122
	{p("::/127"), Local, 0},              // unspecified and loopback, RFC 4291
	{p("224.0.0.0/4"), Local, 0},         // multicast, RFC 5771
	{p("ff00::/8"), Local, 0},            // multicast, RFC 4291
	{p("10.0.0.0/8"), Private, 0},        // RFC 1918
	{p("172.16.0.0/12"), Private, 0},     // RFC 1918
	{p("192.168.0.0/16"), Private, 0},    // RFC 1918
	{p("100.64.0.0/10"), Private, 0},     // shared by the customers of a provider, RFC 6598
	{p("192.0.0.0/24"), Private, 0},      // protocol assignments, RFC 6890
	{p("192.0.2.0/24"), Private, 0},      // documentation, RFC 5737
	{p("192.88.99.0/24"), Private, 0},    // relays of 6to4, RFC 7526
	{p("198.18.0.0/15"), Private, 0},     // benchmarks, RFC 2544
	{p("198.51.100.0/24"), Private, 0},   // documentation, RFC 5737
	{p("203.0.113.0/24"), Private, 0},    // documentation, RFC 5737
	{p("240.0.0.0/4"), Private, 0},       // reserved, and broadcast, RFC 1112
	{p("64:ff9b::/96"), 0, 12},           // NAT64, RFC 6052
	{p("::/96"), 0, 12},                  // IPv4-compatible, RFC 4291
	{p("::ffff:0:0:0/96"), 0, 12},        // IPv4-translated, RFC 2765
	{p("2002::/16"), 0, 2},               // 6to4, RFC 3056
	{p("2001::/23"), Private, 0},         // protocol assignments, Teredo among them, RFC 2928
	{p("2001:db8::/32"), Private, 0},     // documentation, RFC 3849
	{p("3fff::/20"), Private, 0},         // documentation, RFC 9637
	{p("2620:4f:8000::/48"), Private, 0}, // AS112, RFC 7534
}

func p(prefix string) netip.Prefix { return netip.MustParsePrefix(prefix) }
