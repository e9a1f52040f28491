package login

import "github.com/patchbay-dev/patchbay/auth/internal/oauth"

// Secret is text that does not print itself: not by package fmt with any verb, not as JSON
// and not in a log. Conversion to string gives the text. It is the Secret of package auth.
type Secret = oauth.Secret
