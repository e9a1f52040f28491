package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/urimatch"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/schema"
)

type resourceEntry struct {
	def  *Resource
	read func(ctx context.Context, uri string) (*ReadResult, error)
	encoding
}

func (r *resourceEntry) name() string          { return r.def.URI }
func (r *resourceEntry) json() json.RawMessage { return r.of(r.def) }

type templateEntry struct {
	def   *ResourceTemplate
	match *urimatch.Template
	read  func(ctx context.Context, uri string, vars uritemplate.Values) (*ReadResult, error)
	encoding
}

func (t *templateEntry) name() string          { return t.def.URITemplate }
func (t *templateEntry) json() json.RawMessage { return t.of(t.def) }

// scheme matches the scheme of a URI (RFC 3986, section 3.1).
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// AddResource adds a resource with contents from a Go function, or replaces the resource of that
// URI. Out is a string (text), []byte (blob), ResourceContents, []ResourceContents or *ReadResult;
// a value of any other type becomes its JSON. An empty URI or MIME type is filled in.
//
// AddResource panics if the resource cannot work: it has no name, its URI does not begin with a
// scheme, only tools and prompts can return Out, h is nil, or s has a Handler.
//
// Specification: 2026-07-28, server/resources.
func AddResource[Out any](s *Server, r Resource, h func(context.Context) (Out, error)) {
	if !scheme.MatchString(r.URI) || r.Name == "" {
		panic(fmt.Errorf("mcp: AddResource %q %q: a resource has a URI, such as app:notes or file:///notes, and a name", r.URI, r.Name))
	}
	err := checkContents(reflect.TypeFor[Out]())
	if err == nil {
		err = s.checkAdd(h == nil)
	}
	if err != nil {
		panic(fmt.Errorf("mcp: AddResource %q: %w", r.URI, err))
	}
	mime := mimeOf[Out](r.MIMEType)
	s.resources.put(&resourceEntry{def: &r, read: func(ctx context.Context, uri string) (*ReadResult, error) {
		out, err := h(ctx)
		if err != nil {
			return nil, err
		}
		return readResult(out, uri, mime)
	}})
	s.feed.changed(KindResource)
}

// AddResourceTemplate adds a family of resources, or replaces the one of that template. The
// variables of the URI template bind to the fields of In by their json names: strings, numbers,
// booleans, types that decode themselves from text, and lists of these. Out is as for
// [AddResource]. For a URI without a resource, h returns [ResourceNotFound].
//
// AddResourceTemplate panics if the template cannot work: a variable has no field, a required field
// has no variable, a field or Out has an unsuitable type, t.Complete names something other than a
// variable, h is nil, s has a Handler, or the template has more than 16 expressions or 2 KiB. A URI
// of more than 16 KiB, or with very many values, matches no template.
func AddResourceTemplate[In, Out any](s *Server, t ResourceTemplate, h func(context.Context, In) (Out, error)) {
	typ, err := schema.For[In]()
	// A variable may supply the scheme; otherwise the template begins with one.
	if err == nil && (t.Name == "" || !strings.HasPrefix(t.URITemplate, "{") && !scheme.MatchString(t.URITemplate)) {
		err = errors.New("a resource template has a URI template, such as app:notes/{day}, and a name")
	}
	var match *urimatch.Template
	if err == nil {
		match, err = urimatch.New(t.URITemplate)
	}
	var vars []variable
	if err == nil {
		vars, err = bindVariables(match, reflect.TypeFor[In](), typ)
	}
	if err == nil {
		err = checkComplete(t.Complete, "variable", match.Names())
	}
	if err == nil {
		err = checkContents(reflect.TypeFor[Out]())
	}
	if err == nil {
		err = s.checkAdd(h == nil)
	}
	if err != nil {
		panic(fmt.Errorf("mcp: AddResourceTemplate %q: %w", t.URITemplate, err))
	}
	mime := mimeOf[Out](t.MIMEType)
	s.templates.put(&templateEntry{def: &t, match: match, read: func(ctx context.Context, uri string, values uritemplate.Values) (*ReadResult, error) {
		var in In
		if err := typ.Decode(bound(vars, values), &in); err != nil {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "resource %q: %v", text.Short(uri), err)
		}
		out, err := h(ctx, in)
		if err != nil {
			return nil, err
		}
		return readResult(out, uri, mime)
	}})
	s.feed.changed(KindResourceTemplate)
}

// checkContents checks that values of a type can become the contents of a resource.
func checkContents(t reflect.Type) error {
	const allowed = "string, []byte, ResourceContents, []ResourceContents, *ReadResult, or a type that is written as JSON"
	switch {
	case isContent(t), isContents(t), t == reflect.TypeFor[*ToolResult](), t == reflect.TypeFor[*PromptResult]():
		return fmt.Errorf("a resource cannot return %s, which is for tools and prompts; use %s", t, allowed)
	}
	return checkOut(t, allowed)
}

// mimeOf returns the MIME type for values of Out, unless one is given.
func mimeOf[Out any](given string) string {
	if given != "" {
		return given
	}
	switch reflect.TypeFor[Out]() {
	case reflect.TypeFor[string]():
		return "text/plain"
	case reflect.TypeFor[[]byte]():
		return "application/octet-stream"
	}
	return "application/json"
}

func readResult(v any, uri, mime string) (*ReadResult, error) {
	var res ReadResult
	switch v := v.(type) {
	case string:
		res.Contents = []ResourceContents{{Text: v}}
	case []byte:
		if v == nil {
			v = []byte{}
		}
		res.Contents = []ResourceContents{{Blob: v}}
	case ResourceContents:
		res.Contents = []ResourceContents{v}
	case []ResourceContents:
		res.Contents = v
	case *ReadResult:
		if v == nil {
			return nil, fmt.Errorf("resource %q returned no result", text.Short(uri))
		}
		return v, nil
	default:
		raw, err := jsonx.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("resource %q: encode: %w", text.Short(uri), err)
		}
		res.Contents = []ResourceContents{{Text: string(raw)}}
	}
	for i := range res.Contents {
		c := &res.Contents[i]
		c.URI, c.MIMEType = orDefault(c.URI, uri), orDefault(c.MIMEType, mime)
	}
	return &res, nil
}

func (s *Server) listResources(ctx context.Context, req *Request) (Result, error) {
	if !s.resources.used() && !s.templates.used() {
		return nil, Errorf(jsonrpc.CodeMethodNotFound, "%s: this server has no resources", req.Method)
	}
	return listPage(ctx, s, &s.resources, KindResource, req, func(e *resourceEntry) *Resource { return e.def })
}

func (s *Server) listTemplates(ctx context.Context, req *Request) (Result, error) {
	if !s.resources.used() && !s.templates.used() {
		return nil, Errorf(jsonrpc.CodeMethodNotFound, "%s: this server has no resources", req.Method)
	}
	return listPage(ctx, s, &s.templates, KindResourceTemplate, req, func(e *templateEntry) *ResourceTemplate { return e.def })
}

// readResource answers resources/read from the resource of that URI, or else from the first
// template that matches.
func (s *Server) readResource(ctx context.Context, req *Request) (Result, error) {
	uri, err := req.paramString("uri")
	if err != nil {
		return nil, err
	}
	if r, ok := s.resources.snapshot().by[uri]; ok && s.visible(ctx, KindResource, uri) {
		return orNothing(r.read(ctx, uri))
	}
	for _, p := range s.templates.snapshot().order {
		if !s.visible(ctx, KindResourceTemplate, p.e.name()) {
			continue
		}
		vars, err := p.e.match.Match(uri)
		switch {
		case err != nil:
			return nil, Errorf(jsonrpc.CodeInvalidParams, "resource %q: %v", text.Short(uri), err)
		case vars != nil:
			return orNothing(p.e.read(ctx, uri, vars))
		}
	}
	return nil, ResourceNotFound(uri)
}

// orNothing turns a nil pointer into a nil Result.
func orNothing(r *ReadResult, err error) (Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}
