package limit_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/limit"
)

// The address is that of the connection, unless a trusted proxy reports another; reports of
// others are ignored.
func TestRateOfAddresses(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tt := range []struct {
		name           string
		first, second  string // address of the connection, and X-Forwarded-For behind " < "
		one            bool   // whether they count as one
		trustNobody    bool
		severalHeaders bool
	}{
		{name: "one address, two ports", first: "192.0.2.1:1", second: "192.0.2.1:2", one: true},
		{name: "two addresses", first: "192.0.2.1:1", second: "192.0.2.2:1"},
		{name: "one IPv4 in both forms", first: "192.0.2.1:1", second: "[::ffff:192.0.2.1]:2", one: true},
		{name: "one network of IPv6", first: "[2001:db8::1]:1", second: "[2001:db8::ffff:1]:1", one: true},
		{name: "two networks of IPv6", first: "[2001:db8::1]:1", second: "[2001:db8:0:1::1]:1"},
		{name: "with a zone", first: "[fe80::1%eth0]:1", second: "[fe80::1]:1", one: true},
		{name: "header of a stranger", first: "192.0.2.1:1 < 192.0.2.7", second: "192.0.2.1:1 < 192.0.2.8", one: true},
		{name: "header, nobody is trusted", first: "10.0.0.1:1 < 192.0.2.7", second: "10.0.0.1:1 < 192.0.2.8", one: true, trustNobody: true},
		{name: "two behind a proxy", first: "10.0.0.1:1 < 192.0.2.7", second: "10.0.0.1:1 < 192.0.2.8"},
		{name: "one behind two proxies", first: "10.0.0.1:1 < 192.0.2.7", second: "10.0.0.2:1 < 192.0.2.7", one: true},
		{name: "one, through a chain", first: "10.0.0.1:1 < 192.0.2.7, 10.9.9.9", second: "[fd00::1]:1 < 192.0.2.7", one: true},
		{name: "what a client put before", first: "10.0.0.1:1 < 1.1.1.1, 192.0.2.7", second: "10.0.0.1:1 < 2.2.2.2, 192.0.2.7", one: true},
		{name: "in several headers", first: "10.0.0.1:1 < 1.1.1.1, 192.0.2.7", second: "10.0.0.1:1 < 2.2.2.2, 192.0.2.7", one: true, severalHeaders: true},
		{name: "with ports", first: "10.0.0.1:1 < 192.0.2.7:99", second: "10.0.0.1:1 < 192.0.2.7:98", one: true},
		{name: "in brackets", first: "10.0.0.1:1 < [2001:db8::1]:99", second: "10.0.0.1:1 < [2001:db8::2]", one: true},
		{name: "what is none", first: "10.0.0.1:1 < unknown", second: "10.0.0.1:1", one: true},
		{name: "what is none hides what is before", first: "10.0.0.1:1 < 1.1.1.1, _x", second: "10.0.0.1:1 < 2.2.2.2, _x", one: true},
		{name: "empty", first: "10.0.0.1:1 < ", second: "10.0.0.1:1 < ,", one: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &limit.Limiter{Address: limit.Rate{Count: 1, Per: time.Minute}, Proxies: proxies}
				if tt.trustNobody {
					l.Proxies = nil
				}
				served := 0
				h := l.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
				for _, from := range []string{tt.first, tt.second} {
					w := &wire{t: t, h: h, header: http.Header{}}
					var said string
					var proxied bool
					w.from, said, proxied = strings.Cut(from, " < ")
					if proxied {
						w.header["X-Forwarded-For"] = []string{said}
					}
					if tt.severalHeaders {
						w.header["X-Forwarded-For"] = strings.Split(said, ", ")
					}
					res := w.send("tools/list", "")
					if late := from == tt.second && tt.one; late {
						wantLate(t, res, "60", "from one address")
					} else if res.Code != 200 {
						t.Errorf("%s = %d %s", from, res.Code, res.Body)
					}
				}
			})
		})
	}
}

// Callers without a principal are distinguished by address, those with one are not.
func TestCallersWithoutName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limit.Limiter{Caller: limit.Rate{Count: 1, Per: time.Minute}}
		h := l.Protect(newServer(l))
		wantOK(t, (&wire{t: t, h: h, from: "192.0.2.1:1"}).call("one"))
		wantLate(t, (&wire{t: t, h: h, from: "192.0.2.1:2"}).call("one"), "60", "")
		wantOK(t, (&wire{t: t, h: h, from: "192.0.2.2:1"}).call("one"))
		wantOK(t, (&wire{t: t, h: h, from: "192.0.2.1:1", user: "ada"}).call("one"))
		wantLate(t, (&wire{t: t, h: h, from: "192.0.2.9:1", user: "ada"}).call("one"), "60", "")
		wantOK(t, (&wire{t: t, h: h, from: "192.0.2.9:1", user: "address 192.0.2.1"}).call("one"))
	})
}

// The number of buckets is bounded, and the most recent callers keep theirs.
func TestManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &limit.Limiter{Address: limit.Rate{Count: 1, Per: 24 * time.Hour}}
		h := l.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		from := func(i int) int {
			return (&wire{t: t, h: h, from: fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)}).send("tools/list", "").Code
		}
		const many = 60_000
		for i := range many {
			if code := from(i); code != 200 {
				t.Fatalf("caller %d = %d", i, code)
			}
		}
		if a, b := from(many-1), from(0); a != 429 || b != 200 {
			t.Errorf("the last caller is answered %d and the first one %d, want 429 and 200: it was forgotten", a, b)
		}
	})
}
