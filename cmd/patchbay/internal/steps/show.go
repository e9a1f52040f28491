package steps

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// hidden stands for what is not shown.
const hidden = "(hidden)"

// Claim is a member of the payload of a token.
type Claim struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// harmless are the names of members of forms, queries and answers whose values are shown. Everything else may be a secret.
var harmless = setOf(`client_id client_name client_uri client_id_issued_at client_secret_expires_at redirect_uri redirect_uris
	response_type response_types grant_type grant_types token_endpoint_auth_method application_type scope resource audience
	code_challenge_method prompt iss error error_description error_uri token_type expires_in issued_token_type client_assertion_type`)

// harmlessHeaders are those whose values are shown.
var harmlessHeaders = setOf("Accept Allow Cache-Control Content-Length Content-Type Mcp-Protocol-Version Retry-After Www-Authenticate")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// sentText writes what was sent.
func (x *exchange) sentText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", x.method, shownURL(x.url))
	showHeaders(&b, x.header)
	if len(x.body) > 0 {
		b.WriteString("\n" + shownBody(x.header.Get("Content-Type"), x.body, false, false))
	}
	return strings.TrimRight(b.String(), "\n")
}

// gotText writes what was received.
func (x *exchange) gotText() string {
	if x.browser != nil {
		return "the browser came back to " + shownURL(x.browser)
	}
	if x.status == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", x.status, http.StatusText(x.status))
	showHeaders(&b, x.answer)
	switch {
	case x.unread:
		b.WriteString("\n(a stream of events, which is not shown)")
	case len(x.back) > 0:
		b.WriteString("\n" + shownBody(x.answer.Get("Content-Type"), x.back, x.cut, x.method == http.MethodGet))
	}
	return strings.TrimRight(b.String(), "\n")
}

// shownURL writes a URL without its secrets.
func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.Fragment, shown.RawQuery = nil, "", ""
	line := shown.String()
	if u.RawQuery != "" {
		line += "\n  ?" + strings.Join(shownValues(u.Query()), "\n  &")
	}
	return line
}

func shownValues(q url.Values) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[name] {
			if !harmless[name] {
				v = hidden
			}
			list = append(list, name+"="+v)
		}
	}
	return list
}

func showHeaders(b *strings.Builder, h http.Header) {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		scheme, _, _ := strings.Cut(h.Get(name), " ")
		switch {
		case harmlessHeaders[name]:
			for _, v := range h[name] {
				fmt.Fprintf(b, "%s: %s\n", name, v)
			}
		case name == "Authorization" && (scheme == "Bearer" || scheme == "DPoP" || scheme == "Basic"):
			fmt.Fprintf(b, "%s: %s %s\n", name, scheme, hidden)
		default:
			others = append(others, name)
		}
	}
	if others != nil {
		fmt.Fprintf(b, "(values hidden: %s)\n", strings.Join(others, ", "))
	}
}

// shownBody writes a body. An open one is public, such as a document of metadata; of others only harmless members are shown.
func shownBody(kind string, body []byte, cut, open bool) string {
	if strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		if form, err := url.ParseQuery(string(body)); err == nil {
			return strings.Join(shownValues(form), "\n")
		}
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	switch {
	case !cut && d.Decode(&v) == nil:
		if !open {
			v = without(v)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if e.Encode(v) == nil {
			return text.Clip(strings.TrimRight(b.String(), "\n"), maxBytes)
		}
	case open && cut:
		return text.Clip(string(body), maxBytes) + fmt.Sprintf("\n(longer than %d bytes; the rest is not shown)", maxBytes)
	case open:
		return text.Clip(string(body), maxBytes)
	}
	return fmt.Sprintf("(%d bytes that are not JSON, hidden)", len(body))
}

// without hides the members of an object that may be secrets.
func without(v any) any {
	members, ok := v.(map[string]any)
	if !ok {
		return hidden
	}
	shown := map[string]any{}
	for name, v := range members {
		if shown[name] = v; !harmless[name] {
			shown[name] = hidden
		}
	}
	return shown
}

// secretsOf returns the secrets in an exchange, and keeps the claims of a token.
func secretsOf(x *exchange) (list []string) {
	for _, name := range []string{"Authorization", "Dpop", "Cookie"} {
		for _, v := range x.header[name] {
			scheme, rest, _ := strings.Cut(v, " ")
			list = append(list, v, rest)
			if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && scheme == "Basic" {
				_, secret, _ := strings.Cut(string(plain), ":")
				list = append(list, secret)
			}
		}
	}
	for name, values := range x.form {
		if !harmless[name] {
			list = append(list, values...)
		}
	}
	list = append(list, x.answer["Set-Cookie"]...)
	if x.method == http.MethodGet {
		return list // its answer is public
	}
	for _, raw := range [][]byte{x.body, x.back} {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			continue
		}
		for name, raw := range members {
			var s string
			if json.Unmarshal(raw, &s) != nil || harmless[name] {
				continue
			}
			if list = append(list, s); name == "access_token" {
				x.token = claimsOf(s)
			}
		}
	}
	return list
}

const (
	maxClaims = 64
	maxClaim  = 1000 // bytes of one
)

// claimsOf returns the payload of a token that is a JWT, by name; nil: it is none.
func claimsOf(token string) []Claim {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var members map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &members) != nil {
		return nil
	}
	var list []Claim
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if len(list) == maxClaims {
			break
		}
		value := text.Clip(string(members[name]), maxClaim)
		var seconds int64
		if (name == "exp" || name == "iat" || name == "nbf" || name == "auth_time") && json.Unmarshal(members[name], &seconds) == nil {
			value += " (" + time.Unix(seconds, 0).UTC().Format(time.RFC3339) + ")"
		}
		list = append(list, Claim{text.Clip(name, maxClaim), value})
	}
	return list
}
