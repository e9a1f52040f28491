package steps

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// kind says what an exchange is for.
type kind string

const (
	probe        kind = "request without a token"
	resource     kind = "metadata of the server"
	issuer       kind = "metadata of the authorization server"
	registration kind = "registration of the client"
	visit        kind = "browser"
	tokenRequest kind = "token"
	refresh      kind = "refresh of the token"
	retry        kind = "request with the token"
	other        kind = "other request"
)

// kindOf recognizes an exchange, and reads its form; mu is held.
func (l *Log) kindOf(x *exchange) kind {
	if strings.HasPrefix(x.header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		x.form, _ = url.ParseQuery(string(x.body))
	}
	named := l.named()
	switch path := x.url.Path; {
	case x.form.Get("grant_type") == "refresh_token":
		return refresh
	case x.form.Get("grant_type") != "":
		return tokenRequest
	case strings.Contains(path, "/.well-known/oauth-protected-resource") || named != "" && x.url.String() == named:
		return resource
	case strings.Contains(path, "/.well-known/oauth-authorization-server") || strings.Contains(path, "/.well-known/openid-configuration"):
		return issuer
	case x.url.String() == l.Server && x.header.Get("Authorization") != "":
		return retry
	case x.url.String() == l.Server:
		return probe
	case x.method == http.MethodPost && strings.HasPrefix(x.header.Get("Content-Type"), "application/json"):
		return registration
	}
	return other
}

// named returns the URL of metadata that the challenge of the server names; mu is held.
func (l *Log) named() string {
	for _, x := range l.all {
		if x.kind == probe {
			return parameter(strings.Join(x.answer.Values("WWW-Authenticate"), ", "), "resource_metadata")
		}
	}
	return ""
}

// parameter returns a parameter of a challenge.
func parameter(challenge, name string) string {
	_, after, _ := strings.Cut(challenge, name+`=`)
	after, quoted := strings.CutPrefix(after, `"`)
	end := strings.IndexByte(after, '"')
	if !quoted {
		end = strings.IndexAny(after, ", ")
	}
	if end < 0 {
		return strings.Trim(after, `"`)
	}
	return after[:end]
}

// document is what the checks read of answers.
type document struct {
	Resource   any      `json:"resource"`
	Issuers    []string `json:"authorization_servers"`
	Issuer     string   `json:"issuer"`
	Authorize  string   `json:"authorization_endpoint"`
	Token      string   `json:"token_endpoint"`
	Register   string   `json:"registration_endpoint"`
	Challenges []string `json:"code_challenge_methods_supported"`
	Names      bool     `json:"authorization_response_iss_parameter_supported"`
	Client     string   `json:"client_id"`
	Kind       string   `json:"application_type"`
	Access     string   `json:"access_token"`
	Type       string   `json:"token_type"`
	Error      string   `json:"error"`
	Said       string   `json:"error_description"`
}

func read(raw []byte) (d document, ok bool) {
	err := json.Unmarshal(raw, &d)
	return d, err == nil
}

// found returns the last document of a kind that was answered with 200, before step i; nil: none was. mu is held.
func (l *Log) found(k kind, i int) *document {
	for _, x := range slices.Backward(l.all[:i]) {
		if x.kind == k && x.status == http.StatusOK {
			if d, ok := read(x.back); ok {
				return &d
			}
		}
	}
	return nil
}

type checks []Check

// must adds a rule that a peer has to keep; note says what was there instead.
func (c *checks) must(rule, text string, ok bool, note string) { c.add(rule, text, ok, "fault", note) }

// should adds a rule that may be broken for a reason.
func (c *checks) should(rule, text string, ok bool, note string) { c.add(rule, text, ok, "hint", note) }

func (c *checks) add(rule, text string, ok bool, mark, note string) {
	if ok {
		mark, note = "ok", ""
	}
	*c = append(*c, Check{rule, text, mark, note})
}

// check says what the specification wants at step i; mu is held.
func (l *Log) check(i int, over bool) (c checks) {
	x := l.all[i]
	if x.status == 0 && x.kind != visit {
		return nil // there was no answer
	}
	d, isJSON := read(x.back)
	answered := x.status == http.StatusOK && isJSON
	switch x.kind {
	case probe:
		challenge := strings.Join(x.answer.Values("WWW-Authenticate"), ", ")
		c.must("AUTH-26-077", "A request without a token is answered with 401.", x.status == http.StatusUnauthorized, status(x))
		switch {
		case l.named() != "":
			c.must("AUTH-26-016", "The challenge names resource_metadata, or the metadata are at their well-known place.", true, "")
		case over || l.found(resource, len(l.all)) != nil:
			c.must("AUTH-26-016", "The challenge names resource_metadata, or the metadata are at their well-known place.", l.found(resource, len(l.all)) != nil, "neither is so")
		}
		c.should("AUTH-26-043", "The challenge names the scopes.", parameter(challenge, "scope") != "", "it names none")
	case resource:
		switch later := l.found(resource, len(l.all)); {
		case answered:
			c.must("AUTH-26-012", "The server has metadata as RFC 9728 wants.", true, "")
			name, _ := d.Resource.(string)
			c.must("AUTH-26-057", "The metadata are about this server: resource covers its address.", covers(name, l.Server), "resource is "+quoted(name))
			c.must("AUTH-26-013", "They name an authorization server.", len(d.Issuers) > 0, "they name none")
		case later != nil:
			c.should("AUTH-26-019", "This place may be empty: another one has the metadata.", true, "")
		case over || l.named() != "":
			c.must("AUTH-26-012", "The server has metadata as RFC 9728 wants.", false, status(x))
		}
	case issuer:
		if !answered {
			if later := l.found(issuer, len(l.all)); later != nil || over {
				c.must("AUTH-26-019", "This place may be empty if another one has the metadata.", later != nil, status(x))
			}
			break
		}
		if at := l.found(resource, i); at != nil {
			c.must("AUTH-26-022", "The issuer is the one that the server names, character by character.", slices.Contains(at.Issuers, d.Issuer), "the document is of "+quoted(d.Issuer)+", the server names "+quoted(strings.Join(at.Issuers, " ")))
		}
		c.must("AUTH-26-100", "It supports PKCE with S256, and says so.", slices.Contains(d.Challenges, "S256"), "code_challenge_methods_supported is "+quoted(strings.Join(d.Challenges, " ")))
		for _, at := range []string{d.Authorize, d.Token, d.Register} {
			if !safe(at) {
				c.must("AUTH-26-094", "Its addresses are https, or on this machine.", false, "one is "+quoted(at))
			}
		}
		if d.Token == "" || d.Authorize == "" {
			c.must("AUTH-26-004", "It has addresses for browsers and for tokens.", false, "one is missing")
		}
		c.should("AUTH-26-051", "It says that it names itself to the browser.", d.Names, "authorization_response_iss_parameter_supported is not true")
	case registration:
		sent, _ := read(x.body)
		c.must("AUTH-26-035", "The client says what kind of application it is.", sent.Kind != "", "application_type is missing")
		c.must("AUTH-26-011", "The answer has a client id.", x.status/100 == 2 && d.Client != "", refusal(x, d))
	case visit:
		l.checkVisit(x, i, &c)
	case tokenRequest, refresh:
		c.must("AUTH-26-056", "The request names the server as the resource.", x.form.Get("resource") != "", "resource is missing")
		if x.kind == tokenRequest {
			c.must("AUTH-26-096", "The request has the verifier of PKCE.", x.form.Get("code_verifier") != "", "code_verifier is missing")
		}
		c.must("AUTH-26-062", "The answer has an access token of type Bearer or DPoP.", x.status/100 == 2 && d.Access != "" && (strings.EqualFold(d.Type, "Bearer") || strings.EqualFold(d.Type, "DPoP")), refusal(x, d))
		if aud := audience(x.token); len(aud) > 0 {
			c.must("AUTH-26-067", "The token is for this server: its claim aud covers the address.", slices.ContainsFunc(aud, func(a string) bool { return covers(a, l.Server) || a == x.form.Get("resource") }), "aud is "+quoted(strings.Join(aud, " ")))
		}
	case retry:
		c.must("AUTH-26-066", "The server accepts the token.", x.status != http.StatusUnauthorized && x.status != http.StatusForbidden, status(x))
	}
	return c
}

// checkVisit checks what the browser was sent away with, and what it came back with; mu is held.
func (l *Log) checkVisit(x *exchange, i int, c *checks) {
	q := x.url.Query()
	c.must("AUTH-26-098", "The request uses PKCE with S256.", q.Get("code_challenge_method") == "S256" && q.Get("code_challenge") != "", "it does not")
	c.must("AUTH-26-056", "The request names the server as the resource.", q.Get("resource") != "", "resource is missing")
	if x.browser == nil {
		return
	}
	back, from := x.browser.Query(), l.found(issuer, i)
	c.must("AUTH-26-104", "The browser comes back with the state of the request.", back.Get("state") == q.Get("state"), "it is another one")
	if from != nil && (from.Names || back.Has("iss")) {
		c.must("AUTH-26-052", "It comes back from this authorization server.", back.Get("iss") == from.Issuer, "iss is "+quoted(back.Get("iss")))
	}
	c.must("AUTH-26-062", "It comes back with a code.", back.Get("code") != "", "error is "+quoted(strings.TrimSpace(back.Get("error")+" "+back.Get("error_description"))))
}

func status(x *exchange) string {
	if x.status == http.StatusOK {
		return "HTTP 200, and the answer does not fit"
	}
	return strings.TrimSpace("HTTP " + x.answerLine())
}

func refusal(x *exchange, d document) string {
	said := strings.TrimSpace(d.Error + " " + d.Said)
	if said == "" {
		return status(x)
	}
	return status(x) + ": " + quoted(said)
}

// audience returns the claim aud.
func audience(claims []Claim) (list []string) {
	for _, c := range claims {
		if c.Name != "aud" {
			continue
		}
		var one string
		if json.Unmarshal([]byte(c.Value), &one) == nil {
			return []string{one}
		}
		_ = json.Unmarshal([]byte(c.Value), &list) // neither: then nothing is known
	}
	return list
}

// covers reports whether a resource is a server or above it.
func covers(name, server string) bool {
	u, err := url.Parse(name)
	s, err2 := url.Parse(server)
	if err != nil || err2 != nil || !strings.EqualFold(u.Host, s.Host) || !strings.EqualFold(u.Scheme, s.Scheme) || u.Host == "" {
		return false
	}
	above, path := strings.TrimSuffix(u.EscapedPath(), "/"), strings.TrimSuffix(s.EscapedPath(), "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

// safe reports whether an address is https or on this machine, or absent.
func safe(at string) bool {
	u, err := url.Parse(at)
	name := ""
	if err == nil {
		name = u.Hostname()
	}
	return at == "" || err == nil && (u.Scheme == "https" || u.Scheme == "http" && (name == "localhost" || strings.HasPrefix(name, "127.") || name == "::1"))
}

func quoted(s string) string { return strconv.Quote(text.Clip(s, 200)) }

func (x *exchange) answerLine() string {
	return strconv.Itoa(x.status) + " " + http.StatusText(x.status)
}
