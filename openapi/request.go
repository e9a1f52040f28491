package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpguts"

	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// request makes the request of an operation with arguments, which fit its schema.
func (x *exchange) request(ctx context.Context, o *Operation, args json.RawMessage) (*http.Request, error) {
	values, err := parseJSON(args)
	if err != nil {
		return nil, err
	}
	base := x.baseOf(o)
	path, err := o.target(values)
	if err != nil {
		return nil, err
	}
	u := *base
	u.RawQuery = o.query
	u.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + path
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, fmt.Errorf("the path %s is not valid: %v", quote(u.RawPath), err)
	}
	req, err := http.NewRequestWithContext(ctx, o.Method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, list := range x.options.Header {
		if x.owns(o) {
			req.Header[http.CanonicalHeaderKey(name)] = slices.Clone(list)
		}
	}
	req.Header.Set("User-Agent", x.options.UserAgent)
	req.Header.Set("Accept", o.acceptHeader())
	if err := x.fill(req, o, values); err != nil {
		return nil, err
	}
	for name, list := range x.options.Header { // no argument replaces one
		if name = http.CanonicalHeaderKey(name); x.owns(o) && name != "Cookie" {
			req.Header[name] = list
		}
	}
	if o.body != nil {
		if err := o.body.fill(req, values.get("body"), args); err != nil {
			return nil, err
		}
	}
	if x.owns(o) {
		if err := x.authorize(req, o); err != nil {
			return nil, err
		}
	}
	req.Header.Set(hop.Header, hop.HeaderOf(hop.Append(hopsOf(ctx), hop.Self)))
	return req, nil
}

// hopsOf returns the programs that have forwarded the call of ctx: an API may be that of one of them.
func hopsOf(ctx context.Context) json.RawMessage {
	if call := mcp.CallFrom(ctx); call != nil {
		return call.Meta[hop.Meta]
	}
	return nil
}

// target returns the path with its arguments, escaped. An argument stays within its segment.
func (o *Operation) target(values *node) (string, error) {
	texts, parts := map[string]string{}, map[string]string{} // by the names in the path
	for _, p := range o.parameters {
		if p.in != "path" {
			continue
		}
		v := values.get(p.argument)
		if v == nil {
			return "", fmt.Errorf("%s is missing", p.argument)
		}
		text := p.simple(v, func(s string) string { return s })
		switch {
		case strings.Trim(text, ".;=") == "" && p.style != "simple" || text == "":
			return "", fmt.Errorf("%s is empty, which leads to another path", p.argument)
		case strings.ContainsFunc(text, unicode.IsControl):
			return "", fmt.Errorf("%s has a control character in it", p.argument)
		}
		if err := safeSegments(text); err != nil {
			return "", fmt.Errorf("%s: %v", p.argument, err)
		}
		texts[p.name], parts[p.name] = text, p.simple(v, escapeSegment)
	}
	// In one pass: an argument may look like the place of another one.
	plain := braces().ReplaceAllStringFunc(o.path, func(name string) string { return texts[name[1:len(name)-1]] })
	var escaped strings.Builder
	rest := o.path
	for _, at := range braces().FindAllStringIndex(o.path, -1) {
		escaped.WriteString(escapeTemplate(o.path[len(o.path)-len(rest):at[0]]) + parts[o.path[at[0]+1:at[1]-1]])
		rest = o.path[at[1]:]
	}
	escaped.WriteString(escapeTemplate(rest))
	return escaped.String(), safeSegments(plain)
}

// escapeTemplate escapes what a path of a document should have escaped, and leaves escapes that are there.
func escapeTemplate(path string) string {
	plain, err := url.PathUnescape(path)
	if err != nil {
		plain = path
	}
	return (&url.URL{Path: plain, RawPath: path}).EscapedPath()
}

// fill adds the arguments in the query, in headers and in cookies.
func (a *api) fill(req *http.Request, o *Operation, values *node) error {
	for _, p := range o.parameters {
		v := values.get(p.argument)
		if v == nil || v.kind == 'n' && !p.required {
			continue
		}
		escape := escapeSegment
		if p.reserved && p.in == "query" {
			escape = escapeReserved
		}
		if p.in == "header" {
			text := p.simple(v, func(s string) string { return s })
			if !httpguts.ValidHeaderFieldValue(text) {
				return fmt.Errorf("%s has a character in it that a header cannot have", p.argument)
			}
			req.Header.Set(p.name, text)
			continue
		}
		if p.in == "path" {
			continue
		}
		pairs := p.pairs(v, escape)
		for _, c := range pairs { // the members of an object are names, too
			if name, err := url.QueryUnescape(c.name); err != nil || a.sets(o, p.in, name) {
				return fmt.Errorf("%s sets %s in the %s, which only this server sets", p.argument, quote(name), p.in)
			}
		}
		if p.in == "query" {
			addPairs(req.URL, pairs)
			continue
		}
		texts := slices.Clone(req.Header["Cookie"])
		for _, c := range pairs {
			texts = append(texts, c.name+"="+c.value)
		}
		req.Header.Set("Cookie", strings.Join(texts, "; "))
	}
	return nil
}

// sets reports whether the server itself sets a member of the query or a cookie of an operation: a credential, or a
// cookie in a header of Options.
func (a *api) sets(o *Operation, in, name string) bool {
	if !a.owns(o) {
		return false
	}
	for _, need := range o.security {
		for _, scheme := range need {
			if s := a.doc.schemes[scheme]; s != nil && s.kind == in && strings.EqualFold(s.name, name) {
				return true
			}
		}
	}
	for own, list := range a.options.Header {
		if in != "cookie" || !strings.EqualFold(own, "Cookie") {
			continue
		}
		for _, pair := range strings.Split(strings.Join(list, ";"), ";") {
			if have, _, _ := strings.Cut(pair, "="); strings.EqualFold(strings.TrimSpace(have), name) {
				return true
			}
		}
	}
	return false
}

// addPairs adds pairs, escaped already, to a query.
func addPairs(u *url.URL, pairs []pair) {
	var b strings.Builder
	b.WriteString(u.RawQuery)
	for _, p := range pairs {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	u.RawQuery = b.String()
}

// fill sets the body of a request to an argument, which is also in args, byte for byte.
func (b *body) fill(req *http.Request, v *node, args json.RawMessage) error {
	if v == nil {
		return nil
	}
	mediaType := b.mediaType
	var content []byte
	switch b.form {
	case jsonBody:
		content = rawMember(args, "body")
	case urlencodedBody:
		if v.kind != '{' {
			return errors.New("body must be an object, as it is sent as a form")
		}
		u := &url.URL{}
		for _, m := range v.members {
			pairs, err := b.pairs(m)
			if err != nil {
				return err
			}
			addPairs(u, pairs)
		}
		content = []byte(u.RawQuery)
	case multipartBody:
		var err error
		if content, mediaType, err = b.multipart(v); err != nil {
			return err
		}
	case textBody:
		if v.kind != '"' {
			return fmt.Errorf("body must be a string with the %s", b.mediaType)
		}
		content = []byte(v.text)
	default:
		var err error
		if content, err = decode64("body", v); err != nil {
			return err
		}
	}
	req.Header.Set("Content-Type", mediaType)
	setBody(req, content)
	return nil
}

func setBody(req *http.Request, content []byte) {
	// With a body of its own and GetBody the transport can send it again on another connection.
	with, _ := http.NewRequest(req.Method, "http://x", bytes.NewReader(content))
	req.Body, req.GetBody, req.ContentLength = with.Body, with.GetBody, with.ContentLength
}

// rawMember returns a member of a valid object as it is.
func rawMember(object json.RawMessage, name string) json.RawMessage {
	var out json.RawMessage
	jsonx.Filter(nil, object, func(n []byte, value json.RawMessage) bool {
		if string(n) == name {
			out = value
		}
		return false
	})
	return out
}

func decode64(what string, v *node) ([]byte, error) {
	if v.kind == '"' {
		if content, err := base64.StdEncoding.DecodeString(v.text); err == nil {
			return content, nil
		}
	}
	return nil, fmt.Errorf("%s is not a string of base64", what)
}

// how returns the way to send one property of a form: lists one pair for each element, objects as JSON, unless the
// document says otherwise.
func (b *body) how(m member) *parameter {
	p := &parameter{name: m.name, in: "query", style: "form", explode: true}
	e := b.encoding.get(m.name)
	switch {
	case e != nil && (e.get("style") != nil || e.get("explode") != nil):
		if s := e.string("style"); s != "" {
			p.style = s
		}
		p.explode = p.style == "form"
		if x := e.get("explode"); x != nil {
			p.explode = x.kind == 't'
		}
	case m.value.kind == '{', e != nil && isJSON(e.string("contentType")):
		p.json = true
	}
	return p
}

// pairs returns one property of a form as pairs.
func (b *body) pairs(m member) ([]pair, error) {
	if !b.files[m.name] {
		return b.how(m).pairs(m.value, escapeSegment), nil
	}
	content, err := decode64("body."+m.name, m.value)
	return []pair{{escapeSegment(m.name), escapeSegment(string(content))}}, err
}

// multipart returns the properties of a form as parts.
func (b *body) multipart(v *node) (content []byte, mediaType string, err error) {
	if v.kind != '{' {
		return nil, "", errors.New("body must be an object, as it is sent as a form")
	}
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	part := func(m member, v *node) error {
		header := textproto.MIMEHeader{}
		kind := b.encoding.get(m.name).string("contentType")
		kind, _, _ = strings.Cut(kind, ",")
		disposition := `form-data; name="` + quoteName(m.name) + `"`
		var data []byte
		switch {
		case b.files[m.name]:
			if data, err = decode64("body."+m.name, v); err != nil {
				return err
			}
			disposition += `; filename="` + quoteName(m.name) + `"`
			if kind == "" || strings.Contains(kind, "*") {
				kind = "application/octet-stream"
			}
		case v.kind == '{' || v.kind == '[' || isJSON(kind):
			data = v.appendJSON(nil, 0)
			if kind == "" {
				kind = "application/json"
			}
		default:
			data = []byte(v.asText())
		}
		header.Set("Content-Disposition", disposition)
		if kind = strings.TrimSpace(kind); kind != "" && httpguts.ValidHeaderFieldValue(kind) {
			header.Set("Content-Type", kind)
		}
		p, err := w.CreatePart(header)
		if err == nil {
			_, err = p.Write(data)
		}
		return err
	}
	for _, m := range v.members {
		values := []*node{m.value}
		if m.value.kind == '[' && !isJSON(b.encoding.get(m.name).string("contentType")) {
			values = m.value.items
		}
		for _, v := range values {
			if err := part(m, v); err != nil {
				return nil, "", err
			}
		}
	}
	err = w.Close()
	return out.Bytes(), w.FormDataContentType(), err
}

// quoteName escapes the name of a part as browsers do.
func quoteName(s string) string {
	return strings.NewReplacer("\r", "%0D", "\n", "%0A", `"`, "%22").Replace(s)
}
