package screen

import (
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Styles of JSON.
const (
	styleName   = "34"
	styleString = "32"
	styleNumber = "36"
	styleWord   = "35" // true, false, null
)

// PaintJSON colours indented JSON. Its text must have been made visible.
func PaintJSON(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		n, style := 1, ""
		switch c := s[i]; {
		case c == '"':
			n, style = stringLength(s[i:]), styleString
			if strings.HasPrefix(s[i+n:], ":") {
				style = styleName
			}
		case c == '-' || c >= '0' && c <= '9':
			n, style = len(s[i:])-len(strings.TrimLeft(s[i:], "-+.eE0123456789")), styleNumber
		case c >= 'a' && c <= 'z':
			n, style = len(s[i:])-len(strings.TrimLeft(s[i:], "abcdefghijklmnopqrstuvwxyz")), styleWord
		}
		out.WriteString(Paint(s[i:i+n], style, true))
		i += n
	}
	return out.String()
}

// stringLength returns the length of the JSON string at the start of s.
func stringLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// IsJSON reports whether a text is a JSON object or array.
func IsJSON(s string) bool {
	t := strings.TrimSpace(s)
	return len(t) > 1 && (t[0] == '{' || t[0] == '[') && jsonx.Valid([]byte(t), 0) == nil
}
