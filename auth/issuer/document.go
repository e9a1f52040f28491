package issuer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Bounds of the metadata documents of clients.
const (
	maxDocument  = 8 << 10
	documentTime = 5 * time.Second
	documentTTL  = 5 * time.Minute
	failureTTL   = 10 * time.Second
	maxDocuments = 256 // that are kept
	maxFetches   = 16  // at once
	maxOfHost    = 2   // of these from one host
)

// documents reads the metadata documents of clients, and keeps them for a while.
//
// Specification: OAuth Client ID Metadata Documents; 2026-07-28, basic/authorization, Client ID
// Metadata Documents.
type documents struct {
	server *Server
	fetch  *oauth.Fetcher
	slots  chan struct{}

	mu    sync.Mutex
	kept  map[string]keptDocument // guarded by mu
	hosts map[string]*places      // that documents are read from at the moment; guarded by mu
}

// places are the places for fetches from one host.
type places struct {
	slots chan struct{}
	users int // that have a place, or wait for one; guarded by mu of documents
}

type keptDocument struct {
	client *client
	err    error
	until  time.Time
}

func newDocuments(s *Server) *documents {
	near := new(url.URL) // no host: only public addresses are connected to
	if oauth.IsLoopback(s.site.Hostname()) {
		near = s.site
	}
	return &documents{server: s, fetch: oauth.NewFetcher(near, s.Base), slots: make(chan struct{}, maxFetches), kept: map[string]keptDocument{}, hosts: map[string]*places{}}
}

// client returns the client whose id is the URL of its document.
func (d *documents) client(ctx context.Context, id string) (*client, error) {
	u, err := url.Parse(id)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.Contains(id, "#") || len(u.Path) < 2 ||
		u.Opaque != "" || hasDots(u.Path) {
		return nil, refuse(invalidClient, "client_id is not the https URL of a metadata document")
	}
	if kept, ok := d.known(id); ok {
		return kept.client, kept.err
	}
	release, err := d.place(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	defer release()
	if kept, ok := d.known(id); ok { // another request has read it
		return kept.client, kept.err
	}
	now := time.Now()
	kept := keptDocument{until: now.Add(documentTTL)}
	if kept.client, kept.err = d.read(ctx, id, u); kept.err != nil {
		if ctx.Err() != nil {
			return nil, kept.err // of this request alone
		}
		kept.until = now.Add(failureTTL)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= maxDocuments {
		for other, k := range d.kept { // those that are over, else any
			if now.After(k.until) || len(d.kept) >= maxDocuments {
				delete(d.kept, other)
			}
		}
	}
	d.kept[id] = kept
	return kept.client, kept.err
}

// known returns what is kept of a document.
func (d *documents) known(id string) (kept keptDocument, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept, ok = d.kept[id]
	return kept, ok && time.Now().Before(kept.until)
}

// place waits for a place to read a document of a host, so that slow hosts leave places to others.
func (d *documents) place(ctx context.Context, host string) (release func(), err error) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	d.mu.Lock()
	of := d.hosts[host]
	if of == nil {
		of = &places{slots: make(chan struct{}, maxOfHost)}
		d.hosts[host] = of
	}
	of.users++
	d.mu.Unlock()
	leave := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if of.users--; of.users == 0 {
			delete(d.hosts, host)
		}
	}
	late := time.NewTimer(documentTime)
	defer late.Stop()
	for i, slots := range []chan struct{}{of.slots, d.slots} {
		select {
		case slots <- struct{}{}:
			continue
		case <-late.C:
			err = &fault{status: http.StatusServiceUnavailable, code: unavailable, text: "too many documents of clients are being read; try again"}
		case <-ctx.Done():
			err = ctx.Err()
		}
		if i == 1 {
			<-of.slots
		}
		leave()
		return nil, err
	}
	return func() { <-d.slots; <-of.slots; leave() }, nil
}

// hasDots reports whether a path has a segment of dots (section 3 of the draft).
func hasDots(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// read fetches a document and checks it.
func (d *documents) read(ctx context.Context, id string, u *url.URL) (*client, error) {
	ctx, stop := context.WithTimeout(ctx, documentTime)
	defer stop()
	fail := func(cause error, format string, args ...any) (*client, error) {
		return nil, &fault{code: invalidClient, text: "the metadata document of the client, " + text.Short(id) + ", " + fmt.Sprintf(format, args...), cause: cause}
	}
	raw, err := d.fetch.Document(ctx, u, maxDocument)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fail(err, "did not arrive within %v", documentTime)
		}
		return fail(err, "cannot be read by this server")
	}
	var m struct {
		ID     string `json:"client_id"`
		Secret any    `json:"client_secret"`
		clientMetadata
	}
	if err := jsonx.Unmarshal(raw, &m); err != nil {
		return fail(nil, "is not a JSON object as in RFC 7591")
	}
	switch {
	case m.ID != id:
		return fail(nil, "is that of another client, %q", text.Short(m.ID))
	case m.Secret != nil:
		return fail(nil, "has a secret")
	case m.Method != "" && m.Method != methodNone:
		return fail(nil, "has the token_endpoint_auth_method %q; only none is supported", text.Short(m.Method))
	}
	m.Method = methodNone
	c, err := d.server.check(&m.clientMetadata)
	if err != nil {
		return fail(nil, "cannot be used: %s", faultOf(err).text)
	}
	if m.Grants == nil {
		c.Refresh = true // the document says nothing, and its client can drop the token
	}
	c.id, c.document = id, u
	return c, nil
}
