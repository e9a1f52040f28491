package zone

import (
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	for ip, want := range map[string]Zone{
		"8.8.8.8": Public, "1.1.1.1": Public, "172.15.255.255": Public, "172.32.0.0": Public, "100.63.255.255": Public, "100.128.0.0": Public,
		"169.253.255.255": Public, "223.255.255.255": Public, "11.0.0.0": Public, "126.255.255.255": Public, "128.0.0.0": Public,
		"2001:4860:4860::8888": Public, "2606:4700::1111": Public, "2001:200::1": Public,

		"10.1.2.3": Private, "192.168.0.1": Private, "172.16.0.1": Private, "172.31.255.255": Private, "100.64.0.1": Private, "100.127.255.255": Private,
		"192.0.0.1": Private, "192.0.2.1": Private, "198.18.0.1": Private, "198.19.255.255": Private, "203.0.113.9": Private, "240.0.0.1": Private, "255.255.255.255": Private,
		"fd00::1": Private, "fc00::1": Private, "fec0::1": Private, "2001:db8::1": Private, "2001:0:1::1": Private, "3fff::1": Private, "4000::1": Private, "100::1": Private,

		"127.0.0.1": Local, "127.255.255.254": Local, "0.0.0.0": Local, "0.1.2.3": Local, "224.0.0.1": Local, "::1": Local, "::": Local, "ff02::1": Local,

		"169.254.169.254": Link, "169.254.0.1": Link, "fe80::1": Link, "fe80::1%eth0": Link, "febf::1": Link, "168.63.129.16": Link, "100.100.100.200": Link,
		"fd00:ec2::254": Link,

		// An embedded address.
		"::ffff:127.0.0.1": Local, "::ffff:10.0.0.1": Private, "::ffff:169.254.169.254": Link, "::ffff:8.8.8.8": Public, "::ffff:127.0.0.1%eth0": Local,
		"64:ff9b::127.0.0.1": Local, "64:ff9b::a9fe:a9fe": Link, "64:ff9b::10.0.0.1": Private, "64:ff9b::8.8.8.8": Public, "64:ff9b:1::8.8.8.8": Private,
		"2002:7f00:1::": Local, "2002:a9fe:a9fe::1": Link, "2002:c0a8:1::1": Private, "2002:808:808::1": Public,
		"::127.0.0.1": Local, "::10.0.0.1": Private, "::ffff:0:169.254.169.254": Link,
	} {
		if got := Of(netip.MustParseAddr(ip)); got != want {
			t.Errorf("Of(%s) = %v, want %v", ip, got, want)
		}
	}
	if got := Of(netip.Addr{}); got != Link {
		t.Errorf("Of(no address) = %v, want the furthest", got)
	}
}

// FuzzOf compares public addresses with the classification of the standard library, and an IPv4
// address with its IPv6 forms.
func FuzzOf(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{0xfe, 0x80, 15: 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		plain := ip.Unmap()
		if Of(ip) == Public && (!plain.IsGlobalUnicast() || plain.IsPrivate()) {
			t.Errorf("%s is public", ip)
		}
		if !plain.Is4() {
			return
		}
		four := plain.As4()
		for _, in := range []string{"::ffff:0.0.0.0", "64:ff9b::", "::ffff:0:0.0.0.0"} {
			b := netip.MustParseAddr(in).As16()
			copy(b[12:], four[:])
			if got := Of(netip.AddrFrom16(b)); got != Of(plain) {
				t.Errorf("%s is %v, %s is %v", netip.AddrFrom16(b), got, plain, Of(plain))
			}
		}
	})
}
