package oauth

import (
	"slices"
	"strings"
)

const (
	// OfflineAccess is the scope for a refresh token (OpenID Connect Core 1.0, 11). It is not a
	// scope of a resource server (2026-07-28).
	OfflineAccess = "offline_access"

	// InsufficientScope is the error of a challenge that asks for further scopes (RFC 6750, 3.1).
	InsufficientScope = "insufficient_scope"

	// MaxScopes bounds the scopes that a server can make a client request.
	MaxScopes = 100
)

// ParseScopes splits a list of scopes at its blanks. It drops words that are not scopes,
// repetitions and scopes beyond [MaxScopes]. It returns nil if there are no words.
func ParseScopes(s string) []string {
	var list []string
	for name := range strings.FieldsSeq(s) {
		if IsScope(name) {
			list = Union(list, []string{name})
		}
	}
	return list
}

// IsScope reports whether a word is a valid scope (RFC 6749, 3.3) of at most 256 bytes.
func IsScope(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 256
}

// Union returns a with the elements of b that it lacks, in order, up to [MaxScopes]. It does not
// change a.
func Union(a, b []string) []string {
	out := a[:len(a):len(a)]
	for _, s := range b {
		if !slices.Contains(out, s) && len(out) < MaxScopes {
			out = append(out, s)
		}
	}
	return out
}

// IsHeaderToken reports whether s can stand in a header as a token: printable ASCII without blanks.
func IsHeaderToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return s != ""
}
