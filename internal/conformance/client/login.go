package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/mcp"
)

// known holds the client's data in the scenario's context.
type known struct {
	ID       string `json:"client_id"`
	Secret   string `json:"client_secret"`
	Key      string `json:"private_key_pem"`
	IDPID    string `json:"idp_client_id"`
	IDPToken string `json:"idp_id_token"`
	IDP      string `json:"idp_issuer"`
	Workload string `json:"valid_jwt"`
}

// transport logs in at the suite's servers. Credentials in the scenario's context are for any
// issuer, because its name is not known in advance.
func transport(server, scenario, given string) (*login.Transport, error) {
	var k known
	_ = json.Unmarshal([]byte(given), &k) // most scenarios give nothing
	self := login.Credentials{ID: k.ID, Secret: k.Secret}
	if k.Key != "" {
		var err error
		if self.Key, err = login.ParseClientKey("", []byte(k.Key)); err != nil {
			return nil, err
		}
	}
	t := &login.Transport{
		Server:      server,
		RedirectURL: "http://127.0.0.1:8765/callback", // nothing listens there: visit reads the redirect
		Visit:       visit,
		DocumentURL: "https://conformance-test.local/client-metadata.json",
		Registered: func(context.Context, string, string) (*login.Credentials, error) {
			if self.ID == "" {
				return nil, nil
			}
			return &self, nil
		},
	}
	switch {
	case strings.HasPrefix(scenario, "auth/client-credentials-"):
		t.Grant = &login.ClientCredentials{}
	case k.IDP != "":
		t.Grant = &login.Enterprise{
			Issuer: k.IDP, Client: login.Credentials{ID: k.IDPID},
			Subject: func(context.Context) (string, error) { return k.IDPToken, nil },
		}
	case k.Workload != "":
		t.Grant = &login.Workload{Token: func(context.Context, string) (string, error) { return k.Workload, nil }}
	case scenario == "auth/offline-access-scope":
		t.DocumentURL = "" // the scenario expects a registration, and the document is not published
	}
	return t, nil
}

// visit simulates a user who agrees. The page redirects the browser at once.
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
		return nil, fmt.Errorf("the page answers HTTP %d without a redirect", res.StatusCode)
	}
	return back, nil
}

// deceptive are the scenarios in which a login would be a mistake.
var deceptive = map[string]bool{
	"auth/resource-mismatch":        true,
	"auth/iss-supported-missing":    true,
	"auth/iss-wrong-issuer":         true,
	"auth/iss-unexpected":           true,
	"auth/iss-normalized":           true,
	"auth/metadata-issuer-mismatch": true,
}

// refused inverts the result of a scenario in which the client must not log in. The suite checks
// how far it went.
func refused(err error) error {
	if err == nil {
		return errors.New("the client logged in despite wrong data")
	}
	return nil
}

// forbidden inverts the result of a scenario in which the server must answer 403.
func forbidden(err error) error {
	var refused *mcp.HTTPError
	switch {
	case err == nil:
		return errors.New("the server accepted the client, but must refuse it")
	case errors.As(err, &refused) && refused.Status == http.StatusForbidden:
		return nil
	}
	return err
}
