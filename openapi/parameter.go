package openapi

import (
	"cmp"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/patchbay-dev/patchbay/internal/hop"
)

// parameter is a part of a request outside of its body.
type parameter struct {
	name        string // on the wire
	in          string // "path", "query", "header" or "cookie"
	argument    string // of the tool
	required    bool
	description string
	schema      *node

	style    string // of OpenAPI 3, and "tabDelimited"
	explode  bool
	reserved bool // characters such as / and : stay as they are in a query
	json     bool // the value is sent as JSON
}

// String returns "parameter NAME" for a person.
func (p *parameter) String() string { return "the " + p.in + " parameter " + quote(p.name) }

// A bodyForm is how arguments become a body.
type bodyForm int

const (
	jsonBody bodyForm = iota + 1
	urlencodedBody
	multipartBody
	textBody   // the argument is the text
	base64Body // the argument is the content in base64
)

// body is the body of a request.
type body struct {
	form        bodyForm
	mediaType   string // to send
	required    bool
	description string
	schema      *node
	encoding    *node           // how the properties of a form are sent
	files       map[string]bool // properties of a form that are base64 of a file
}

// maxParameters bounds the parameters of an operation.
const maxParameters = 1000

// arguments reads the parameters and the body of an operation.
func (r *reader) arguments(o *Operation, item, op *node) error {
	var all []*node
	for _, list := range [][]*node{op.list("parameters"), item.list("parameters")} {
		if len(list) > maxParameters {
			return fmt.Errorf("it has more than %d parameters", maxParameters)
		}
		for _, n := range list {
			p, err := r.resolve(n)
			if err != nil {
				return err
			}
			same := func(other *node) bool {
				return other.string("name") == p.string("name") && other.string("in") == p.string("in")
			}
			if p.kind == '{' && !slices.ContainsFunc(all, same) { // those of the operation come first and win
				all = append(all, p)
			}
		}
	}
	var fields []*node
	for _, n := range all {
		switch in := n.string("in"); {
		case r.old && in == "body":
			r.oldBody(o, op, n)
		case r.old && in == "formData":
			fields = append(fields, n)
		default:
			if err := r.parameter(o, n); err != nil {
				if n.bool("required") || in == "path" {
					return err
				}
				r.unmapped(n, "%v; it is left out", err)
			}
		}
	}
	if r.old && len(fields) > 0 {
		if err := r.oldForm(o, op, fields); err != nil {
			return err
		}
	}
	if n := op.get("requestBody"); n != nil && !r.old {
		if err := r.requestBody(o, n); err != nil {
			return err
		}
	}
	r.pathParameters(o)
	o.nameArguments()
	return nil
}

// parameter reads one parameter.
func (r *reader) parameter(o *Operation, n *node) error {
	p := &parameter{name: n.string("name"), in: n.string("in"), required: n.bool("required"), description: n.string("description"), schema: n.get("schema")}
	if p.name == "" {
		return fmt.Errorf("line %d has a parameter without a name", n.line)
	}
	switch p.in {
	case "path":
		p.required, p.style = true, "simple"
		if !strings.Contains(o.path, "{"+p.name+"}") {
			r.unmapped(n, "%v is not in the path; it is left out", p)
			return nil
		}
	case "query":
		p.style = "form"
	case "header":
		p.style = "simple"
		if fixedHeaders[textproto.CanonicalMIMEHeaderKey(p.name)] { // as the specification says
			return nil
		}
		if !mayBeHeader(p.name) {
			return fmt.Errorf("%v is one that an argument must not set", p)
		}
	case "cookie":
		p.style = "form"
		if !httpguts.ValidHeaderFieldName(p.name) {
			return fmt.Errorf("%v has a name that a cookie cannot have", p)
		}
	default:
		return fmt.Errorf("the parameter %s is in %s, where nothing can be sent", quote(p.name), quote(p.in))
	}
	switch {
	case r.old:
		p.schema = n
		p.collection(n.string("collectionFormat"))
	case n.get("content") != nil && len(n.get("content").members) > 0:
		m := n.get("content").members[0]
		p.schema, p.json = m.value.get("schema"), true
		if !isJSON(m.name) {
			return fmt.Errorf("%v is %s, and only JSON can be sent there", p, quote(m.name))
		}
	default:
		if style := n.string("style"); style != "" {
			p.style = style
		}
		p.explode = p.style == "form"
		if e := n.get("explode"); e != nil {
			p.explode = e.kind == 't'
		}
		p.reserved = n.bool("allowReserved")
		if !slices.Contains(stylesIn[p.in], p.style) {
			return fmt.Errorf("%v has the style %s, which is not one there", p, quote(p.style))
		}
	}
	o.parameters = append(o.parameters, p)
	return nil
}

var stylesIn = map[string][]string{
	"path": {"simple", "label", "matrix"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
	"header": {"simple"}, "cookie": {"form"},
}

// collection sets how a list is sent in 2.0.
func (p *parameter) collection(format string) {
	inQuery := p.in == "query"
	switch {
	case format == "multi" && inQuery:
		p.explode = true
	case format == "ssv":
		p.style = "spaceDelimited"
	case format == "tsv":
		p.style = "tabDelimited"
	case format == "pipes":
		p.style = "pipeDelimited"
	}
}

// fixedHeaders are set by the operation itself.
var fixedHeaders = map[string]bool{"Accept": true, "Content-Type": true, "Authorization": true}

// mayBeHeader reports whether an argument may set a header: it is not one that frames the message, names the host or
// carries credentials.
func mayBeHeader(name string) bool {
	name = textproto.CanonicalMIMEHeaderKey(name)
	return httpguts.ValidHeaderFieldName(name) && !strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "Sec-") && !slices.Contains([]string{
		"Connection", "Content-Length", "Content-Encoding", "Cookie", "Expect", "Forwarded", "Host", "Http2-Settings", "Keep-Alive", "Origin", hop.Header, "Te",
		"Trailer", "Transfer-Encoding", "Upgrade", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Http-Method-Override",
		"X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Real-Ip",
	}, name)
}

// pathParameters adds those that the path has and the document does not describe.
func (r *reader) pathParameters(o *Operation) {
	for _, name := range pathNames(o.path) {
		if !slices.ContainsFunc(o.parameters, func(p *parameter) bool { return p.in == "path" && p.name == name }) {
			o.parameters = append(o.parameters, &parameter{name: name, in: "path", style: "simple", required: true, schema: &node{kind: '{', members: []member{{"type", &node{kind: '"', text: "string"}}}}})
		}
	}
}

// pathNames returns the names in braces of a path.
func pathNames(path string) (names []string) {
	for {
		_, rest, open := strings.Cut(path, "{")
		name, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			return names
		}
		names = append(names, name)
		path = after
	}
}

// checkPath returns an error if the path cannot be sent.
func (o *Operation) checkPath() error {
	if strings.ContainsAny(o.query, "{}\r\n \t") {
		return fmt.Errorf("a path cannot have parameters in its query")
	}
	plain := o.path
	for _, name := range pathNames(plain) {
		plain = strings.Replace(plain, "{"+name+"}", "x", 1)
	}
	if strings.ContainsAny(plain, "{}") {
		return fmt.Errorf("the braces of the path do not match")
	}
	return safeSegments(plain)
}

// nameArguments gives each parameter the name of its argument. Names have characters that all models accept.
func (o *Operation) nameArguments() {
	taken := map[string]bool{"body": o.body != nil}
	for _, p := range o.parameters {
		name := plainArgument(p.name)
		if taken[name] {
			name = plainName(name+"_"+p.in, maxName)
		}
		for first, i := name, 2; taken[name]; i++ {
			name = fmt.Sprintf("%s_%d", first[:min(len(first), maxName-4)], i)
		}
		taken[name] = true
		p.argument = name
	}
}

// plainArgument is plainName with dots.
func plainArgument(name string) string {
	var parts []string
	for _, part := range strings.Split(name, ".") {
		parts = append(parts, plainName(part, maxName))
	}
	name = strings.Join(parts, ".")
	if name = strings.Trim(name[:min(len(name), maxName)], "."); name == "" {
		return "argument"
	}
	return name
}

// requestBody reads the body of OpenAPI 3.
func (r *reader) requestBody(o *Operation, n *node) error {
	n, err := r.resolve(n)
	if err != nil {
		return err
	}
	content := n.get("content")
	if content == nil || len(content.members) == 0 {
		return nil
	}
	best := content.members[0]
	for _, m := range content.members[1:] {
		if formOf(m.name) < formOf(best.name) || strings.Contains(best.name, "*") && isJSON(m.name) {
			best = m
		}
	}
	value, err := r.resolve(best.value) // a media type may be a reference from 3.2 on
	if err != nil {
		return err
	}
	o.body = &body{form: formOf(best.name), mediaType: best.name, required: n.bool("required"), description: n.string("description"), schema: value.get("schema"), encoding: value.get("encoding")}
	switch {
	case o.body.form == jsonBody && r.file(o.body.schema) && strings.Contains(best.name, "*"):
		o.body.form, o.body.mediaType = base64Body, "application/octet-stream"
	case o.body.form == textBody && r.file(o.body.schema):
		o.body.form = base64Body
	}
	o.body.mediaType = concrete(o.body.mediaType)
	return r.fields(o.body)
}

// concrete returns a media type to send for one of a document, which may be a range.
func concrete(mediaType string) string {
	switch {
	case !strings.Contains(mediaType, "*"):
		return mediaType
	case formOf(mediaType) == jsonBody:
		return "application/json"
	case formOf(mediaType) == textBody:
		return "text/plain"
	}
	return "application/octet-stream"
}

// formOf tells how a body of a media type is made; better ones are less.
func formOf(mediaType string) bodyForm {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	switch mediaType = strings.TrimSpace(mediaType); {
	case isJSON(mediaType), mediaType == "*/*", mediaType == "application/*": // JSON is one of these
		return jsonBody
	case mediaType == "application/x-www-form-urlencoded":
		return urlencodedBody
	case mediaType == "multipart/form-data":
		return multipartBody
	case strings.HasPrefix(mediaType, "text/"), strings.HasSuffix(mediaType, "/xml"), strings.HasSuffix(mediaType, "+xml"), strings.HasSuffix(mediaType, "yaml"),
		strings.HasSuffix(mediaType, "graphql"), strings.HasSuffix(mediaType, "javascript"), strings.HasSuffix(mediaType, "sql"), strings.HasSuffix(mediaType, "ndjson"):
		return textBody
	}
	return base64Body
}

// isJSON reports whether a media type is JSON.
func isJSON(mediaType string) bool {
	mediaType, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	mediaType = strings.TrimSpace(mediaType)
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// file reports whether a schema is for a file: itself, a part of it, or each of its alternatives.
func (r *reader) file(n *node) bool {
	n, err := r.resolve(n)
	if err != nil || n == nil {
		return false
	}
	if is, known := r.files[n]; known {
		return is
	}
	r.files[n] = false // for a schema that has itself as a part
	each := func(list []*node) bool {
		list = slices.DeleteFunc(slices.Clone(list), func(part *node) bool { return part.string("type") == "null" })
		return len(list) > 0 && !slices.ContainsFunc(list, func(part *node) bool { return !r.file(part) })
	}
	r.files[n] = n.string("type") == "file" || n.string("format") == "binary" || n.string("contentEncoding") == "base64" ||
		n.string("contentMediaType") != "" && n.get("type") == nil ||
		slices.ContainsFunc(n.list("allOf"), r.file) || each(n.list("anyOf")) || each(n.list("oneOf"))
	return r.files[n]
}

// fields finds the properties of a form that are files, and marks their schemas as base64. A form is an object.
func (r *reader) fields(b *body) error {
	if b.form != multipartBody && b.form != urlencodedBody {
		return nil
	}
	form, err := r.resolve(cmp.Or(b.schema, &node{kind: '{'}))
	if err != nil {
		return err
	}
	if kind := form.get("type"); kind == nil {
		form = form.with("type", &node{kind: '"', text: "object"})
	} else if kind.text != "object" && !slices.ContainsFunc(kind.items, func(n *node) bool { return n.text == "object" }) {
		return fmt.Errorf("the body is sent as a form, %s, and its schema in line %d is not one of an object", quote(b.mediaType), form.line)
	}
	b.files = map[string]bool{}
	b.schema = r.withFiles(b, form, map[*node]*node{})
	return nil
}

// withFiles returns the schema of a form, or a part of it, in which files are base64, and notes them. It puts what it has made into made.
func (r *reader) withFiles(b *body, n *node, made map[*node]*node) *node {
	from, err := r.resolve(n)
	if err != nil {
		return n
	}
	if form := made[from]; form != nil {
		return form
	}
	made[from] = n // for a form that has itself as a part
	form := from
	if properties := form.get("properties"); properties != nil {
		var out []member
		for _, p := range properties.members {
			value := p.value
			switch list, err := r.resolve(value); {
			case r.file(value):
				b.files[p.name] = true
				value = described(base64Text, value)
			case err == nil && list.get("items") != nil && r.file(list.get("items")):
				b.files[p.name] = true
				value = list.with("items", base64Text)
			}
			out = append(out, member{p.name, value})
		}
		form = form.with("properties", &node{kind: '{', members: out})
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		if parts := form.list(word); parts != nil {
			var out []*node
			for _, part := range parts {
				out = append(out, r.withFiles(b, part, made))
			}
			form = form.with(word, &node{kind: '[', items: out})
		}
	}
	made[from] = form
	return form
}

var base64Text = &node{kind: '{', members: []member{{"type", &node{kind: '"', text: "string"}}, {"contentEncoding", &node{kind: '"', text: "base64"}}}}

// described returns a schema with the description of another one.
func described(n, from *node) *node {
	if d := from.get("description"); d != nil {
		return n.with("description", d)
	}
	return n
}

// with returns a copy of n in which a member has another value.
func (n *node) with(name string, value *node) *node {
	out := *n
	out.members = slices.DeleteFunc(slices.Clone(n.members), func(m member) bool { return m.name == name })
	out.members = append(out.members, member{name, value})
	return &out
}

// consumes returns the media types of the body in 2.0.
func (r *reader) consumes(op *node) (types []string) {
	list := op.get("consumes")
	if list == nil {
		list = r.root.get("consumes")
	}
	if list != nil {
		for _, n := range list.items {
			types = append(types, n.text)
		}
	}
	return types
}

// oldBody reads the body of 2.0.
func (r *reader) oldBody(o *Operation, op, n *node) {
	mediaType := "application/json"
	for i, t := range r.consumes(op) {
		if i == 0 || formOf(t) < formOf(mediaType) {
			mediaType = t
		}
	}
	o.body = &body{form: formOf(mediaType), mediaType: concrete(mediaType), required: n.bool("required"), description: n.string("description"), schema: n.get("schema")}
	if o.body.form == urlencodedBody || o.body.form == multipartBody { // a body is not a form there
		o.body.form, o.body.mediaType = jsonBody, "application/json"
	}
}

// oldForm reads the fields of a form in 2.0.
func (r *reader) oldForm(o *Operation, op *node, fields []*node) error {
	b := &body{form: urlencodedBody, mediaType: "application/x-www-form-urlencoded"}
	if slices.ContainsFunc(r.consumes(op), func(t string) bool { return formOf(t) == multipartBody }) ||
		slices.ContainsFunc(fields, func(n *node) bool { return n.string("type") == "file" }) {
		b.form, b.mediaType = multipartBody, "multipart/form-data"
	}
	properties, required, encoding := &node{kind: '{'}, &node{kind: '['}, &node{kind: '{'}
	for _, n := range fields {
		name := n.string("name")
		properties.members = append(properties.members, member{name, n})
		if n.bool("required") {
			required.items = append(required.items, n.get("name"))
		}
		p := &parameter{in: "query", style: "form"}
		p.collection(n.string("collectionFormat"))
		how := &node{kind: '{', members: []member{{"style", &node{kind: '"', text: p.style}}, {"explode", &node{kind: 'f'}}}}
		if p.explode {
			how = how.with("explode", &node{kind: 't'})
		}
		if n.string("type") == "array" {
			encoding.members = append(encoding.members, member{name, how})
		}
	}
	b.required = len(required.items) > 0
	b.encoding = encoding
	b.schema = &node{kind: '{', members: []member{{"type", &node{kind: '"', text: "object"}}, {"properties", properties}, {"required", required}}}
	o.body = b
	return r.fields(b)
}
