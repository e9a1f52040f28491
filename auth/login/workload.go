package login

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Workload is the [Grant] of a program whose platform issues a JWT for it. The JWT is exchanged
// for an access token. One of Token and File is required. [Transport.Registered] may name a
// client; without one the JWT is all that is sent.
//
// A JWT that is refused is not sent a second time, and no other way is tried.
//
// Specification: RFC 7523, 2.1.
type Workload struct {
	// Token returns a JWT for an audience: the issuer of the authorization server. It is called
	// for each access token.
	Token func(ctx context.Context, audience string) (string, error)

	// File holds the JWT; the platform replaces it before it expires. It is read for each access
	// token.
	File string

	// Issuer is the only authorization server that gets the JWT. Empty: the one that the "aud" of
	// the JWT names. The MCP server names the authorization server, and a server that has the JWT
	// can act as this program.
	Issuer string
}

const maxAssertion = 64 << 10 // bytes of a JWT

func (w *Workload) check() error {
	if (w.Token == nil) == (w.File == "") {
		return errors.New("Workload: set one of Token and File")
	}
	return nil
}

func (w *Workload) get(ctx context.Context, t *Transport, p *place, want []string) (*token, error) {
	if w.Issuer != "" && w.Issuer != p.issuer {
		return nil, fmt.Errorf("the server names the authorization server %q, but this workload has a JWT for %q only", text.Short(p.issuer), text.Short(w.Issuer))
	}
	id, err := t.given(ctx, p)
	if err != nil {
		return nil, err
	}
	if id == nil {
		id = &identity{method: methodNone}
	}
	assertion, err := w.assertion(ctx, p.issuer)
	if err != nil {
		return nil, fmt.Errorf("the JWT of this workload: %w", err)
	}
	if w.Issuer == "" && !madeFor(assertion, p) {
		return nil, fmt.Errorf("the JWT of this workload is not issued for %q; set Issuer to send it there", text.Short(p.issuer))
	}
	form := grantForm(grantJWT, want)
	form.Set("assertion", assertion)
	k, err := t.request(ctx, p, id, form, nil)
	if err != nil {
		return nil, fmt.Errorf("token endpoint %q: %w", text.Short(p.token.String()), err)
	}
	return k, nil
}

func (w *Workload) assertion(ctx context.Context, audience string) (string, error) {
	if w.Token != nil {
		s, err := w.Token(ctx, audience)
		if err == nil && !oauth.IsHeaderToken(s) {
			err = errors.New("it is empty or contains spaces")
		}
		return s, err
	}
	f, err := os.Open(w.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxAssertion+1))
	raw = bytes.TrimSpace(raw)
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxAssertion || !oauth.IsHeaderToken(string(raw)):
		return "", fmt.Errorf("%q does not hold one JWT of at most %d bytes", w.File, maxAssertion)
	}
	return string(raw), nil
}

// madeFor reports whether an authorization server is an audience of a JWT, by its issuer, with or
// without a slash at the end, or by its token endpoint (RFC 7523, 3). It does not check the
// signature, which that server does.
func madeFor(assertion string, p *place) bool {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var c struct {
		Audience json.RawMessage `json:"aud"`
	}
	if jsonx.Unmarshal(raw, &c) != nil {
		return false
	}
	var list []string
	if jsonx.Unmarshal(c.Audience, &list) != nil {
		var one string
		if jsonx.Unmarshal(c.Audience, &one) != nil {
			return false
		}
		list = []string{one}
	}
	for _, aud := range list {
		if strings.TrimSuffix(aud, "/") == strings.TrimSuffix(p.issuer, "/") || aud == p.token.String() {
			return true
		}
	}
	return false
}
