package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Guard decides which requests are meant for a server.
type Guard struct {
	// AllowedHosts are accepted in Host besides the loopback names: names, or names with a port.
	// When it is empty Host is checked on loopback addresses only.
	AllowedHosts []string

	// AllowedOrigins are accepted in Origin besides that of the server itself, in full
	// ("https://app.example.com"); "*" is any.
	AllowedOrigins []string

	// Fail answers a request that is refused, with 403. Nil: the answer is an error of JSON-RPC.
	Fail func(w http.ResponseWriter, why string)
}

func (g *Guard) refuse(w http.ResponseWriter, why string) {
	if g.Fail != nil {
		g.Fail(w, why)
		return
	}
	Refuse(w, http.StatusForbidden, jsonrpc.CodeInvalidRequest, why)
}

// Check returns an error for names and origins that no request can have.
func (g *Guard) Check() error {
	for _, host := range g.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/*, ") {
			return fmt.Errorf("allowed host %q: use a name such as mcp.example.com, or a name with a port, without scheme and path", host)
		}
	}
	for _, origin := range g.AllowedOrigins {
		scheme, host, ok := strings.Cut(origin, "://")
		if origin != "*" && origin != "null" && (!ok || scheme == "" || host == "" || strings.ContainsAny(origin[len(scheme)+3:], "/*, ")) {
			return fmt.Errorf(`allowed origin %q: use an origin such as https://app.example.com, without a path, or "*" for all`, origin)
		}
	}
	return nil
}

// Admit checks Host and Origin. It returns false if it has answered the request:
// with a refusal, or as the preflight of a page that may send one by the given methods
// ("GET, POST").
func (g *Guard) Admit(w http.ResponseWriter, r *http.Request, methods string) bool {
	if !g.AdmitHost(w, r) {
		return false
	}
	origin, refusal := g.checkOrigin(r)
	if refusal != "" {
		g.refuse(w, refusal)
		return false
	}
	if origin != "" {
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			preflight(w, r, origin, methods)
			return false
		}
		allowOrigin(w.Header(), origin)
	}
	return true
}

// AdmitHost checks Host alone. It returns false if it has refused the request.
func (g *Guard) AdmitHost(w http.ResponseWriter, r *http.Request) bool {
	refusal := g.checkHost(r)
	if refusal != "" {
		g.refuse(w, refusal)
	}
	return refusal == ""
}

// checkHost returns the reason to refuse a request whose Host is not a name of this server, as in
// DNS rebinding to a loopback address. It returns "" if the Host is allowed.
func (g *Guard) checkHost(r *http.Request) string {
	if usualHost(r.Host) { // it is allowed on any address
		return ""
	}
	local, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	loopback := known && loopbackAddr(local)
	if !loopback && len(g.AllowedHosts) == 0 {
		return ""
	}
	host := strings.TrimSuffix(r.Host, ".")
	name := hostname(host)
	if IsLoopback(host) {
		return ""
	}
	for _, allowed := range g.AllowedHosts {
		if strings.EqualFold(allowed, host) || strings.EqualFold(allowed, name) {
			return ""
		}
	}
	return "requests for the host " + shown(r.Host) + " are refused here: a server on loopback is protected against DNS rebinding. If it is reached by this name, start it with --allow-host NAME (in Go: HTTPConfig.AllowedHosts)"
}

// shown returns text from a client, quoted and clipped, for a refusal.
func shown(s string) string { return strconv.Quote(text.Clip(s, 100)) }

// checkOrigin refuses requests from pages that are neither from this server nor listed
// (HTTP-26-002, -003; SHTTP-25-002, -003). The result listed is the Origin if it is allowed and not
// this server's own.
func (g *Guard) checkOrigin(r *http.Request) (listed, refusal string) {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return "", ""
	}
	origin := values[0]
	if len(values) == 1 && sameHost(origin, r.Host) {
		return "", ""
	}
	for _, allowed := range g.AllowedOrigins {
		if allowed == "*" || len(values) == 1 && strings.EqualFold(allowed, origin) {
			return origin, ""
		}
	}
	return "", "requests from pages of the origin " + shown(origin) + " are refused: any web page could use the server. If this page may, start the server with --allow-origin ORIGIN (in Go: HTTPConfig.AllowedOrigins)"
}

// sameHost reports whether an Origin names the same host and port as Host. The scheme is left out,
// because a server behind a TLS proxy does not know its own.
func sameHost(origin, host string) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	if !ok {
		return false
	}
	port := ""
	switch {
	case strings.EqualFold(scheme, "http"):
		port = ":80"
	case strings.EqualFold(scheme, "https"):
		port = ":443"
	default: // pages with another scheme are not from a server
		return false
	}
	return rest != "" && strings.EqualFold(strings.TrimSuffix(rest, port), strings.TrimSuffix(host, port))
}

// usualHost recognizes the loopback names that most clients send, faster than IsLoopback.
func usualHost(host string) bool {
	port, ok := strings.CutPrefix(host, "127.0.0.1:")
	if !ok {
		port, ok = strings.CutPrefix(host, "localhost:")
	}
	for i := range len(port) {
		ok = ok && '0' <= port[i] && port[i] <= '9'
	}
	return ok
}

// hostname returns Host without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return strings.TrimSuffix(name, ".")
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// IsLoopback reports whether a Host header, with or without a port, is a loopback name.
func IsLoopback(host string) bool {
	name := hostname(strings.TrimSuffix(host, "."))
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

func loopbackAddr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

const allowedHeaders = "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id"

// allowOrigin adds the headers that let a page of another origin read the response.
func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "mcp-session-id, www-authenticate")
	h.Add("Vary", "Origin")
}

// preflight answers a CORS preflight request.
func preflight(w http.ResponseWriter, r *http.Request, origin, methods string) {
	headers := allowedHeaders
	// Arguments of tools may travel in headers whose names only the page knows.
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.HasPrefix(name, "mcp-param-") && len(headers) < 4<<10 && !strings.ContainsFunc(name, unprintable) {
			headers += ", " + name
		}
	}
	h := w.Header()
	allowOrigin(h, origin)
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

func unprintable(c rune) bool { return c <= ' ' || c > '~' }
