package login

import (
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
)

// challenge is what the WWW-Authenticate headers of a refusal ask for.
type challenge struct {
	errorCode string   // such as insufficient_scope
	scope     []string // nil if none was named
	metadata  string   // URL of the protected resource metadata; empty if none was named
	bound     bool     // the server takes DPoP and not Bearer: tokens must be bound to a key
	nonce     bool     // a proof lacks the nonce of the server (RFC 9449, 9)
}

// readChallenge finds the Bearer or DPoP challenge in the WWW-Authenticate headers of a refusal:
// the first that names the metadata, else the first.
//
// Specification: RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1; RFC 9449, 7.1.
func readChallenge(h http.Header) challenge {
	var found challenge
	seen, bearer, dpop, nonce := false, false, false, false
	for _, line := range h.Values("WWW-Authenticate") {
		for _, c := range parseChallenges(line) {
			switch {
			case strings.EqualFold(c.scheme, "Bearer"):
				bearer = true
			case strings.EqualFold(c.scheme, schemeDPoP):
				dpop, nonce = true, nonce || c.params["error"] == useNonce
			default:
				continue
			}
			if seen && (c.params["resource_metadata"] == "" || found.metadata != "") {
				continue
			}
			found = challenge{errorCode: c.params["error"], scope: oauth.ParseScopes(c.params["scope"]), metadata: c.params["resource_metadata"]}
			seen = true
		}
	}
	found.bound, found.nonce = dpop && !bearer, nonce
	return found
}

// schemeParams is one challenge of a header.
type schemeParams struct {
	scheme string
	params map[string]string // by lower-case name; the first of each counts
}

// parseChallenges reads a WWW-Authenticate header. Commas separate both challenges and parameters:
// a word without "=" after it begins a challenge. The rest of a header behind a syntax error is
// dropped.
func parseChallenges(s string) []schemeParams {
	var list []schemeParams
	for {
		s = strings.TrimLeft(s, " \t,")
		word, rest := cutToken(s)
		if word == "" {
			return list
		}
		after := strings.TrimLeft(rest, " \t")
		if !strings.HasPrefix(after, "=") {
			list = append(list, schemeParams{word, map[string]string{}})
			s = skipToken68(after)
			if len(after) == len(rest) && after != "" && after[0] != ',' {
				return list // neither a space nor a comma after the scheme
			}
			continue
		}
		value, rest, ok := cutValue(strings.TrimLeft(after[1:], " \t"))
		if !ok || len(list) == 0 {
			return list
		}
		params, name := list[len(list)-1].params, strings.ToLower(word)
		if _, twice := params[name]; !twice {
			params[name] = value
		}
		s = strings.TrimLeft(rest, " \t")
		if s != "" && s[0] != ',' {
			return list
		}
	}
}

// skipToken68 skips a token68, which may follow a scheme in place of parameters (RFC 9110, 11.2).
func skipToken68(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool { return !isTokenByte(byte(min(r, 127))) && r != '/' })
	if end < 0 {
		end = len(s)
	}
	rest := strings.TrimLeft(strings.TrimLeft(s[end:], "="), " \t")
	if rest == "" || rest[0] == ',' {
		return rest
	}
	return s
}

func cutToken(s string) (token, rest string) {
	n := 0
	for n < len(s) && isTokenByte(s[n]) {
		n++
	}
	return s[:n], s[n:]
}

// isTokenByte reports whether c can be in a token (RFC 9110, 5.6.2).
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// cutValue reads a token or a quoted string.
func cutValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		value, rest = cutToken(s)
		return value, rest, value != ""
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
