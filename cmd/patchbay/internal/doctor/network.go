package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	// netStep bounds each network step.
	netStep = 10 * time.Second

	// soonEnds is the remaining lifetime of a certificate below which a step warns.
	soonEnds = 14 * 24 * time.Hour
)

// network takes the steps to a URL that come before HTTP.
func (e *Exam) network(ctx context.Context) bool {
	u, err := url.Parse(e.Server.URL)
	if err != nil { // it was parsed before
		e.Fail("url", "not a URL", `correct "url"`)
		return false
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		e.OK("proxy", proxy.Host+", from the environment")
		return true // only HTTP shows what is behind the proxy
	}
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "wss": "443", "http": "80", "ws": "80"}[u.Scheme]
	}
	addresses, ok := e.resolve(ctx, host)
	if !ok {
		return false
	}
	conn, ok := e.dial(ctx, addresses, port)
	if !ok {
		return false
	}
	defer conn.Close()
	return u.Scheme != "https" && u.Scheme != "wss" || e.tls(ctx, conn, host)
}

func (e *Exam) resolve(ctx context.Context, host string) ([]string, bool) {
	ctx, cancel := context.WithTimeout(ctx, netStep)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		e.Fail("dns", err.Error(), "check the host name, and that this machine is online")
		return nil, false
	}
	e.OK("dns", strings.Join(addresses[:min(3, len(addresses))], ", "))
	return addresses, true
}

// dial connects to the first address that answers.
func (e *Exam) dial(ctx context.Context, addresses []string, port string) (net.Conn, bool) {
	ctx, cancel := context.WithTimeout(ctx, netStep)
	defer cancel()
	var first error
	var d net.Dialer
	for _, address := range addresses {
		conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(address, port))
		if err == nil {
			e.OK("tcp", conn.RemoteAddr().String())
			return conn, true
		}
		if first == nil {
			first = err
		}
	}
	e.Fail("tcp", first.Error(), "check that it is running, its port, and firewalls")
	return nil, false
}

// secure returns the TLS configuration; nil: the default.
func (e *Exam) secure() (*tls.Config, error) {
	if e.Model != nil {
		if e.TLS == nil {
			return nil, nil
		}
		return e.TLS()
	}
	return tlsfiles.Client(e.Server.CA, e.Server.Cert, e.Server.Key)
}

func (e *Exam) tls(ctx context.Context, conn net.Conn, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, netStep)
	defer cancel()
	config, err := e.secure()
	if err != nil {
		e.Fail("tls", err.Error(), `correct "ca", "cert" and "key"`)
		return false
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.ServerName, config.NextProtos = host, []string{"h2", "http/1.1"}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		e.Fail("tls", err.Error(), tlsAdvice(err, host))
		return false
	}
	state := c.ConnectionState()
	cert := state.PeerCertificates[0]
	left := time.Until(cert.NotAfter)
	text := fmt.Sprintf("%s, certificate valid until %s", tls.VersionName(state.Version), cert.NotAfter.Format(time.DateOnly))
	if left < soonEnds {
		e.Warn("tls", text+", which is soon")
	} else {
		e.OK("tls", text)
	}
	return true
}

// tlsAdvice describes how to fix a TLS connection.
func tlsAdvice(err error, host string) string {
	var record tls.RecordHeaderError
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &record):
		return "the port does not use TLS: try http:// instead of https://"
	case errors.As(err, &name):
		return "its certificate is not for " + host + ": use a name of the certificate in \"url\""
	case errors.As(err, &unknown):
		return "the CA of its certificate is not trusted here: add its file with \"patchbay\": {\"ca\": \"ca.pem\"} or --server-ca"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid today: contact its operator, or set the clock of this machine"
	}
	return "contact its operator"
}

// status explains an HTTP response that is not MCP.
func (e *Exam) status(err *mcp.HTTPError) {
	text := fmt.Sprintf("HTTP %d %s", err.Status, http.StatusText(err.Status))
	if body := screen.OneLine(err.Body); body != "" {
		text += ": " + screen.Cut(body, 300)
	}
	name := screen.Shell([]string{e.Server.Name})
	switch {
	case err.Status == http.StatusUnauthorized || err.Status == http.StatusForbidden:
		if wants := err.Header.Get("WWW-Authenticate"); wants != "" {
			text += "; it requires " + screen.Cut(screen.OneLine(wants), 300)
		}
		next := "patchbay login " + name + `, or a key or token in "headers": {"Authorization": "Bearer ${TOKEN}"}`
		if _, has := e.Server.Headers["Authorization"]; has {
			next = `it refuses the Authorization of "headers": check that the token is still valid, and for this server`
		}
		e.Fail("auth", text, next)
	case err.Status == http.StatusNotFound || err.Status == http.StatusMethodNotAllowed:
		next := `check the path of "url";`
		if u, err := url.Parse(e.Server.URL); err == nil && u.Path != listen.Path {
			next += " many servers use " + listen.Path
		}
		e.Fail("http", text, next)
	case err.Status >= 500:
		e.Fail("http", text, "try again later, or contact its operator")
	default:
		e.Fail("http", text, "patchbay discover -s "+name+" -v shows the messages")
	}
}
