// Package token explains a credential to a person: its claims, its times and its weaknesses. It also
// makes keys and JWTs for tests.
//
// # Guarantees
//
//   - Nothing is sent anywhere, and no signature is checked: [Inspect] returns unverified claims.
//   - A warning quotes at most 2,000 bytes of a value from the token.
package token

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Info is the content of a token.
type Info struct {
	Kind     string          `json:"kind"` // "jwt", "apikey" (of Patchbay) or "opaque"
	Header   json.RawMessage `json:"header,omitempty"`
	Claims   json.RawMessage `json:"claims,omitempty"`
	Warnings []string        `json:"warnings"` // weaknesses, one sentence each; never nil

	// Times are iat, nbf and exp in words, one per line, for people.
	Times []string `json:"-"`
}

// Inspect reads a token as of now. A text of unknown form is opaque.
func Inspect(text string, now time.Time) *Info {
	t := &Info{Kind: "opaque", Warnings: []string{}}
	warn := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
	if strings.HasPrefix(text, "pb_") {
		t.Kind = "apikey"
		return t
	}
	parts := strings.Split(text, ".")
	if len(parts) == 5 {
		warn("five parts: it may be an encrypted JWT (JWE), which --auth does not accept")
	}
	if len(parts) != 3 {
		return t
	}
	var header, claims map[string]any
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[i], "="))
		if err != nil || jsonx.Unmarshal(raw, into) != nil || *into == nil {
			warn("three parts, but not a JWT: part %d is not JSON in base64url", i+1)
			return t
		}
		if i == 0 {
			t.Header = raw
		} else {
			t.Claims = raw
		}
	}
	t.Kind = "jwt"

	alg, _ := header["alg"].(string)
	switch {
	case alg == "" || strings.EqualFold(alg, "none"):
		warn("not signed (alg %q): anyone can forge it", screen.Clip(alg))
	case parts[2] == "":
		warn("missing signature")
	case strings.HasPrefix(alg, "HS"):
		warn("%s: a server that can check it can also forge it; share the secret with only one server", alg)
	}
	for _, name := range []string{"jwk", "jku", "x5u", "x5c"} {
		if header[name] != nil {
			warn("the header has its own key (%s), which servers must not trust", name)
		}
	}
	if typ, _ := header["typ"].(string); typ != "" && !strings.EqualFold(typ, "JWT") && !strings.EqualFold(strings.TrimPrefix(strings.ToLower(typ), "application/"), "at+jwt") {
		warn("type %q instead of that of an access token (at+jwt)", screen.Clip(typ))
	}
	if claims["nonce"] != nil || claims["at_hash"] != nil {
		warn("it looks like an ID token, which is for the client, not for servers")
	}
	for _, missing := range []struct{ name, text string }{
		{"iss", "no issuer (iss)"},
		{"aud", "no audience (aud): a server that gets it can use it elsewhere"},
		{"sub", "no subject (sub)"},
	} {
		if claims[missing.name] == nil {
			warn("%s", missing.text)
		}
	}
	if iss, _ := claims["iss"].(string); iss != "" {
		if u, err := url.Parse(iss); err != nil || u.Scheme != "https" {
			warn("the issuer is not an https URL")
		}
	}
	if claims["cnf"] != nil {
		warn("bound to a key (cnf): refused as a plain Bearer token, except with client certificates")
	}
	t.readTimes(claims, now, warn)
	return t
}

// readTimes describes the times of claims.
func (t *Info) readTimes(claims map[string]any, now time.Time, warn func(string, ...any)) {
	at := map[string]time.Time{}
	for _, c := range []struct{ name, verb string }{{"iat", "made"}, {"nbf", "valid from"}, {"exp", "expires"}} {
		v, there := claims[c.name]
		if !there {
			continue
		}
		s, ok := v.(float64)
		if !ok || s < 0 || s > 1<<40 {
			warn("%s is not a time in seconds", c.name)
			continue
		}
		at[c.name] = time.Unix(int64(s), 0).UTC()
		t.Times = append(t.Times, fmt.Sprintf("%-9s  %s, %s", c.verb, at[c.name].Format("2006-01-02 15:04:05 MST"), inWords(at[c.name].Sub(now))))
	}
	exp, ends := at["exp"]
	switch {
	case claims["exp"] == nil:
		warn("it never expires (no exp)")
	case ends && !now.Before(exp):
		warn("it has expired")
	case ends && at["iat"].Unix() > 0 && exp.Sub(at["iat"]) > 24*time.Hour, ends && at["iat"].Unix() <= 0 && exp.Sub(now) > 24*time.Hour:
		warn("valid for more than a day, also for a thief")
	}
	if nbf := at["nbf"]; nbf.After(now) {
		warn("it is not valid yet")
	}
	if at["iat"].After(now.Add(time.Minute)) {
		warn("it was made in the future; a clock is wrong")
	}
}

// inWords describes a time from now: "in 2 hours", "3 days ago".
func inWords(d time.Duration) string {
	past := d < 0
	d = d.Abs()
	n, unit := int64(d/time.Second), "second"
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= u.size {
			n, unit = int64((d+u.size/2)/u.size), u.name
			break
		}
	}
	if n != 1 {
		unit += "s"
	}
	if past {
		return fmt.Sprintf("%d %s ago", n, unit)
	}
	return fmt.Sprintf("in %d %s", n, unit)
}
