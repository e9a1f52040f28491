package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

var tokenInspectVerb = verb{
	name: "inspect", summary: "Show the claims of a token.", usage: "[TOKEN]",
	examples: []string{"patchbay token inspect eyJhbGciOi...", "patchbay token inspect --json < token.txt"},
	details: `Shows the content of a token or key, and its weaknesses. The signature is not
checked. Without TOKEN the token is read from standard input.`,
	command: func() command { return new(tokenInspectCmd) },
}

type tokenInspectCmd struct {
	Token string `arg:"" optional:"" help:"The token; default: standard input."`
}

// inspectedToken is what a token says.
type inspectedToken struct {
	Kind     string          `json:"kind"` // "jwt", "apikey" or "opaque"
	Header   json.RawMessage `json:"header,omitempty"`
	Claims   json.RawMessage `json:"claims,omitempty"`
	Warnings []string        `json:"warnings"`

	times []string // of the claims, in words
}

// Run shows a token. Nothing is sent anywhere, and the signature is not looked at.
func (c *tokenInspectCmd) Run(a *app) error {
	text := c.Token
	if text == "" || text == "-" {
		var err error
		if text, err = a.secretInput("token"); err != nil {
			return err
		}
	}
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "Bearer "); ok {
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return usagef("there is no token").hint("patchbay token inspect < token.txt")
	}
	t := inspectToken(text, time.Now())
	if a.JSON {
		raw, err := jsonx.Marshal(t)
		if err != nil {
			return err
		}
		a.print(string(raw))
		return nil
	}
	switch t.Kind {
	case "apikey":
		id, _, _ := strings.Cut(strings.TrimPrefix(text, "pb_"), "_")
		a.print("an API key of Patchbay, " + a.shown(clip(id)) + "; whose it is stands in the file of keys")
	case "opaque":
		a.print("a text that says nothing to anybody but its issuer")
	default:
		a.print("header")
		a.print(a.shownJSON(t.Header))
		a.print("claims")
		a.print(a.shownJSON(t.Claims))
		for _, line := range t.times {
			a.print(a.shown(line))
		}
		a.print("The signature was not looked at.")
	}
	for _, w := range t.Warnings {
		a.print(a.paint("warning: ", "33") + a.shown(w))
	}
	return nil
}

// inspectToken reads a token.
func inspectToken(text string, now time.Time) *inspectedToken {
	t := &inspectedToken{Kind: "opaque", Warnings: []string{}}
	warn := func(format string, args ...any) { t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...)) }
	if strings.HasPrefix(text, "pb_") {
		t.Kind = "apikey"
		return t
	}
	parts := strings.Split(text, ".")
	if len(parts) == 5 {
		warn("five parts: it may be an encrypted JWT (JWE), which servers here do not take")
	}
	if len(parts) != 3 {
		return t
	}
	var header, claims map[string]any
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[i], "="))
		if err != nil || jsonx.Unmarshal(raw, into) != nil || *into == nil {
			warn("three parts, but no JWT: part %d is not JSON in base64url", i+1)
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
		warn("it is not signed (alg %q): anybody can make it", clip(alg))
	case parts[2] == "":
		warn("its signature is missing")
	case strings.HasPrefix(alg, "HS"):
		warn("%s: whoever can check it can make it too; keep the secret to one server", alg)
	}
	for _, name := range []string{"jwk", "jku", "x5u", "x5c"} {
		if header[name] != nil {
			warn("the header brings a key of its own (%s), which servers must not trust", name)
		}
	}
	if typ, _ := header["typ"].(string); typ != "" && !strings.EqualFold(typ, "JWT") && !strings.EqualFold(strings.TrimPrefix(strings.ToLower(typ), "application/"), "at+jwt") {
		warn("its type is %q, and not that of an access token (at+jwt)", clip(typ))
	}
	if claims["nonce"] != nil || claims["at_hash"] != nil {
		warn("it looks like an ID token, which is for the client and not for servers")
	}
	for _, missing := range []struct{ name, text string }{
		{"iss", "nobody says who gives it (iss)"},
		{"aud", "it is for anybody (no aud): a server that gets it can use it elsewhere"},
		{"sub", "nobody says whose it is (sub)"},
	} {
		if claims[missing.name] == nil {
			warn("%s", missing.text)
		}
	}
	if iss, _ := claims["iss"].(string); iss != "" {
		if u, err := url.Parse(iss); err != nil || u.Scheme != "https" {
			warn("its issuer is not an https URL")
		}
	}
	if claims["cnf"] != nil {
		warn("it is bound to a key (cnf); as a mere Bearer token it is refused, but for client certificates")
	}
	t.readTimes(claims, now, warn)
	return t
}

// readTimes puts the times of claims into words.
func (t *inspectedToken) readTimes(claims map[string]any, now time.Time, warn func(string, ...any)) {
	at := map[string]time.Time{}
	for _, c := range []struct{ name, verb string }{{"iat", "made"}, {"nbf", "good from"}, {"exp", "expires"}} {
		v, there := claims[c.name]
		if !there {
			continue
		}
		s, ok := v.(float64)
		if !ok || s < 0 || s > 1<<40 {
			warn("%s is no time in seconds", c.name)
			continue
		}
		at[c.name] = time.Unix(int64(s), 0).UTC()
		t.times = append(t.times, fmt.Sprintf("%-9s  %s, %s", c.verb, at[c.name].Format("2006-01-02 15:04:05 MST"), inWords(at[c.name].Sub(now))))
	}
	exp, ends := at["exp"]
	switch {
	case claims["exp"] == nil:
		warn("it never expires (no exp)")
	case ends && !now.Before(exp):
		warn("it has expired")
	case ends && at["iat"].Unix() > 0 && exp.Sub(at["iat"]) > 24*time.Hour, ends && at["iat"].Unix() <= 0 && exp.Sub(now) > 24*time.Hour:
		warn("it is good for more than a day; who steals it can use it as long")
	}
	if nbf := at["nbf"]; nbf.After(now) {
		warn("it is not good yet")
	}
	if at["iat"].After(now.Add(time.Minute)) {
		warn("it was made in the future; a clock is wrong")
	}
}

// inWords is a time from now: "in 2 hours", "3 days ago".
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
