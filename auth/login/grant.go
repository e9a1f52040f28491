package login

import (
	"context"
	"net/url"
	"strings"
)

// A Grant is a way to get tokens: [ClientCredentials], [Enterprise], [Workload] or [Device]. A
// [Transport] without one sends the user to a page in a browser. Of the grants only Device
// registers a client by itself.
type Grant interface {
	// get gets a token from an authorization server, with the scopes that are wanted.
	get(ctx context.Context, t *Transport, p *place, want []string) (*token, error)
	// check tells what is wrong with the fields, before the first request.
	check() error
}

// Names of grants in token requests.
const (
	grantCode        = "authorization_code"
	grantRefresh     = "refresh_token"
	grantCredentials = "client_credentials"
	grantJWT         = "urn:ietf:params:oauth:grant-type:jwt-bearer"     // RFC 7523, 2.1
	grantExchange    = "urn:ietf:params:oauth:grant-type:token-exchange" // RFC 8693, 2.1
	grantDevice      = "urn:ietf:params:oauth:grant-type:device_code"    // RFC 8628, 3.4
)

// grantForm is the form of a token request.
func grantForm(grant string, want []string) url.Values {
	form := url.Values{"grant_type": {grant}}
	if len(want) > 0 {
		form.Set("scope", strings.Join(want, " "))
	}
	return form
}
