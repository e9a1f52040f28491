package openapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/schema"
)

// document parses a document of a version with the given paths; the rest of it may follow them.
func document(t testing.TB, version, rest string) *openapi.Document {
	t.Helper()
	name := "openapi"
	if strings.HasPrefix(version, "2") {
		name = "swagger"
	}
	doc, err := openapi.Parse([]byte(name + ": '" + version + "'\ninfo: {title: Shop, version: '1'}\n" + rest))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// seen is a request as it came over the wire.
type seen struct {
	line, body string
	header     http.Header
}

// echo is an API that keeps its requests.
type echo struct {
	mu     sync.Mutex
	last   *seen // nil: none came
	answer func(w http.ResponseWriter, r *http.Request)
	url    string
}

func newEcho(t testing.TB) *echo {
	e := &echo{answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"ok":true}`)
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.last = &seen{r.Method + " " + r.RequestURI, string(body), r.Header}
		e.mu.Unlock()
		e.answer(w, r)
	}))
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// take returns the request that came, nil if none did.
func (e *echo) take() *seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.last
	e.last = nil
	return s
}

// open opens a session with the server of a document.
func open(t testing.TB, doc *openapi.Document, o openapi.Options) *mcp.Session {
	t.Helper()
	srv, err := openapi.New(doc, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := (&mcp.Client{}).Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// call calls a tool; an error of the protocol fails the test.
func call(t testing.TB, s *mcp.Session, name, args string) *mcp.ToolResult {
	t.Helper()
	res, err := s.CallTool(t.Context(), name, json.RawMessage(args))
	if err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return res
}

// The examples of the specification for each style (OpenAPI 3.1.1, Style Examples), and those of 2.0.
func TestStyles(t *testing.T) {
	const scalar, list, object = `"blue"`, `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, tt := range []struct{ in, style, explode, value, want string }{
		{"path", "simple", "false", scalar, "/x/blue"},
		{"path", "simple", "false", list, "/x/blue,black,brown"},
		{"path", "simple", "false", object, "/x/R,100,G,200,B,150"},
		{"path", "simple", "true", object, "/x/R=100,G=200,B=150"},
		{"path", "label", "false", scalar, "/x/.blue"},
		{"path", "label", "true", list, "/x/.blue.black.brown"},
		{"path", "label", "false", list, "/x/.blue,black,brown"},
		{"path", "label", "false", object, "/x/.R,100,G,200,B,150"},
		{"path", "label", "true", object, "/x/.R=100.G=200.B=150"},
		{"path", "matrix", "false", scalar, "/x/;color=blue"},
		{"path", "matrix", "false", list, "/x/;color=blue,black,brown"},
		{"path", "matrix", "true", list, "/x/;color=blue;color=black;color=brown"},
		{"path", "matrix", "false", object, "/x/;color=R,100,G,200,B,150"},
		{"path", "matrix", "true", object, "/x/;R=100;G=200;B=150"},
		{"query", "form", "true", `""`, "/x?color="},
		{"query", "form", "true", scalar, "/x?color=blue"},
		{"query", "form", "false", list, "/x?color=blue,black,brown"},
		{"query", "form", "true", list, "/x?color=blue&color=black&color=brown"},
		{"query", "form", "false", object, "/x?color=R,100,G,200,B,150"},
		{"query", "form", "true", object, "/x?R=100&G=200&B=150"},
		{"query", "spaceDelimited", "false", list, "/x?color=blue%20black%20brown"},
		{"query", "pipeDelimited", "false", list, "/x?color=blue%7Cblack%7Cbrown"},
		{"query", "deepObject", "true", object, "/x?color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"query", "deepObject", "true", `{"a":[1,{"b":true}]}`, "/x?color%5Ba%5D%5B0%5D=1&color%5Ba%5D%5B1%5D%5Bb%5D=true"},
		{"query", "form", "true", `"a&b=c d+é/%"`, "/x?color=a%26b%3Dc%20d%2B%C3%A9%2F%25"},
		{"query", "form", "false", `["a,b","c"]`, "/x?color=a%2Cb,c"},
		{"query", "form", "true", `12345678901234567890.10`, "/x?color=12345678901234567890.10"},
		{"path", "simple", "false", `"a/b c"`, "/x/a%2Fb%20c"},
	} {
		path := "/x"
		if tt.in == "path" {
			path = "/x/{color}"
		}
		doc := document(t, "3.0.3", fmt.Sprintf("paths: {%q: {get: {operationId: get, parameters: [{name: color, in: %s, required: true, style: %s, explode: %s, schema: {}}]}}}", path, tt.in, tt.style, tt.explode))
		e := newEcho(t)
		call(t, open(t, doc, openapi.Options{Base: e.url}), "get", `{"color":`+tt.value+`}`)
		if got := e.take(); got == nil || got.line != "GET "+tt.want {
			t.Errorf("%s %s explode %s of %s: %v, want %s", tt.in, tt.style, tt.explode, tt.value, got, tt.want)
		}
	}
	for format, want := range map[string]string{"csv": "a,b", "ssv": "a%20b", "tsv": "a%09b", "pipes": "a%7Cb", "multi": "a&l=b"} {
		doc := document(t, "2.0", "paths: {/x: {get: {operationId: get, parameters: [{name: l, in: query, type: array, items: {type: string}, collectionFormat: "+format+"}]}}}")
		e := newEcho(t)
		call(t, open(t, doc, openapi.Options{Base: e.url}), "get", `{"l":["a","b"]}`)
		if got := e.take(); got == nil || got.line != "GET /x?l="+want {
			t.Errorf("%s: %v, want %s", format, got, want)
		}
	}
}

// Headers, cookies, JSON in a parameter, a query in a path, and a path of the base.
func TestParameters(t *testing.T) {
	doc := document(t, "3.1.0", `
paths:
  /find?kind=all#first:
    parameters: [{name: X-Trace, in: header, schema: {type: string}}, {name: q, in: query, schema: {type: string}}]
    get:
      operationId: find
      parameters:
        - {name: session, in: cookie, schema: {type: array}}
        - {name: q, in: query, allowReserved: true, schema: {type: string}}
        - {name: q, in: header, schema: {type: integer}}
        - {name: where, in: query, content: {application/json: {schema: {type: object}}}}
        - {name: "$top[x]", in: query, schema: {type: integer}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: Host, in: header, schema: {type: string}}
`)
	if len(doc.Unmapped) != 1 || doc.Unmapped[0].Text != `the header parameter "Host" is one that an argument must not set; it is left out` {
		t.Errorf("unmapped: %v", doc.Unmapped)
	}
	e := newEcho(t)
	s := open(t, doc, openapi.Options{Base: e.url + "/v1/", Header: http.Header{"X-Team": {"a"}}})
	call(t, s, "find", `{"session":["a","b;c"],"q":"a/b?c&d","q_header":7,"where":{"n":[1]},"top_x":3,"X-Trace":null}`)
	got := e.take()
	if want := "GET /v1/find?kind=all&q=a/b?c%26d&where=%7B%22n%22%3A%5B1%5D%7D&%24top%5Bx%5D=3"; got.line != want {
		t.Errorf("%s, want %s", got.line, want)
	}
	if h := got.header; h.Get("Cookie") != "session=a; session=b%3Bc" || h.Get("Q") != "7" || h["X-Trace"] != nil || h.Get("X-Team") != "a" {
		t.Errorf("headers %v", h)
	}
}

// Bodies in each of their forms.
func TestBodies(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte{0xff, 0xd8, 0})
	for _, tt := range []struct{ content, body, mediaType, want string }{
		{"application/json: {schema: {type: object}}", `{"n":1.0,"s":"é"}`, "application/json", `{"n":1.0,"s":"é"}`},
		{"application/vnd.x+json: {schema: {}}, text/plain: {}", `[1]`, "application/vnd.x+json", `[1]`},
		{"application/x-www-form-urlencoded: {schema: {type: object}}", `{"a":[1,"b c"],"o":{"x":1},"t":true}`, "application/x-www-form-urlencoded", "a=1&a=b%20c&o=%7B%22x%22%3A1%7D&t=true"},
		{"application/x-www-form-urlencoded: {schema: {type: object}, encoding: {o: {style: deepObject, explode: true}, a: {explode: false}}}", `{"a":[1,2],"o":{"x":1}}`, "application/x-www-form-urlencoded", "a=1,2&o%5Bx%5D=1"},
		{"text/plain: {schema: {type: string}}", `"a\nb"`, "text/plain", "a\nb"},
		{"application/xml: {schema: {type: object}}", `"<a/>"`, "application/xml", "<a/>"},
		{"image/jpeg: {schema: {type: string, format: binary}}", `"` + picture + `"`, "image/jpeg", "\xff\xd8\x00"},
		{"'*/*': {schema: {type: object}}", `{}`, "application/json", "{}"},
		{"multipart/form-data: {schema: {type: array}}, '*/*': {schema: {type: array}}", `[1]`, "application/json", "[1]"},
		{"'*/*': {schema: {type: array}}, application/merge-patch+json: {schema: {type: object}}", `{}`, "application/merge-patch+json", "{}"},
		{"'*/*': {schema: {type: string, format: binary}}", `"` + picture + `"`, "application/octet-stream", "\xff\xd8\x00"},
		{"'image/*': {schema: {type: string}}", `"` + picture + `"`, "application/octet-stream", "\xff\xd8\x00"},
		{"'text/*': {schema: {type: string}}", `"a"`, "text/plain", "a"},
	} {
		doc := document(t, "3.0.0", "paths: {/x: {post: {operationId: post, requestBody: {required: true, content: {"+tt.content+"}}}}}")
		e := newEcho(t)
		call(t, open(t, doc, openapi.Options{Base: e.url}), "post", `{"body":`+tt.body+`}`)
		if got := e.take(); got == nil || got.body != tt.want || got.header.Get("Content-Type") != tt.mediaType {
			t.Errorf("%s with %s: %+v", tt.content, tt.body, got)
		}
	}
	doc := document(t, "2.0", `
paths: {/x: {post: {operationId: post, parameters: [{name: f, in: formData, type: file, description: A photo}, {name: n, in: formData, type: integer, required: true}, {name: l, in: formData, type: array, items: {type: string}}]}}}
`)
	if want := `{"type":"object","properties":{"body":{"type":"object","properties":{"f":{"type":"string","contentEncoding":"base64","description":"A photo"},"n":{"type":"integer"},"l":{"type":"array","items":{"type":"string"}}},"required":["n"]}},"required":["body"],"additionalProperties":false}`; !sameJSON(string(doc.Operations[0].Input), want) {
		t.Errorf("%s, want %s", doc.Operations[0].Input, want)
	}
	e := newEcho(t)
	var form map[string][]string
	e.answer = func(w http.ResponseWriter, r *http.Request) {}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
			return
		}
		form = r.MultipartForm.Value
		f, h, err := r.FormFile("f")
		if err != nil {
			t.Error(err)
			return
		}
		content, _ := io.ReadAll(f)
		if h.Filename != "f" || !bytes.Equal(content, []byte{0xff, 0xd8, 0}) {
			t.Errorf("file %s: %x", h.Filename, content)
		}
	}))
	defer api.Close()
	call(t, open(t, doc, openapi.Options{Base: api.URL}), "post", `{"body":{"n":3,"l":["a","b"],"f":"`+picture+`"}}`)
	if fmt.Sprint(form) != "map[l:[a b] n:[3]]" {
		t.Errorf("form %v", form)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// Schemas of each revision are those of JSON Schema 2020-12.
func TestSchemas(t *testing.T) {
	for _, tt := range []struct{ version, schema, want string }{
		{"3.0.0", "{type: string, nullable: true, enum: [a, a, b]}", `{"type":["string","null"],"enum":["a","b",null]}`},
		{"3.0.0", "{type: integer, minimum: 1, exclusiveMinimum: true, maximum: 5, exclusiveMaximum: false}", `{"type":"integer","minimum":1,"exclusiveMinimum":1,"maximum":5}`},
		{"3.0.0", "{nullable: true, allOf: [{type: string}]}", `{"anyOf":[{"allOf":[{"type":"string"}]},{"type":"null"}]}`},
		{"3.0.0", "{type: object, required: [id, n], properties: {id: {type: integer, readOnly: true}, n: {type: string, example: x, xml: {}}}, discriminator: {propertyName: n}}",
			`{"type":"object","required":["n"],"properties":{"n":{"type":"string","examples":["x"]}}}`},
		{"3.0.0", "{type: integer, const: 3, minLength: -1, multipleOf: 0, required: true, enum: [], pattern: 7, items: 3, type2: x}", `{"type":"integer"}`},
		{"3.0.0", "{type: date}", `{}`},
		{"3.0.0", `{type: string, pattern: "^(?!a)b$"}`, `{"type":"string"}`},
		{"3.1.0", `{patternProperties: {"^(?!a)": {type: string}, "^b": {pattern: "^c"}}}`, `{"patternProperties":{"^b":{"pattern":"^c"}}}`},
		{"3.1.0", "{type: [string, 'null'], const: a, exclusiveMinimum: 3, examples: [b], $id: 'http://x', if: {minLength: 1}, then: false}",
			`{"type":["string","null"],"const":"a","exclusiveMinimum":3,"examples":["b"],"if":{"minLength":1},"then":false}`},
		{"3.1.0", "{oneOf: [{$ref: '#/components/schemas/A', description: d}, {type: array, prefixItems: [true], items: false}]}", `{"oneOf":[{"$ref":"#/$defs/A","description":"d"},{"type":"array","prefixItems":[true],"items":false}]}`},
		{"2.0", "{type: string, x-nullable: true}", `{"type":["string","null"]}`},
		{"2.0", "{$ref: '#/definitions/A', description: not read}", `{"$ref":"#/$defs/A"}`},
	} {
		paths := "paths: {/x: {post: {requestBody: {content: {application/json: {schema: " + tt.schema + "}}}}}}\ncomponents: {schemas: {A: {type: object, properties: {next: {$ref: '#/components/schemas/A'}}}}}"
		if tt.version == "2.0" {
			paths = "paths: {/x: {post: {parameters: [{name: b, in: body, schema: " + tt.schema + "}]}}}\ndefinitions: {A: {type: object, properties: {next: {$ref: '#/definitions/A'}}}}"
		}
		doc := document(t, tt.version, paths)
		if len(doc.Operations) != 1 {
			t.Fatalf("%s: %v", tt.schema, doc.Unmapped)
		}
		var input struct {
			Properties struct{ Body json.RawMessage }
			Defs       json.RawMessage `json:"$defs"`
		}
		if err := json.Unmarshal(doc.Operations[0].Input, &input); err != nil || !sameJSON(string(input.Properties.Body), tt.want) {
			t.Errorf("%s %s: %s (%v), want %s", tt.version, tt.schema, input.Properties.Body, err, tt.want)
		}
		if strings.Contains(tt.want, "$ref") && !sameJSON(string(input.Defs), `{"A":{"type":"object","properties":{"next":{"$ref":"#/$defs/A"}}}}`) {
			t.Errorf("$defs %s", input.Defs)
		}
		if _, err := schema.Compile(doc.Operations[0].Input); err != nil {
			t.Error(err)
		}
	}
}

// Parts that cannot be mapped are named with their places; the rest is there.
func TestUnmapped(t *testing.T) {
	doc := document(t, "3.0.0", `
servers: [{url: "https://a.example/v1"}]
paths:
  /ok: {get: {}}
  /remote: {post: {requestBody: {content: {application/json: {schema: {$ref: "other.yaml#/A"}}}}}}
  /gone: {get: {parameters: [{$ref: "#/components/parameters/None"}]}}
  /loop: {get: {parameters: [{$ref: "#/components/parameters/Loop"}]}}
  /a/../b: {get: {}}
  /open{: {get: {}}
  /trace: {trace: {}}
  nopath: {get: {}}
  /form: {post: {requestBody: {content: {multipart/form-data: {schema: {type: array}}}}}}
  /need: {get: {parameters: [{name: Cookie, in: header, required: true, schema: {}}]}}
webhooks: {made: {}}
components: {parameters: {Loop: {$ref: "#/components/parameters/Loop"}}}
`)
	var got []string
	for _, f := range doc.Unmapped {
		got = append(got, f.Error())
	}
	for i, want := range []string{
		`7:19: POST /remote: line 7 refers to another document, "other.yaml#/A"`,
		`8:16: GET /gone: line 8 refers to "#/components/parameters/None", which is not in the document`,
		`9:16: GET /loop: the reference "#/components/parameters/Loop" leads to itself`,
		`10:18: GET /a/../b: the segment ".." of a path leads elsewhere`,
		`11:17: GET /open{: the braces of the path do not match`,
		`12:19: TRACE /trace: the method tells about the server`,
		`13:11: paths: "nopath" is not a path`,
		`14:17: POST /form: the body is sent as a form, "multipart/form-data", and its schema in line 14 is not one of an object`,
		`15:16: GET /need: the header parameter "Cookie" is one that an argument must not set`,
		`16:11: webhooks: the API calls these`,
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], want) {
			t.Errorf("%d: %q, want %q", i, got[min(i, len(got)-1)], want)
		}
	}
	if len(doc.Operations) != 1 || doc.Operations[0].Name != "get_ok" {
		t.Errorf("operations %v", doc.Operations)
	}
}

// Files that are not such documents are refused with what they are.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "it is empty",
		"<!doctype html>":                     "it is HTML or XML",
		`{"openapi":"3.0.0",}`:                "1:19: it is not valid JSON",
		`{"openapi":"4.0.0"}`:                 `1:12: it says openapi "4.0.0"; the revisions 2.0, 3.0, 3.1 and 3.2 can be read`,
		`{"asyncapi":"2.0"}`:                  "it is not an OpenAPI document",
		`{"openapi":"3.0.0"}`:                 `it has no "paths"`,
		"a: [":                                "it is not valid YAML",
		"- a":                                 "it is not an object",
		"a: &a [*a]":                          "contains itself",
		"\xff":                                "UTF-8",
		"openapi: 3.0.0\n---\nopenapi: 3.0.0": "several YAML documents",
		strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200): "nests more than 128 levels",
		`{"openapi":"3.0.0","paths":{}} x`:                            "it is not valid JSON",
		"openapi: 3.0.0\nx: [" + strings.Repeat("a,", 2<<20) + "]":    "it is too large for YAML; convert it to JSON",
		"openapi: 3.0.0\nx:\n" + strings.Repeat("- - -\n", 1<<19):     "it is too large for YAML; convert it to JSON",
	} {
		if _, err := openapi.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// Few aliases that stand for very much end in time and in bounds.
func TestAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("openapi: 3.0.0\nx0: &a0 {type: string}\n")
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&b, "x%d: &a%d {allOf: [*a%d, *a%d, *a%d]}\n", i, i, i-1, i-1, i-1)
	}
	b.WriteString("paths: {/x: {post: {requestBody: {content: {application/json: {schema: *a59}}}}}, /y: {post: {requestBody: {content: {application/json: {schema: {default: *a59}}}}}}}")
	doc, err := openapi.Parse([]byte(b.String()))
	if err == nil && len(doc.Operations) != 0 || err != nil && !strings.Contains(err.Error(), "excessive aliasing") {
		t.Errorf("%v, %v", doc, err)
	}
}

// The operations that are served are chosen by name, by method and path, or by tag, and may have other names. Those that
// need no argument are resources, too.
func TestServes(t *testing.T) {
	data, err := os.ReadFile("testdata/petstore.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	e := newEcho(t)
	for _, tt := range []struct {
		include, exclude []string
		want             string
	}{
		{nil, nil, "all post_pets get_pet delete_pets_petId post_upload"},
		{[]string{"tag:pet*"}, nil, "all"},
		{[]string{"* /pets/*"}, []string{"DELETE *"}, "get_pet"},
		{[]string{"post_*"}, nil, "post_pets post_upload"},
	} {
		s := open(t, doc, openapi.Options{Base: e.url, Include: tt.include, Exclude: tt.exclude, Names: map[string]string{"listPets": "all"}, Resources: true})
		var names []string
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			if a := tool.Annotations; (tool.Name == "all" || tool.Name == "get_pet") != *a.ReadOnly {
				t.Errorf("annotations of %s: %+v", tool.Name, a)
			}
		}
		slices.Sort(names)
		want := strings.Fields(tt.want)
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("%v, %v: %v, want %v", tt.include, tt.exclude, names, want)
		}
		if tt.include != nil {
			continue
		}
		res, err := s.ReadResource(t.Context(), "openapi:/pets")
		if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != `{"ok":true}` || res.Contents[0].MIMEType != "application/json" {
			t.Errorf("the resource: %+v, %v", res, err)
		}
		if got := e.take(); got.line != "GET /pets" {
			t.Error(got.line)
		}
	}
	if _, err := openapi.New(doc, openapi.Options{Include: []string{"x"}}); err == nil || err.Error() != "none of the 5 operations is included" {
		t.Error(err)
	}
	for _, names := range []map[string]string{{"x": "y"}, {"listPets": "get_pet"}} {
		if _, err := openapi.New(doc, openapi.Options{Names: names}); err == nil {
			t.Errorf("%v passes", names)
		}
	}
}

func FuzzParse(f *testing.F) {
	seed, err := os.ReadFile("testdata/petstore.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"swagger":"2.0","paths":{"/{a}":{"get":{"parameters":[{"name":"a","in":"path","type":"string"}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := openapi.Parse(data)
		if err != nil {
			return
		}
		for _, op := range doc.Operations {
			if _, err := schema.Compile(op.Input); err != nil {
				t.Errorf("%v: %v in %s", op, err, op.Input)
			}
		}
		openapi.New(doc, openapi.Options{Base: "https://api.example.com"})
	})
}
