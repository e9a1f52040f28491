package openapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/openapi"
)

// One member of a document that means something to this program does not keep the other operations from being served.
func TestNamesOfMeaning(t *testing.T) {
	for _, schema := range []string{
		`{type: object, properties: {x-mcp-header: {type: string}}}`,
		`{type: object, properties: {x-mcp-header: {type: integer, default: {x-mcp-header: 3}}}}`,
		`{type: object, default: {x-mcp-header: a}}`,
		`{type: object, properties: {"$ref": {type: string}, "$defs": {type: string}, "$id": {type: string}, "$schema": {type: string}, "__proto__": {type: string}}}`,
		`{type: object, enum: [{"$ref": "http://169.254.169.254/"}], x-mcp-header: a}`,
		`{type: object, properties: {a: {$ref: "#/components/schemas/x-mcp-header"}}}`,
	} {
		doc := document(t, "3.1.0", "paths: {/x: {post: {operationId: bad, requestBody: {content: {application/json: {schema: "+schema+"}}}}}, /y: {get: {operationId: good}}}\ncomponents: {schemas: {x-mcp-header: {type: string}}}")
		e := newEcho(t)
		s := open(t, doc, openapi.Options{Base: e.url})
		if res := call(t, s, "good", `{}`); res.IsError {
			t.Errorf("%s: %s", schema, res.Text())
		}
	}
}

// The server of an operation cannot send credentials elsewhere, or reach what the document must not. Each of these
// is named as not mappable, refused, or at the base.
func TestServerAttacks(t *testing.T) {
	e, other := newEcho(t), newEcho(t)
	host, elsewhere := strings.TrimPrefix(e.url, "http://"), strings.TrimPrefix(other.url, "http://")
	for server, want := range map[string]string{
		"http://" + elsewhere: "", "//" + elsewhere: "", `http:\\` + elsewhere: "", "http://" + host + "@" + elsewhere: "", "http://u:p@" + host: "",
		"http://" + host + ".evil.example": "", "http://" + host + "#@evil.example": "", "https://" + host: "",
		"/../..": "", "../../x": "", "/a/../../b": "", "http://" + host + "/..": "", "http://" + host + "/%2e%2e/x": "", "/%252e%252e": "",
		"/x?admin=1": "", "/x#y": "", "http://" + host + "/x?admin=1&": "", "/{v}": "", "http://" + host + "/v1\r\nX-A: b": "",
		"javascript:alert(1)": "", "file:///etc/passwd": "", "http:///x": "", "http:x": "", "%": "", "http://[": "", "unix:///var/run/docker.sock": "",
		"/v2": "GET /v2/x", "http://" + host + "/v3": "GET /v3/x", "//" + host: "GET /x", "": "GET /base/x",
	} {
		doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get, servers: [{url: "+quoted(server)+"}]}}}\ncomponents: {securitySchemes: {k: {type: apiKey, in: header, name: X-Key}}}\nsecurity: [{k: []}]")
		text := "not mapped"
		if len(doc.Operations) > 0 {
			text = call(t, open(t, doc, openapi.Options{Base: e.url + "/base", Credentials: map[string]string{"k": "a-secret-key"}}), "get", `{}`).Text()
		}
		line := ""
		if got := e.take(); got != nil {
			line = got.line
		}
		if got := other.take(); got != nil || line != want {
			t.Errorf("%s: %q at the base, %v elsewhere, want %q: %s", server, line, got, want, text)
		}
	}
}

// An argument is not the place of another one, and does not replace a header of the server.
func TestArgumentsStayApart(t *testing.T) {
	doc := document(t, "3.0.0", `
paths:
  /a%20b/{a}/{b}: {get: {operationId: get, parameters: [{name: a, in: path, required: true, schema: {}}, {name: b, in: path, required: true, schema: {}}, {name: X-Team, in: header, schema: {}}]}}
`)
	e := newEcho(t)
	s := open(t, doc, openapi.Options{Base: e.url, Header: http.Header{"X-Team": {"ours"}}})
	call(t, s, "get", `{"a":"{b}","b":"{a}","X-Team":"theirs"}`)
	if got := e.take(); got != nil {
		t.Errorf("an argument for a header of the server passes: %+v", got)
	}
	call(t, s, "get", `{"a":"{b}","b":"{a}"}`)
	if got := e.take(); got.line != "GET /a%20b/%7Bb%7D/%7Ba%7D" || got.header.Get("X-Team") != "ours" {
		t.Errorf("%+v", got)
	}
}

// Arguments of any kind leave neither the host, nor their segment, nor their header.
func FuzzArguments(f *testing.F) {
	doc := document(f, "3.0.0", `
paths:
  /p/{a}/.{b}/{c}{d}/end:
    post:
      operationId: post
      parameters:
        - {name: a, in: path, required: true, schema: {}}
        - {name: b, in: path, required: true, schema: {}}
        - {name: c, in: path, required: true, style: label, schema: {}}
        - {name: d, in: path, required: true, style: matrix, explode: true, schema: {}}
        - {name: q, in: query, schema: {}}
        - {name: r, in: query, allowReserved: true, schema: {}}
        - {name: o, in: query, style: deepObject, explode: true, schema: {}}
        - {name: X-H, in: header, schema: {}}
        - {name: k, in: cookie, schema: {}}
      requestBody: {content: {multipart/form-data: {schema: {}}}}
`)
	e := newEcho(f)
	s := open(f, doc, openapi.Options{Base: e.url + "/base"})
	f.Add("a", "b", "c", "d", "q")
	f.Add("..", "%2e", "\r\nX: y", "{a}", "&x=y#")
	f.Add(`["..","/"]`, `{"..":"a"}`, "%c0%ae", ";a=", "\x00")
	f.Fuzz(func(t *testing.T, a, b, c, d, q string) {
		value := func(text string) string { // JSON, or a text
			if json.Valid([]byte(text)) {
				return text
			}
			return quoted(text)
		}
		args := fmt.Sprintf(`{"a":%s,"b":%s,"c":%s,"d":%s,"q":%s,"r":%[5]s,"o":%[5]s,"X-H":%[5]s,"k":%[5]s,"body":{%s:%[5]s}}`, value(a), value(b), value(c), value(d), value(q), quoted(q))
		if _, err := s.CallTool(t.Context(), "post", json.RawMessage(args)); err != nil {
			return // not an object of JSON that mcp accepts
		}
		got := e.take()
		if got == nil {
			return // refused
		}
		path, query, _ := strings.Cut(strings.TrimPrefix(got.line, "POST "), "?")
		segments := strings.Split(path, "/")
		if len(segments) != 7 || segments[1] != "base" || segments[2] != "p" || segments[6] != "end" {
			t.Fatalf("%s leads to %s", args, got.line)
		}
		for _, text := range segments {
			for range 3 {
				if name, _, _ := strings.Cut(text, ";"); name == ".." || name == "." || strings.Contains(text, "/../") {
					t.Fatalf("%s leads to %s", args, got.line)
				}
				if plain, err := url.PathUnescape(text); err == nil {
					text = plain
				}
			}
		}
		for name := range got.header {
			if !slices.Contains([]string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Cookie", "Patchbay-Hops", "User-Agent", "X-H"}, name) {
				t.Fatalf("%s sets the header %s", args, name)
			}
		}
		if strings.ContainsAny(query, "# \r\n") {
			t.Fatalf("%s has the query %s", args, query)
		}
	})
}

// Hostile answers are text for the model, in bounds.
func TestHostileAnswers(t *testing.T) {
	e := newEcho(t)
	doc := document(t, "3.0.0", "paths: {/x: {get: {operationId: get, parameters: [{name: page, in: query, schema: {type: string}}]}}}\ncomponents: {securitySchemes: {k: {type: apiKey, in: header, name: X-Key}, b: {type: http, scheme: basic}}}\nsecurity: [{k: [], b: []}]")
	const key, password = `a"secret\key/é+1`, "pass word&1"
	s := open(t, doc, openapi.Options{Base: e.url, Timeout: 20 * time.Second, Credentials: map[string]string{"k": key, "b": "user:" + password}})
	for name, answer := range map[string]func(w http.ResponseWriter){
		"as JSON": func(w http.ResponseWriter) { json.NewEncoder(w).Encode(map[string]string{"k": key, "p": password}) },
		"in a query": func(w http.ResponseWriter) {
			fmt.Fprintf(w, "k=%s&p=%s", url.QueryEscape(key), url.QueryEscape(password))
		},
		"in a path": func(w http.ResponseWriter) { fmt.Fprintf(w, "/%s/%s", url.PathEscape(key), url.PathEscape(password)) },
		"in Location": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/x?k="+url.QueryEscape(key))
			w.WriteHeader(201)
		},
		"in a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://evil.example/?k="+url.QueryEscape(key))
			w.WriteHeader(302)
		},
		"in Link": func(w http.ResponseWriter) {
			w.Header().Set("Link", `</x?page=`+url.QueryEscape(key)+`>; rel="next"`)
			io.WriteString(w, "x")
		},
		"in Retry-After": func(w http.ResponseWriter) { w.Header().Set("Retry-After", url.QueryEscape(key)); w.WriteHeader(429) },
		"in Content-Type": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "x/"+url.QueryEscape(key))
			w.Write([]byte{0xff, 0})
		},
		"as binary": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x")
			w.Write(append([]byte{0xff, 0}, key...))
		},
	} {
		e.answer = func(w http.ResponseWriter, _ *http.Request) { answer(w) }
		res := call(t, s, "get", `{}`)
		raw, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{key, password, url.QueryEscape(key), url.PathEscape(key), url.QueryEscape(password), `a\"secret`, `a\\\"secret`} {
			if strings.Contains(allText(res), secret) || strings.Contains(string(raw), secret) {
				t.Errorf("%s: the model sees %s in %s", name, secret, raw)
			}
		}
	}
	// An endless answer, and one that is compressed very much, end at the bound.
	for name, header := range map[string]string{"endless": "", "gzip": "gzip"} {
		e.answer = func(w http.ResponseWriter, r *http.Request) {
			if header != "" {
				w.Header().Set("Content-Encoding", header)
			}
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
		res := call(t, s, "get", `{}`)
		if len(allText(res)) > 1<<20 {
			t.Errorf("%s: %d bytes", name, len(allText(res)))
		}
	}
}

// A document of few bytes does not become very much: in time, in memory, in the length of what is listed.
func TestBounds(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	properties := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"p%d":{"type":"string","description":%q},`, i, strings.Repeat("d", 200))
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	operations := func(n int, operation string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"/p%d":{"post":%s},`, i, operation)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	body := `{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}`
	for name, text := range map[string]string{
		"many operations share a large schema":   `"paths":{` + operations(long.Or(20000, 20), body) + `},"components":{"schemas":{"A":{"type":"object","properties":{` + properties(3500) + `}}}}`,
		"20 MiB of one text":                     `"paths":{"/x":{"get":{"description":"` + strings.Repeat(big, 20) + `"}}}`,
		"10 MiB of numbers":                      `"paths":{"/x":{"get":{"x-n":[` + strings.Repeat("1,", 5<<20) + `1]}}}`,
		"100,000 parameters of one name":         `"paths":{"/x":{"get":{"parameters":[` + strings.Repeat(`{"name":"a","in":"query"},`, 100000) + `{"name":"b","in":"query"}]}}}`,
		"30,000 names in a path":                 `"paths":{"/` + strings.Repeat("{a}", 30000) + `":{"get":{}}}`,
		"100,000 operations of one name":         `"paths":{` + operations(100000, `{"operationId":"same"}`) + `}`,
		"1 MiB in an enum":                       `"paths":{"/x":{"get":{"parameters":[{"name":"a","in":"query","schema":{"enum":[` + strings.Repeat(`"`+strings.Repeat("e", 5)+`",`, 100000) + `1]}}]}}}`,
		"different texts in an enum":             `"paths":{"/x":{"get":{"parameters":[{"name":"a","in":"query","schema":{"enum":[` + manyNumbers(100000) + `]}}]}}}`,
		"20,000 tags":                            `"paths":{"/x":{"get":{"tags":[` + strings.Repeat(`"t",`, 20000) + `"t"]}}}`,
		"100,000 security requirements":          `"paths":{"/x":{"get":{}}},"security":[` + strings.Repeat(`{"a":[]},`, 100000) + `{}]`,
		"100,000 members of one name":            `"paths":{"/x":{"post":{"requestBody":{"content":{"application/json":{"schema":{"properties":{` + strings.Repeat(`"a":{},`, 100000) + `"b":{}}}}}}}}}`,
		"100,000 media types":                    `"paths":{"/x":{"post":{"requestBody":{"content":{` + strings.Repeat(`"text/a":{},`, 100000) + `"a/b":{}}}}}}`,
		"a form of a hundred parts of a hundred": `"paths":{"/x":{"post":{"requestBody":{"content":{"multipart/form-data":{"schema":{"$ref":"#/components/schemas/a0"}}}}}}},"components":{"schemas":{` + hundreds(20) + `}}`,
		"100,000 answers":                        `"paths":{"/x":{"get":{"responses":{"200":{"content":{` + manyMembers(100000) + `}}}}}}`,
		"a pattern that backtracks":              `"paths":{"/x":{"get":{"parameters":[{"name":"a","in":"query","schema":{"type":"string","pattern":"` + strings.Repeat("(a*)*", 1000) + `$"}}]}}}`,
		"a pattern of repetitions":               `"paths":{"/x":{"get":{"parameters":[{"name":"a","in":"query","schema":{"type":"string","pattern":"((a{100}){100}){100}"}}]}}}`,
		"variables that double":                  `"servers":[{"url":"https://{a}","variables":{` + doubling(60) + `}}],"paths":{"/x":{"get":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			doc, err := openapi.Parse([]byte(`{"openapi":"3.0.0","info":{"title":"x","version":"1"},` + text + `}`))
			runtime.ReadMemStats(&after)
			size := 0
			if err == nil {
				for _, op := range doc.Operations {
					size += len(op.Input)
				}
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 1000 || size > 260<<20 {
				t.Errorf("%d MiB allocated, schemas of %d MiB: %v", allocated, size>>20, err)
			}
		})
	}
}

func manyNumbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String() + "-1"
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a/b%d":{},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%[1]s":{"default":"{%[2]s}{%[2]s}"},`, string(rune('a'+i)), string(rune('a'+i+1)))
	}
	return strings.TrimSuffix(b.String(), ",")
}

func hundreds(n int) string {
	var b strings.Builder
	for i := range n {
		part := fmt.Sprintf(`{"$ref":"#/components/schemas/a%d"}`, (i+1)%n)
		list := "[" + strings.Repeat(part+",", 99) + part + "]"
		fmt.Fprintf(&b, `,"a%d":{"allOf":%s,"anyOf":%[2]s,"properties":{"p":{"allOf":%[2]s}}}`, i, list)
	}
	return b.String()[1:]
}
