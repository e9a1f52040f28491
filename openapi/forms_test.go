package openapi_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/openapi"
)

// Files of a form are sent as their content wherever its schema says that they are files: in parts of the form, in parts and
// alternatives of a property, behind references and in lists.
func TestFilesInForms(t *testing.T) {
	doc := document(t, "3.1.0", `
paths:
  /x:
    post:
      operationId: post
      requestBody:
        content:
          multipart/form-data:
            schema:
              allOf:
                - $ref: '#/components/schemas/Base'
                - properties: {photo: {description: A photo, allOf: [{$ref: '#/components/schemas/File'}]}, more: {$ref: '#/components/schemas/Files'}}
                - oneOf: [{properties: {either: {anyOf: [{$ref: '#/components/schemas/File'}, {type: 'null'}]}}}, {properties: {text: {oneOf: [{type: string}, {$ref: '#/components/schemas/File'}]}}}]
components:
  schemas:
    Base: {type: object, properties: {first: {type: string, format: binary}, note: {type: string}, next: {$ref: '#/components/schemas/Base'}}}
    File: {type: string, format: binary}
    Files: {type: array, items: {allOf: [{$ref: '#/components/schemas/File'}]}}
`)
	e := newEcho(t)
	content := "\xff\xd8\x00"
	file := base64.StdEncoding.EncodeToString([]byte(content))
	res := call(t, open(t, doc, openapi.Options{Base: e.url}), "post", fmt.Sprintf(`{"body":{"first":%q,"note":%[1]q,"photo":%[1]q,"more":[%[1]q,%[1]q],"either":%[1]q,"text":%[1]q}}`, file))
	got := e.take()
	if res.IsError || got == nil {
		t.Fatalf("%s with %s", res.Text(), doc.Operations[0].Input)
	}
	_, params, _ := mime.ParseMediaType(got.header.Get("Content-Type"))
	parts := multipart.NewReader(strings.NewReader(got.body), params["boundary"])
	var names []string
	for part, err := parts.NextPart(); err != io.EOF; part, err = parts.NextPart() {
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(part)
		name, isFile := part.FormName(), string(data) == content
		if isFile != (part.FileName() != "") || !isFile && string(data) != file {
			t.Errorf("%s: %q", name, data)
		}
		names = append(names, fmt.Sprintf("%s %t", name, isFile))
	}
	slices.Sort(names)
	if want := "either true, first true, more true, more true, note false, photo true, text false"; strings.Join(names, ", ") != want {
		t.Errorf("parts %s, want %s", strings.Join(names, ", "), want)
	}
	if input := string(doc.Operations[0].Input); !strings.Contains(input, `{"type":"string","contentEncoding":"base64","description":"A photo"}`) {
		t.Errorf("the schema does not say base64: %s", input)
	}
}

// No argument sets what the server sets itself, whose first or last value an API may believe: a credential in the query or in
// a cookie, and a cookie in a header of the operator.
func TestArgumentsAreNotCredentials(t *testing.T) {
	doc := document(t, "3.0.0", `
paths:
  /x:
    get:
      operationId: get
      parameters:
        - {name: filter, in: query, schema: {type: object}}
        - {name: deep, in: query, style: deepObject, explode: true, schema: {type: object}}
        - {name: jar, in: cookie, schema: {type: object}}
        - {name: team, in: cookie, schema: {type: string}}
        - {name: key, in: header, schema: {type: string}}
      security: [{query: [], cookie: []}]
  /free: {get: {operationId: free, security: [], parameters: [{name: filter, in: query, schema: {type: object}}]}}
components: {securitySchemes: {query: {type: apiKey, in: query, name: key}, cookie: {type: apiKey, in: cookie, name: sid}}}
`)
	e := newEcho(t)
	s := open(t, doc, openapi.Options{Base: e.url, Header: http.Header{"Cookie": {"team=ours; a=b", "c=d"}}, Credentials: map[string]string{"query": "key-of-the-query", "cookie": "key-in-a-cookie"}})
	for _, args := range []string{
		`{"filter":{"key":"theirs"}}`, `{"filter":{"Key":"theirs","x":1}}`, `{"jar":{"sid":"theirs"}}`, `{"jar":{"x":"1","SID":"theirs"}}`, `{"jar":{"team":"theirs"}}`,
		`{"jar":{"a":"theirs"}}`, `{"jar":{"c":"theirs"}}`, `{"team":"theirs"}`,
	} {
		if res, got := call(t, s, "get", args), e.take(); got != nil || !res.IsError || !strings.Contains(res.Text(), "which only this server sets") {
			t.Errorf("%s arrives as %v: %s", args, got, res.Text())
		}
	}
	call(t, s, "get", `{"filter":{"q":"1"},"deep":{"key":"2"},"jar":{"x":"1; sid=theirs"},"key":"3"}`)
	got := e.take()
	if want := "GET /x?q=1&deep%5Bkey%5D=2&key=key-of-the-query"; got == nil || got.line != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if want := "team=ours; a=b; c=d; x=1%3B%20sid%3Dtheirs; sid=key-in-a-cookie"; got != nil && strings.Join(got.header["Cookie"], "|") != want {
		t.Errorf("cookies %q, want %s", got.header["Cookie"], want)
	}
	call(t, s, "free", `{"filter":{"key":"7"}}`)
	if got := e.take(); got == nil || got.line != "GET /free?key=7" {
		t.Errorf("an operation without security: %+v", got)
	}
}

// A credential that changes is asked for with each request, hidden in answers, and checked as one that does not.
func TestChangingCredentials(t *testing.T) {
	doc := document(t, "3.0.0", `
paths:
  /x: {get: {operationId: get, security: [{mutual: []}, {key: [], basic: []}, {cookie: []}]}}
  /free: {get: {operationId: free}}
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}, basic: {type: http, scheme: basic}, cookie: {type: apiKey, in: cookie, name: c}, mutual: {type: mutualTLS}}}
`)
	e := newEcho(t)
	e.answer = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Key"), " ", r.Header.Get("Authorization"), " ", r.Header.Get("Cookie"))
	}
	var key string
	var fault error
	asked := 0
	s := open(t, doc, openapi.Options{Base: e.url, Credentials: map[string]string{"basic": "user:password-1"}, Credential: func(_ context.Context, scheme string) (string, error) {
		asked++
		if scheme == "key" {
			return key, fault
		}
		return "", nil
	}})
	for i := range 3000 { // far more than are remembered
		key = fmt.Sprint("changing-key-", i)
		if i == 2 {
			e.answer = func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, r.Header.Get("X-Key"), " ", r.Header.Get("Authorization"), " changing-key-", i-1)
			}
		}
		res := call(t, s, "get", `{}`)
		if got := e.take(); res.IsError || strings.Contains(res.Text(), "-key-") && i < 3 || strings.Contains(res.Text(), key) || strings.Contains(res.Text(), "dXNlcjpwYXNzd29yZC0x") || got.header.Get("X-Key") != key {
			t.Fatalf("%d: %+v, %s", i, got, res.Text())
		}
	}
	key = ""
	if res, got := call(t, s, "get", `{}`), e.take(); res.IsError || got.header.Get("X-Key")+got.header.Get("Authorization") != "" {
		t.Errorf("without the key: %+v, %s", got, res.Text())
	}
	for _, bad := range []string{"a\r\nX-Evil: 1", "changing-key-\x00"} {
		key = bad
		if res, got := call(t, s, "get", `{}`), e.take(); !res.IsError || got != nil || !strings.Contains(res.Text(), `this server cannot use its credential for "key"`) {
			t.Errorf("%q: %+v, %s", bad, got, res.Text())
		}
	}
	key, fault = "", errors.New("no file")
	if res, got := call(t, s, "get", `{}`), e.take(); !res.IsError || got != nil || !strings.Contains(res.Text(), `this server cannot use its credential for "key": no file`) {
		t.Errorf("an error: %+v, %s", got, res.Text())
	}
	before := asked
	if res := call(t, s, "free", `{}`); res.IsError || asked != before {
		t.Errorf("an operation without security asks for a credential: %s", res.Text())
	}
}

// The certificates of Options are for the host of the base alone.
func TestCertificates(t *testing.T) {
	var mu sync.Mutex
	shown := map[string]int{} // guarded by mu
	start := func(name string) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			shown[name] = len(r.TLS.PeerCertificates)
			mu.Unlock()
			io.WriteString(w, "{}")
		}))
		s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	api, other := start("api"), start("other")
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get}}, /y: {get: {operationId: other, servers: [{url: '"+other.URL+"'}]}}}")
	roots := x509.NewCertPool()
	roots.AddCert(api.Certificate())
	own := &tls.Config{RootCAs: roots, Certificates: api.TLS.Certificates}
	for _, tt := range []struct {
		tool     string
		secure   *tls.Config
		want     string
		presents int
	}{{"get", nil, "certificate signed by unknown authority", -1}, {"get", own, "{}", 1}, {"other", own, "certificate signed by unknown authority", -1}} {
		mu.Lock()
		clear(shown)
		mu.Unlock()
		res := call(t, open(t, doc, openapi.Options{Base: api.URL, Private: true, TLS: tt.secure}), tt.tool, `{}`)
		mu.Lock()
		if n, came := shown["api"], len(shown) > 0; !strings.Contains(res.Text(), tt.want) || came != (tt.presents >= 0) || came && n != tt.presents {
			t.Errorf("%s: %s, presented %v", tt.tool, res.Text(), shown)
		}
		mu.Unlock()
	}
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/doc" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		io.WriteString(w, "openapi: 3.0.0")
	}))
	t.Cleanup(web.Close)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, tt := range []struct {
		path   string
		secure *tls.Config
		want   string
	}{{"/doc", &tls.Config{RootCAs: roots}, "<nil>"}, {"/doc", nil, "unknown authority"}, {"/other", &tls.Config{RootCAs: roots}, "401 Unauthorized; download the document with your credentials"}} {
		if _, _, err := openapi.Load(t.Context(), web.URL+tt.path, true, tt.secure); !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: %v, want %s", tt.path, err, tt.want)
		}
	}
}
