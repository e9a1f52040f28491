package explain

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/token"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/verdict"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Caller has the flags that describe the caller of a call.
type Caller struct {
	verdict.Caller
	Claims string `placeholder:"FILE" help:"Caller with the claims of a token, as JSON."`
}

const maxFile = 1 << 20 // bytes of a file of claims or keys

// Of returns the caller as a gateway with this file sees it; nil: an anonymous one. An API key has the
// scopes and roles that the files of auth give it, unless the flags give some.
func (c *Caller) Of(f *deploy.File) (*auth.Principal, error) {
	switch {
	case c.Claims != "" && c.Principal != "":
		return nil, advice.Usagef("--principal and --claims exclude each other; keep one")
	case c.Claims != "" && len(c.Scopes)+len(c.Roles)+len(c.Claim) == 0:
		return c.ofToken(f)
	}
	p, err := c.Caller.Of()
	if err != nil || p == nil {
		return nil, err
	}
	if p.Scheme != "apikey" || len(c.Scopes)+len(c.Roles) > 0 {
		return p, nil
	}
	files, known := 0, []string{}
	for _, spec := range f.Auth {
		path, ok := strings.CutPrefix(spec, "apikeys:")
		if !ok {
			continue
		}
		files++
		path, _, _ = strings.Cut(path, ",")
		content, err := ownfile.ReadNow(path, maxFile)
		if err != nil {
			return nil, err
		}
		keys, _ := auth.ParseAPIKeys(content) // gateway check reports its faults
		for _, k := range keys {
			if k.Subject == p.Subject {
				p.Scopes, p.Roles, p.Name = k.Scopes, k.Roles, k.Name
				return p, nil
			}
			known = append(known, "apikey#"+k.Subject)
		}
	}
	if files > 0 {
		slices.Sort(known)
		return nil, advice.Usagef("no API key of %s has the subject %q; there are %s", f.Path, p.Subject, strings.Join(slices.Compact(known), ", ")).
			Hint("with --role or --scope, any subject can be explained")
	}
	return p, nil
}

// ofToken returns the caller whose token has the claims of the file. The verifiers of auth read them,
// as tokens that are signed with a key of this process.
func (c *Caller) ofToken(f *deploy.File) (*auth.Principal, error) {
	content, err := ownfile.ReadNow(c.Claims, maxFile)
	if err != nil {
		return nil, err
	}
	if err := jsonx.Valid(bytes.TrimSpace(content), 0); err != nil || jsonx.KindOf(bytes.TrimSpace(content)) != '{' {
		return nil, advice.Usagef("%s is not a JSON object with the claims of a token", c.Claims).Hint("patchbay token inspect TOKEN --json shows the claims of a token")
	}
	var twins []*auth.JWT
	for _, spec := range f.Auth {
		v, err := listen.Verifier(spec, nil)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case *auth.JWT:
			twins = append(twins, &auth.JWT{Issuer: v.Issuer, Clients: v.Clients, ScopesClaim: v.ScopesClaim, RolesClaim: v.RolesClaim})
		case *auth.Introspection:
			twins = append(twins, &auth.JWT{Issuer: v.Issuer, Clients: v.Clients, ScopesClaim: v.ScopesClaim, RolesClaim: v.RolesClaim})
		}
	}
	if twins == nil {
		twins = []*auth.JWT{{}} // those of login have the usual claims
	}
	var why error
	for _, twin := range twins {
		p, err := verified(twin, bytes.TrimSpace(content))
		if err == nil {
			return p, nil
		}
		why = err
	}
	return nil, advice.Usagef("auth of %s does not accept a token with the claims of %s: %v", f.Path, c.Claims, why)
}

// verified returns the principal of a token with claims, which a verifier accepts whenever it was issued.
func verified(by *auth.JWT, claims json.RawMessage) (*auth.Principal, error) {
	secret := []byte(rand.Text() + rand.Text())
	by.Secret = auth.Secret(secret)
	own := jsonx.Without(nil, claims, "nbf", "iat", "cnf", "aud")
	own = jsonx.With(nil, own, "exp", fmt.Append(nil, time.Now().Add(time.Hour).Unix()))
	if _, has := jsonx.Lookup(own, "iss"); !has && by.Issuer != "" {
		own = jsonx.With(nil, own, "iss", jsonx.AppendString(nil, by.Issuer))
	}
	if by.Issuer != "" {
		own, by.Audience = jsonx.With(nil, own, "aud", []byte(`"explain"`)), []string{"explain"}
	}
	signed, err := token.Sign(own, secret)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost/", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+signed)
	return by.Verify(r)
}
