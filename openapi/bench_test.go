package openapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/openapi"
)

// thousand is a document with 1,000 operations, each with parameters, a body, and 20 schemas that they share.
func thousand() []byte {
	var b strings.Builder
	b.WriteString(`{"openapi":"3.0.3","info":{"title":"Shop","version":"1"},"paths":{`)
	for i := range 500 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"/shops/{shop}/things%d/{id}":{"parameters":[{"$ref":"#/components/parameters/shop"},{"name":"id","in":"path","required":true,"schema":{"type":"string"}}],`, i)
		fmt.Fprintf(&b, `"get":{"operationId":"get/thing%d","summary":"Get thing %[1]d","description":"%s","tags":["things"],"parameters":[`, i, strings.Repeat("Returns one of the things. ", 10))
		b.WriteString(`{"name":"per_page","in":"query","description":"The number of results, up to 100.","schema":{"type":"integer","default":30,"minimum":1,"maximum":100}},{"name":"sort","in":"query","schema":{"type":"string","enum":["created","updated","name"]}}],`)
		fmt.Fprintf(&b, `"responses":{"200":{"description":"A thing","content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing%d"}}}}}},`, i%20)
		fmt.Fprintf(&b, `"put":{"operationId":"put/thing%d","requestBody":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing%d"},"example":{"name":"x","price":1.5}}}},"responses":{"204":{"description":"Done"}}}}`, i, i%20)
	}
	b.WriteString(`},"components":{"parameters":{"shop":{"name":"shop","in":"path","required":true,"schema":{"type":"string","pattern":"^[a-z]+$"}}},"schemas":{`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"Thing%d":{"type":"object","required":["name"],"properties":{"id":{"type":"integer","readOnly":true},"next":{"$ref":"#/components/schemas/Thing%d"}`, i, i/2)
		for j := range 20 {
			fmt.Fprintf(&b, `,"member%d":{"type":"string","nullable":true,"description":"What the member %[1]d of a thing is for, in some words.","example":"x","maxLength":%d}`, j, 100+j)
		}
		b.WriteString("}}")
	}
	b.WriteString("}}}")
	return []byte(b.String())
}

// A document of 1,000 operations becomes a server: 200 ms is the limit for both together.
//
//	go test ./openapi -run '^$' -bench . -benchtime 20x
func BenchmarkThousand(b *testing.B) {
	data := thousand()
	doc, err := openapi.Parse(data)
	if err != nil || len(doc.Operations) != 1000 {
		b.Fatal(err)
	}
	b.Run("Parse", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := openapi.Parse(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("New", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := openapi.New(doc, openapi.Options{Base: "https://api.example.com"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
