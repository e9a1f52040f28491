package openapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Fault is a place of a document that cannot be used as it is.
type Fault struct {
	Line, Column int    // from 1
	Place        string // such as "GET /pets"; empty: the document
	Text         string
}

// Error returns "line:column: place: text".
func (f *Fault) Error() string {
	place := f.Place
	if place != "" {
		place += ": "
	}
	return fmt.Sprintf("%d:%d: %s%s", f.Line, f.Column, place, f.Text)
}

// Document is an OpenAPI document. It is not changed after Parse and may be used by several goroutines.
type Document struct {
	Revision    string // of the OpenAPI Specification: "2.0", "3.0", "3.1" or "3.2"
	Title       string
	Version     string // of the API
	Description string

	// Server is the URL of the API as the document has it, variables replaced by their defaults; it may be
	// relative, and empty.
	Server string

	// Operations are those that can be called, in the order of the document.
	Operations []*Operation

	// Unmapped are operations, and parts of operations, that cannot be called or sent, with the reason.
	Unmapped []*Fault

	schemes map[string]*scheme
}

// Operation is one method of one path.
type Operation struct {
	Name        string // of its tool: 1 to 64 of A-Za-z0-9_-
	Method      string // "GET", ...
	Path        string // with its parameters, such as "/pets/{id}"
	Title       string
	Description string
	Tags        []string
	Deprecated  bool
	Line        int // of the document

	// Input is the JSON Schema of the arguments, in the dialect 2020-12: an object with a member for each
	// parameter, and the member "body" for the body of the request.
	Input []byte

	server      string // of this operation alone; empty: that of the document
	path, query string // of the URL; some documents have a query in a path, or a fragment that only makes it unique
	parameters  []*parameter
	body        *body
	accept      []string // media types of good answers
	security    []requirement
}

// String returns the method and the path.
func (o *Operation) String() string { return o.Method + " " + o.Path }

// methods are those that can be called, in the order in which OpenAPI names them.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// reader reads one document.
type reader struct {
	doc      *Document
	root     *node
	old      bool                           // Swagger 2.0
	plain    bool                           // schemas are JSON Schema, as from 3.1 on
	names    map[string]int                 // of tools, with the number that comes next for the same one
	found    map[string]*node               // what references name
	bytes    int                            // of the schemas of all operations
	defs     map[bool]map[*node]*definition // with patterns, or without
	taken    map[string]int                 // the names of definitions, as names
	patterns map[string]int                 // their steps; 0: it cannot be checked
	files    map[*node]bool                 // whether schemas are for files

	prefix, scope string   // what references, and names of definitions, begin with; empty: they are in $defs
	whole         bool     // schemas are for a document: readOnly properties stay, and references that lead nowhere are left out
	lost          []string // those references

	place string // of what is read
}

func newReader(root *node) *reader {
	return &reader{
		doc: &Document{}, root: root, names: map[string]int{}, found: map[string]*node{}, taken: map[string]int{}, patterns: map[string]int{}, files: map[*node]bool{},
		defs: map[bool]map[*node]*definition{false: {}, true: {}},
	}
}

// Parse reads a document of OpenAPI 3.0, 3.1 or 3.2, or of Swagger 2.0, in JSON or YAML. References to other documents
// are not followed. Document.Unmapped has the parts that cannot be mapped; the error, a [*Fault] where it has a place, means
// that there is nothing to map.
func Parse(data []byte) (*Document, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	r := newReader(root)
	if err := r.revision(); err != nil {
		return nil, err
	}
	info := root.get("info")
	r.doc.Title = oneLine(info.string("title"), 200)
	r.doc.Version = oneLine(info.string("version"), 100)
	r.doc.Description = info.string("description")
	r.doc.Server = r.server(root)
	r.schemes()
	paths := root.get("paths")
	if paths == nil || paths.kind != '{' {
		if root.get("webhooks") == nil && root.get("components") == nil {
			return nil, &Fault{int(root.line), int(root.column), "", `it has no "paths", so there is nothing to call`}
		}
		paths = &node{}
	}
	for _, m := range paths.members {
		if strings.HasPrefix(m.name, "/") {
			r.path(m.name, m.value)
		} else if !strings.HasPrefix(m.name, "x-") {
			r.place = "paths"
			r.unmapped(m.value, "%s is not a path; paths begin with /", quote(m.name))
		}
	}
	if hooks := root.get("webhooks"); hooks != nil && len(hooks.members) > 0 {
		r.place = "webhooks"
		r.unmapped(hooks, "the API calls these, so there is nothing to map")
	}
	return r.doc, nil
}

// revision finds out which specification the document follows.
func (r *reader) revision() error {
	at := func(n *node, format string, args ...any) error {
		return &Fault{int(n.line), int(n.column), "", fmt.Sprintf(format, args...)}
	}
	for _, name := range []string{"openapi", "swagger"} {
		n := r.root.get(name)
		if n == nil {
			continue
		}
		major, minor, _ := strings.Cut(n.text, ".")
		minor, _, _ = strings.Cut(minor, ".")
		r.doc.Revision = major + "." + cmp.Or(minor, "0")
		switch r.doc.Revision {
		case "2.0":
			r.old = true
		case "3.0":
		case "3.1", "3.2":
			r.plain = true
		default:
			return at(n, "it says %s %s; the revisions 2.0, 3.0, 3.1 and 3.2 can be read", name, quote(n.text))
		}
		return nil
	}
	for _, other := range []string{"asyncapi", "swaggerVersion", "$schema", "item"} {
		if n := r.root.get(other); n != nil {
			return at(n, `it is not an OpenAPI document: it has %q and neither "openapi" nor "swagger"`, other)
		}
	}
	return at(r.root, `it is not an OpenAPI document: it has neither "openapi" nor "swagger"`)
}

// unmapped records that something cannot be mapped.
func (r *reader) unmapped(n *node, format string, args ...any) {
	f := &Fault{Place: r.place, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		f.Line, f.Column = int(n.line), int(n.column)
	}
	r.doc.Unmapped = append(r.doc.Unmapped, f)
}

// server returns the first URL of "servers", or that of the members of 2.0; empty without one.
func (r *reader) server(n *node) string {
	if r.old {
		host := n.string("host")
		if host == "" {
			return n.string("basePath")
		}
		scheme := "https"
		if list := n.list("schemes"); len(list) > 0 && !slices.ContainsFunc(list, func(s *node) bool { return s.text == "https" }) {
			scheme = list[0].text
		}
		return scheme + "://" + host + n.string("basePath")
	}
	servers := n.list("servers")
	if len(servers) == 0 {
		return ""
	}
	// Defaults are not replaced again: they may name each other, and double each time.
	return braces().ReplaceAllStringFunc(servers[0].string("url"), func(name string) string {
		if v := servers[0].get("variables").get(name[1 : len(name)-1]); v != nil {
			return scalarText(v.get("default"))
		}
		return name
	})
}

// scalarText is the text of a value that is not an object or an array, as YAML reads 8080 and true without quotes.
func scalarText(n *node) string {
	switch {
	case n == nil:
		return ""
	case n.kind == 't':
		return "true"
	case n.kind == 'f':
		return "false"
	}
	return n.text
}

// path reads the operations of one path.
func (r *reader) path(path string, n *node) {
	r.place = path
	item, err := r.resolve(n)
	if err != nil {
		r.unmapped(n, "%v", err)
		return
	}
	for _, m := range item.members {
		if !slices.Contains(methods, m.name) {
			if m.name == "additionalOperations" {
				r.place = path
				r.unmapped(m.value, "additionalOperations are not mapped")
			}
			continue
		}
		r.place = strings.ToUpper(m.name) + " " + path
		op := m.value
		switch {
		case op.kind != '{':
			r.unmapped(op, "it is not an object")
		case m.name == "options" || m.name == "trace":
			r.unmapped(op, "the method tells about the server and does not belong to the API")
		default:
			if err := r.operation(m.name, path, item, op); err != nil {
				r.unmapped(op, "%v", err)
			}
		}
	}
}

// operation reads one operation. With an error it cannot be mapped.
func (r *reader) operation(method, path string, item, op *node) error {
	o := &Operation{
		Method: strings.ToUpper(method), Path: path, Line: int(op.line), Deprecated: op.bool("deprecated"),
		Title:       oneLine(op.string("summary"), 200),
		Description: strings.TrimSpace(cmp.Or(op.string("description"), item.string("description"))),
	}
	if len(path) > maxPath {
		return fmt.Errorf("the path has more than %d KiB", maxPath>>10)
	}
	o.path, _, _ = strings.Cut(path, "#")
	o.path, o.query, _ = strings.Cut(o.path, "?")
	for _, t := range op.list("tags") {
		o.Tags = append(o.Tags, t.text)
	}
	if !r.old {
		o.server = cmp.Or(r.server(op), r.server(item))
	} else if op.get("schemes") != nil && r.root.string("host") != "" {
		scheme := &node{kind: '{', members: append([]member{{"schemes", op.get("schemes")}}, r.root.members...)}
		if s := r.server(scheme); s != r.doc.Server {
			o.server = s
		}
	}
	if err := checkServer(o.server); err != nil {
		return err
	}
	if r.bytes > maxSchemas {
		return fmt.Errorf("the schemas of the operations before it have %d MiB together, and no more are read", maxSchemas>>20)
	}
	if err := r.arguments(o, item, op); err != nil {
		return err
	}
	if err := o.checkPath(); err != nil {
		return err
	}
	if err := r.requirements(o, op); err != nil {
		return err
	}
	r.answers(o, op)
	input, err := r.input(o)
	if err != nil {
		return err
	}
	o.Input = input
	o.Name = r.name(op.string("operationId"), o)
	r.doc.Operations = append(r.doc.Operations, o)
	return nil
}

// checkServer returns an error for a server of one operation to which nothing can be sent. It may be relative.
func checkServer(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(server, `{}\`) {
		return fmt.Errorf("its server %s is not an http or https URL of a host and a path", quote(server))
	}
	if err := safeSegments(u.EscapedPath()); err != nil {
		return fmt.Errorf("its server %s: %v", quote(server), err)
	}
	return nil
}

// answers reads the media types of good answers.
func (r *reader) answers(o *Operation, op *node) {
	add := func(mediaType string) {
		if mediaType != "" && len(o.accept) < 20 && !slices.Contains(o.accept, mediaType) {
			o.accept = append(o.accept, mediaType)
		}
	}
	if r.old {
		produces := op.get("produces")
		if produces == nil {
			produces = r.root.get("produces")
		}
		if produces != nil {
			for _, n := range produces.items {
				add(n.text)
			}
		}
		return
	}
	responses := op.get("responses")
	if responses == nil {
		return
	}
	for _, m := range responses.members {
		if !strings.HasPrefix(m.name, "2") {
			continue
		}
		if answer, err := r.resolve(m.value); err == nil && answer.get("content") != nil {
			for _, c := range answer.get("content").members {
				add(c.name)
			}
		}
	}
}

// maxPath bounds a path, in bytes.
const maxPath = 8 << 10

// braces are the names of variables and parameters.
var braces = pattern.Lazy(`\{[^{}]*\}`)

// maxName bounds the name of a tool: models know no longer ones.
const maxName = 64

// name makes the name of a tool, unlike those before.
func (r *reader) name(id string, o *Operation) string {
	name := plainName(id, maxName)
	if name == "" {
		name = plainName(strings.ToLower(o.Method)+"_"+o.Path, maxName)
	}
	return unlike(r.names, name)
}

// unlike returns name, or one with a number behind it, that is not among the names, and adds it to them.
func unlike(names map[string]int, name string) string {
	first := name
	for names[name] > 0 {
		names[first]++
		suffix := fmt.Sprintf("_%d", names[first])
		name = first[:min(len(first), maxName-len(suffix))] + suffix
	}
	names[name] = 1
	return name
}

// plainName returns text with _ for each run of characters other than letters, digits, _ and -, and none at its ends.
func plainName(s string, most int) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	name := b.String()
	return strings.Trim(name[:min(len(name), most)], "_")
}

// resolve follows the references of n within the document.
func (r *reader) resolve(n *node) (*node, error) {
	for range 32 {
		ref := n.get("$ref")
		if ref == nil || ref.kind != '"' {
			return n, nil
		}
		target, err := r.find(ref)
		if err != nil {
			return nil, err
		}
		n = target
	}
	return nil, fmt.Errorf("the reference %s leads to itself", quote(n.string("$ref")))
}

// find returns what a reference names.
func (r *reader) find(ref *node) (*node, error) {
	if n := r.found[ref.text]; n != nil {
		return n, nil
	}
	pointer, local := strings.CutPrefix(ref.text, "#")
	if !local {
		return nil, fmt.Errorf("line %d refers to another document, %s; put all into one (redocly bundle and swagger-cli bundle do)", ref.line, quote(ref.text))
	}
	if text, err := url.PathUnescape(pointer); err == nil {
		pointer = text
	}
	if pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("line %d refers to the name %s, and only places in the document can be found", ref.line, quote(ref.text))
	}
	n := r.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = unescapePointer.Replace(step)
		next := n.get(step)
		if n.kind == '[' {
			if i := index(step); i < len(n.items) {
				next = n.items[i]
			}
		}
		if next == nil {
			return nil, fmt.Errorf("line %d refers to %s, which is not in the document", ref.line, quote(ref.text))
		}
		n = next
	}
	r.found[ref.text] = n
	return n, nil
}

// unescapePointer is as RFC 6901 has it: one pass, so that ~01 is ~1.
var unescapePointer = strings.NewReplacer("~1", "/", "~0", "~")

// index reads the index of an array in a pointer; a large number without one.
func index(step string) int {
	n := 0
	for _, c := range step {
		if c < '0' || c > '9' || n > 1<<20 {
			return 1 << 30
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// quote quotes text of the document in one line.
func quote(s string) string { return fmt.Sprintf("%q", text.Short(s)) }

// oneLine returns text of the document in one line of at most so many bytes.
func oneLine(s string, most int) string { return text.Clip(strings.Join(strings.Fields(s), " "), most) }
