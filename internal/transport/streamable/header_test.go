package streamable_test

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
)

// TestEncodeValue is the table of 2026-07-28, basic/transports/streamable-http, Value Encoding
// (HTTP-26-032, -047, -048, -052), and similar values.
func TestEncodeValue(t *testing.T) {
	for _, tt := range []struct{ value, want string }{
		{"us-west1", "us-west1"},
		{"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{" padded ", "=?base64?IHBhZGRlZCA=?="},
		{"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
		{"", ""},
		{"a\tb", "a\tb"},
		{"\ta", "=?base64?CWE=?="},
		{"=?base64?=", "=?base64?="}, // the markers overlap: no sentinel
		{"=?BASE64?x?=", "=?BASE64?x?="},
		{"\x7f", "=?base64?fw==?="},
	} {
		got := streamable.EncodeValue(tt.value)
		if got != tt.want {
			t.Errorf("EncodeValue(%q) = %q, want %q", tt.value, got, tt.want)
		}
		if back, err := streamable.DecodeValue(got); back != tt.value || err != nil {
			t.Errorf("DecodeValue(%q) = %q, %v, want %q", got, back, err, tt.value)
		}
	}
	for _, bad := range []string{"=?base64?SGVsbG8?=", "=?base64?SGVs bG8=?=", "é", "a\nb", "=?base64?*?="} {
		if got, err := streamable.DecodeValue(bad); err == nil {
			t.Errorf("DecodeValue(%q) = %q, want an error", bad, got)
		}
	}
}

// FuzzEncodeValue: every value survives, and its encoding is a valid header value.
func FuzzEncodeValue(f *testing.F) {
	f.Add("us-west1")
	f.Add("=?base64?literal?=")
	f.Add(" \t")
	f.Fuzz(func(t *testing.T, value string) {
		sent := streamable.EncodeValue(value)
		if strings.Trim(sent, " \t") != sent || strings.ContainsFunc(sent, func(r rune) bool { return r > 0x7e || r < 0x20 && r != '\t' }) {
			t.Errorf("EncodeValue(%q) = %q, which is no header value", value, sent)
		}
		if back, err := streamable.DecodeValue(sent); back != value || err != nil {
			t.Errorf("DecodeValue(%q) = %q, %v, want %q", sent, back, err, value)
		}
	})
}
