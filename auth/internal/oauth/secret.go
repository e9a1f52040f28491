package oauth

import (
	"fmt"
	"log/slog"
)

// Secret is text that is not printed: not by package fmt with any verb, not as JSON and not in a
// log. Conversion to string returns the text.
type Secret string

const redacted = "[redacted]"

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Format implements fmt.Formatter, because verbs such as %x do not call String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }
