package login

import "github.com/patchbay-dev/patchbay/auth/internal/oauth"

// Secret is text that does not print itself: not by package fmt with any verb, not as JSON and not
// in a log. Conversion to string gives the text. It is the same type as auth.Secret.
type Secret = oauth.Secret
