package launch

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/tlsfiles"
	"github.com/patchbay-dev/patchbay/mcp"
)

// way identifies a transport: a URL, and the TLS settings to reach it.
type way struct{ url, ca, cert, key string }

// CanLogIn reports whether tokens may be sent to the server of an entry: it is reached over https
// or on this machine, and the entry has no credentials of its own.
func CanLogIn(s config.Server) bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil || u.User != nil || u.Fragment != "" || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// WantsLogin reports whether a login would fix an error from the server of an entry.
func WantsLogin(err error, s config.Server) bool {
	var status *mcp.HTTPError
	if !errors.As(err, &status) || status.Status != http.StatusUnauthorized {
		return false
	}
	if wants := status.Header.Get("WWW-Authenticate"); wants != "" && !strings.Contains(strings.ToLower(wants), "bearer") {
		return false
	}
	return CanLogIn(s)
}

// Refused reports whether other credentials would fix an error.
func Refused(err error) bool {
	var status *mcp.HTTPError
	return errors.As(err, &status) && status.Status == http.StatusUnauthorized
}

// Transport returns the transport for requests to the server of a resolved entry, with its stored
// login if there is one. Sessions with one server share it. It is an error if Env has no Vault.
func (e *Env) Transport(s config.Server) (*login.Transport, error) {
	if e.Vault == nil {
		return nil, errNoVault
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	at := way{s.URL, s.CA, s.Cert, s.Key}
	if t := e.transports[at]; t != nil {
		return t, nil
	}
	t, err := e.OwnTransport(s)
	if err != nil {
		return nil, err
	}
	if e.transports == nil {
		e.transports = map[way]*login.Transport{}
	}
	e.transports[at] = t
	return t, nil
}

// OwnTransport returns a transport as Transport does, a new one, by which a person can be logged in: sessions with the
// server find the tokens in Vault.
func (e *Env) OwnTransport(s config.Server) (*login.Transport, error) {
	if e.Vault == nil {
		return nil, errNoVault
	}
	secure, err := tlsfiles.Client(s.CA, s.Cert, s.Key)
	if err != nil {
		return nil, err
	}
	t := &login.Transport{Server: s.URL, Store: e.Vault, ClientName: "Patchbay", TLS: secure}
	if e.OnLogin != nil {
		t.OnLogin = func(event login.Event) { e.OnLogin(s, event) }
	}
	return t, nil
}

var errNoVault = errors.New("logins cannot be stored here")

// Entry returns the entry of a server, before its inputs are answered.
func (f *Servers) Entry(name string) (config.Server, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.find(name)
	switch {
	case err != nil:
		return config.Server{}, err
	case f.list[i].members != nil:
		return config.Server{}, errGroup
	}
	return f.list[i].Server, nil
}

var errGroup = errors.New("it has replicas, and each has a login of its own: patchbay login and the address of one")

// Settle waits for logins that are being refreshed, for at most 3 seconds: if the program exited
// first, the new tokens would be lost.
func (e *Env) Settle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all sync.WaitGroup
	for _, t := range e.transports {
		all.Go(t.Settle)
	}
	settled := make(chan struct{})
	go func() { // ends at the latest with the program
		defer close(settled)
		all.Wait()
	}()
	select {
	case <-settled:
	case <-time.After(3 * time.Second):
	}
}

// carry makes a client reach a server as its entry says, and send its stored login.
func (e *Env) carry(c *mcp.Client, s config.Server) error {
	if CanLogIn(s) && c.Header.Get("Authorization") == "" {
		if t, err := e.Transport(s); err == nil { // without a Vault there are no tokens
			c.HTTPClient = &http.Client{Transport: t}
			return nil
		}
	}
	secure, err := tlsfiles.Client(s.CA, s.Cert, s.Key)
	if err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	if secure != nil {
		c.HTTPClient = &http.Client{Transport: tlsfiles.Transport(secure)}
	}
	return nil
}
