package oauth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

const (
	maxDocument  = 256 << 10 // bytes of metadata, and of the answers from an authorization server
	maxRedirects = 3         // of metadata, within one origin

	// Timeout bounds one exchange.
	Timeout = 30 * time.Second

	// Revision is the protocol revision that requests for metadata name until client and server
	// have agreed on one.
	Revision = "2025-11-25"
)

// ErrAbsent says that a document does not exist.
var ErrAbsent = errors.New("there is none")

// Fetcher reads documents from other hosts, and posts forms to them, on behalf of one server. It
// may be used by several goroutines at once.
type Fetcher struct {
	Server *url.URL // on whose behalf; not changed after NewFetcher
	client *http.Client
}

// NewFetcher returns a Fetcher that sends requests with base; base then decides about addresses
// itself. Nil: connections of its own, see [Guarded].
func NewFetcher(server *url.URL, base http.RoundTripper) *Fetcher {
	if base == nil {
		base = Guarded(server, nil)
	}
	return &Fetcher{Server: server, client: &http.Client{Transport: base, Timeout: Timeout, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case via[0].Method != http.MethodGet:
			return http.ErrUseLastResponse // a form with secrets goes nowhere else
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case Origin(req.URL) != Origin(via[0].URL):
			return fmt.Errorf("a redirect leads to another origin, %q", text.Short(Origin(req.URL)))
		}
		return nil
	}}}
}

// Get reads a JSON document. The error is [ErrAbsent] if there is none: for a 4xx status other than
// 408 and 429, and if the answer is not JSON.
func (f *Fetcher) Get(ctx context.Context, u *url.URL, revision string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("MCP-Protocol-Version", revision)
	r, err := f.do(req)
	if err != nil {
		return err
	}
	switch status := r.Status; {
	case status == http.StatusOK && r.isJSON():
		return decode(u, r.Body, into)
	case status == http.StatusOK, status/100 == 4 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests:
		return ErrAbsent // some servers answer every path with a web page
	}
	return fmt.Errorf("%s: HTTP %d; try again later", text.Short(u.String()), r.Status)
}

// Document reads a JSON document of at most most bytes. It follows no redirect, and a status other
// than 200 is an error.
func (f *Fetcher) Document(ctx context.Context, u *url.URL, most int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	straight := *f.client
	straight.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := (&Fetcher{f.Server, &straight}).do(req)
	switch {
	case err != nil:
		return nil, err
	case r.Status != http.StatusOK:
		return nil, fmt.Errorf("%s: HTTP %d", text.Short(u.String()), r.Status)
	case !r.isJSON():
		return nil, fmt.Errorf("%s: the document is not JSON", text.Short(u.String()))
	case len(r.Body) > most:
		return nil, fmt.Errorf("%s: the document has more than %d bytes", text.Short(u.String()), most)
	}
	return r.Body, nil
}

// GetWith reads a JSON document with a Bearer token. A status other than 200 is an error.
func (f *Fetcher) GetWith(ctx context.Context, u *url.URL, token string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	r, err := f.do(req)
	switch {
	case err != nil:
		return err
	case r.Status != http.StatusOK || !r.isJSON():
		return fmt.Errorf("%s: HTTP %d, and no JSON document", text.Short(u.String()), r.Status)
	}
	return decode(u, r.Body, into)
}

func decode(u *url.URL, body []byte, into any) error {
	if err := jsonx.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: invalid document: %w", text.Short(u.String()), err)
	}
	return nil
}

// Issuer reads the metadata of an authorization server from the first of its well-known places that
// has it: those of RFC 8414 come before that of OpenID Connect Discovery, which an issuer with a
// path has twice. The metadata must name the issuer, character by character (RFC 8414, 3.3).
func (f *Fetcher) Issuer(ctx context.Context, issuer, revision string, into any) error {
	u, err := url.Parse(issuer)
	if err != nil {
		return err
	}
	for _, place := range IssuerPlaces(u) {
		at := u.ResolveReference(place)
		var document json.RawMessage
		switch err := f.Get(ctx, at, revision, &document); {
		case errors.Is(err, ErrAbsent):
			continue
		case err != nil:
			return err
		}
		var named struct {
			Issuer string `json:"issuer"`
		}
		if err := decode(at, document, &named); err != nil {
			return err
		}
		if named.Issuer != issuer {
			return fmt.Errorf("its metadata is for %q", text.Short(named.Issuer))
		}
		return decode(at, document, into)
	}
	return errors.New("it has no metadata at the well-known locations")
}

// IssuerPlaces returns the possible URLs of an issuer's metadata, in order.
func IssuerPlaces(issuer *url.URL) []*url.URL {
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	places := []*url.URL{WellKnown(oauth, issuer)[0], WellKnown(openid, issuer)[0]}
	if path := strings.TrimSuffix(issuer.Path, "/"); path != "" {
		places = append(places, &url.URL{Path: path + openid, RawPath: strings.TrimSuffix(issuer.EscapedPath(), "/") + openid})
	}
	return places
}

// Reply is the answer to one request, with its whole body.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

func (r *Reply) isJSON() bool {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// Refusal returns the error code and description of a refused request (RFC 6749, 5.2), bounded, for
// an error text. Both are "" if the body is not JSON.
func (r *Reply) Refusal() (code, description string) {
	var e struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = jsonx.Unmarshal(r.Body, &e) // a web page adds nothing to the status
	return text.Short(e.Code), text.Short(e.Description)
}

// Post sends a body to an endpoint, with the header h, which Post changes. A Reply of any status is
// not an error.
func (f *Fetcher) Post(ctx context.Context, u *url.URL, h http.Header, body []byte) (*Reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h.Set("Accept", "application/json")
	req.Header = h
	return f.do(req)
}

// FormHeader returns the header of a form.
func FormHeader() http.Header {
	return http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
}

// SetBasic puts the credentials of a client into a header (RFC 6749, 2.3.1).
func SetBasic(h http.Header, id, secret string) {
	pair := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
}

func (f *Fetcher) do(req *http.Request) (*Reply, error) {
	res, err := f.client.Do(req)
	if err != nil {
		var ue *url.Error // its URL may be as long as a server likes
		if errors.As(err, &ue) {
			err = fmt.Errorf("%s %q: %w", ue.Op, text.Short(ue.URL), ue.Err)
		}
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", text.Short(req.URL.String()), err)
	case len(body) > maxDocument:
		return nil, fmt.Errorf("%s: the answer has more than %d bytes", text.Short(req.URL.String()), maxDocument)
	}
	return &Reply{res.StatusCode, res.Header, body}, nil
}
