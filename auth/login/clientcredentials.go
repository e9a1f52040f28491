package login

import (
	"context"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// ClientCredentials is the [Grant] of a program that acts for itself, without a user.
// [Transport.Registered] must return its credentials, with a Key or a Secret.
//
// Specification: extensions/auth, oauth-client-credentials.
type ClientCredentials struct{}

func (*ClientCredentials) check() error { return nil }

func (*ClientCredentials) get(ctx context.Context, t *Transport, p *place, want []string) (*token, error) {
	id, err := t.given(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case id == nil || id.Secret == "" && id.Key == nil:
		return nil, errors.New("the client credentials grant needs a Key or a Secret of a client: give it in Registered")
	}
	k, err := t.request(ctx, p, id, grantForm(grantCredentials, want), nil)
	if err != nil {
		return nil, fmt.Errorf("token endpoint %q: %w", text.Short(p.token.String()), err)
	}
	return k, nil
}
