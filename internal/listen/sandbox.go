package listen

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Browsers take localhost for 127.0.0.1 and for ::1. Where a program has one port at both, localhost is another host than
// the address for browsers, whose documents are kept apart from those at the address, and still of the same program.

// Sandbox returns the origin at localhost of listeners of [Loopback].
func Sandbox(listeners []net.Listener) string {
	_, port, err := net.SplitHostPort(listeners[0].Addr().String())
	if err != nil {
		return ""
	}
	return "http://localhost:" + port
}

// Sandbox takes the port of an endpoint at the other address of loopback too, and returns the origin at localhost. From
// then on a document there, or one without an origin, cannot send requests to anything but the page. It is called before
// Serve. An empty origin means that a page cannot show views of apps, and why is the reason.
func (e *Endpoint) Sandbox() (origin, why string) {
	if e.options.TLS != nil {
		return "", "it has TLS, so they need a host of their own" + nameOne
	}
	own := e.listener.Addr().(*net.TCPAddr)
	if !own.IP.Equal(net.IPv4(127, 0, 0, 1)) && !own.IP.Equal(net.IPv6loopback) {
		return "", fmt.Sprintf("it is at %v, and neither at 127.0.0.1 nor at ::1"+nameOne, own.IP)
	}
	other := "::1"
	if own.IP.To4() == nil {
		other = "127.0.0.1"
	}
	l, err := Open(net.JoinHostPort(other, strconv.Itoa(own.Port)))
	if err != nil {
		free, there := net.Listen("tcp", net.JoinHostPort(other, "0"))
		if there == nil {
			free.Close()
			return "", fmt.Sprintf("another program has port %d at %s, so localhost may be either", own.Port, other)
		}
	} else {
		_, kept := l.(*socket)
		e.kept = e.kept || kept
		e.beside = boundConnections(l, logRefused(e.options.Log))
	}
	host := "localhost:" + strconv.Itoa(own.Port)
	origin = "http://" + host
	next := e.http.Handler
	e.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Host, host) && framed(r, origin) && !ofViews(r.URL.Path) {
			http.Error(w, "views of apps cannot use this endpoint", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
	return origin, ""
}

// nameOne says how an operator names the host of [Endpoint.SandboxAt].
const nameOne = ": page: {sandbox: https://OTHER-HOST} in gateway.yaml"

// SandboxAt serves the frames of views at an origin of another host that leads to this endpoint too, such as
// https://apps.example.com, and refuses all other requests for the name of that host. It is called before Serve. The error says
// that the endpoint has this name itself: browsers would send the cookies of the page there, at any port.
func (e *Endpoint) SandboxAt(origin string) error {
	name := nameOf(origin)
	for _, own := range e.names() {
		if strings.EqualFold(own, name) {
			return fmt.Errorf("%s is the host of the gateway itself, whose cookies browsers send to all its ports", name)
		}
	}
	next := e.http.Handler
	e.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(nameOf("//"+r.Host), name) && !ofViews(r.URL.Path) {
			http.Error(w, "this host has the frames of views alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
	return nil
}

// names returns the names of the hosts by which clients and browsers reach the endpoint.
func (e *Endpoint) names() []string {
	list := []string{nameOf(e.URL)}
	for _, host := range e.Hosts() {
		list = append(list, nameOf("//"+host))
	}
	if g := e.options.Guard; g != nil && g.Resource != nil {
		list = append(list, nameOf(g.Resource.Resource))
	}
	if e.options.Login != nil {
		list = append(list, nameOf(e.options.Login.URL))
	}
	return list
}

// nameOf returns the name of the host of a URL, without a dot at its end; empty: it has none.
func nameOf(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Hostname(), ".")
}

// ofViews reports whether a path is one that the frame of a view needs.
func ofViews(path string) bool {
	return strings.HasPrefix(path, "/sandbox") || strings.HasPrefix(path, "/assets/sandbox-")
}

// framed reports whether a request is one of a document at an origin, of a document without an origin, or one for a frame.
func framed(r *http.Request, origin string) bool {
	for _, o := range r.Header["Origin"] {
		if strings.EqualFold(o, origin) || o == "null" {
			return true
		}
	}
	return r.Header.Get("Sec-Fetch-Site") == "same-origin" || r.Header.Get("Sec-Fetch-Dest") == "iframe"
}
