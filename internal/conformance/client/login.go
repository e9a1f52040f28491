package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// login logs in at the suite's servers. Credentials that the scenario's context gives are
// for whatever issuer there is: its name is not known in advance.
func login(server, given string) *auth.Transport {
	var known struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	_ = json.Unmarshal([]byte(given), &known) // most scenarios give nothing
	return &auth.Transport{
		Server:      server,
		RedirectURL: "http://127.0.0.1:8765/callback", // nobody listens: visit reads where the page leads
		Visit:       visit,
		DocumentURL: "https://conformance-test.local/client-metadata.json",
		Registered: func(context.Context, string, string) (*auth.Credentials, error) {
			if known.ID == "" {
				return nil, nil
			}
			return &auth.Credentials{ID: known.ID, Secret: known.Secret}, nil
		},
	}
}

// visit is a user who agrees to everything: the page sends the browser back at once.
func visit(ctx context.Context, page string) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return nil, fmt.Errorf("the page answers HTTP %d and leads nowhere", res.StatusCode)
	}
	return back, nil
}

// forbidden turns round a scenario in which the server must have the last word: 403.
func forbidden(err error) error {
	var refused *mcp.HTTPError
	switch {
	case err == nil:
		return errors.New("the server let us in, though it refuses everybody")
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return nil
	}
	return err
}
