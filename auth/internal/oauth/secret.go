package oauth

import (
	"fmt"
	"log/slog"
)

// Secret is text that does not print itself: not by package fmt with any verb, not as JSON
// and not in a log. Conversion to string gives the text.
type Secret string

const redacted = "[redacted]"

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Format implements fmt.Formatter: verbs such as %x do not ask String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }
