package openapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/zone"
)

// Load reads a document from a file, or from an http or https URL without a user name at a public address or, with private, at any but a
// link-local one. Nil is the system's trust in certificates. Source is the URL at which it was found, for [Options.Source];
// empty for a file.
func Load(ctx context.Context, from string, private bool, secure *tls.Config) (data []byte, source string, err error) {
	if !strings.HasPrefix(from, "http://") && !strings.HasPrefix(from, "https://") {
		f, err := os.Open(from)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, MaxBytes+1))
		return data, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, "", err
	}
	if req.URL.User != nil {
		return nil, "", errors.New("the URL of the document has a user name or password in it; download the document with your credentials, and name the file")
	}
	req.Header.Set(hop.Header, hop.Self)
	req.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	guard := &zone.Guard{Private: private}
	transport := &http.Transport{DialContext: guard.Dial, TLSClientConfig: secure, TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10}
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		r, ok := zone.IsRefusal(err)
		switch {
		case ok && r.Zone < zone.Link:
			return nil, "", fmt.Errorf("%v; with --allow-private documents are read from there, too", r)
		case ok:
			return nil, "", fmt.Errorf("%w; documents are not read from there", r)
		}
		return nil, "", err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusLoopDetected:
		return nil, "", fmt.Errorf("%s: %w", from, hop.ErrLoop)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, "", fmt.Errorf("%s answered %s; download the document with your credentials, and name the file", from, res.Status)
	default:
		return nil, "", fmt.Errorf("%s answered %s", from, res.Status)
	}
	data, err = io.ReadAll(io.LimitReader(res.Body, MaxBytes+1))
	if err == nil && len(data) == 0 {
		err = errors.New("the answer is empty")
	}
	return data, res.Request.URL.String(), err
}
