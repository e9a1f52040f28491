package oauth

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A public server names addresses inside of this network, in every spelling. They are not
// connected to, for metadata, registration, tokens or keys. SEC-26-008, SEC-26-009.
func TestAddressesInside(t *testing.T) {
	f := NewFetcher(mustURL(t, "https://8.8.8.8/mcp"), nil)
	for _, host := range []string{
		"127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", // private, link-local, shared
		"[::1]", "[fe80::1]", "[fd00:ec2::254]", "[::]",
		"[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", // IPv4 in IPv6, NAT64, 6to4
		"localhost", // a name: what it leads to is looked at when it is dialled
	} {
		at := mustURL(t, "https://"+host+":1/x")
		var into struct{}
		if err := f.Get(t.Context(), at, "", &into); err == nil || !strings.Contains(err.Error(), "inside of this network") {
			t.Errorf("get %s: %v", at, err)
		}
		if _, err := f.Post(t.Context(), at, http.Header{}, nil); err == nil || !strings.Contains(err.Error(), "inside of this network") {
			t.Errorf("post %s: %v", at, err)
		}
	}
}

// Loopback is what is spelled so. Numbers that some resolvers take for addresses are names
// here, and plain http is not for them.
func TestSpellingsOfLoopback(t *testing.T) {
	for _, host := range []string{"2130706433", "0177.0.0.1", "0x7f.1", "0x7f000001", "127.1", "127.0.0.1.", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]", "localhost.", "localhost.example.com", "127.0.0.1.nip.io", "127.0.0.1%00.example.com"} {
		if u, err := CheckURL("http://"+host+"/x", mustURL(t, "http://127.0.0.1/mcp")); err == nil {
			t.Errorf("http://%s/x may be fetched as %v", host, u)
		}
	}
}

// Numbers that resolvers of the system take for 127.0.0.1 lead nowhere either, with https.
func TestSpellingsAreNotDialled(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	f := NewFetcher(mustURL(t, "https://8.8.8.8/mcp"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // some wait for a name server
	defer cancel()
	var all sync.WaitGroup
	for _, host := range []string{"2130706433", "017700000001", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1", "localhost"} {
		all.Go(func() {
			var into struct{}
			if err := f.Get(ctx, &url.URL{Scheme: "https", Host: host + ":" + port, Path: "/x"}, "", &into); err == nil {
				t.Errorf("%s was read", host)
			}
		})
	}
	all.Wait()
	ln.Close()
	<-ended
	if n := reached.Load(); n > 0 {
		t.Errorf("%d connections were made", n)
	}
}

// A name that leads elsewhere when it is dialled than when it was looked up is refused: the
// address of the connection counts.
func TestRebinding(t *testing.T) {
	g := &addressGuard{server: "8.8.8.8"}
	ctx := context.WithValue(t.Context(), directKey{}, g.zone(t.Context()))
	if err := g.check(ctx, "tcp", "1.1.1.1:443", nil); err != nil {
		t.Errorf("the address of before: %v", err)
	}
	for _, address := range []string{"127.0.0.1:443", "[::ffff:169.254.169.254]:443", "[64:ff9b::a00:1]:443", "not an address"} {
		if err := g.check(ctx, "tcp", address, nil); err == nil {
			t.Errorf("connected to %s", address)
		}
	}
}

// A redirect does not lead inside, and neither does one of an endpoint.
func TestRedirectInside(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer outside.Close()
	f := NewFetcher(mustURL(t, "http://127.0.0.1/mcp"), nil)
	var into struct{}
	if err := f.Get(t.Context(), mustURL(t, outside.URL), "", &into); err == nil || !strings.Contains(err.Error(), "another origin") {
		t.Errorf("get: %v", err)
	}
	r, err := f.Post(t.Context(), mustURL(t, outside.URL), http.Header{}, []byte("secret"))
	if err != nil || r.Status != http.StatusFound {
		t.Errorf("post: %v, %v; want the redirect itself", r, err)
	}
}
