package bench_test

import (
	"encoding/json"
	"testing"

	"github.com/patchbay-dev/patchbay/schema"
)

// order is a realistic argument of a tool.
type order struct {
	Customer string            `json:"customer"`
	Priority int               `json:"priority,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Lines    []struct {
		Article string  `json:"article"`
		Count   int     `json:"count"`
		Price   float64 `json:"price"`
		Address *struct {
			Street string `json:"street"`
			City   string `json:"city"`
		} `json:"address,omitempty"`
	} `json:"lines"`
}

const orderJSON = `{"customer":"Ada","priority":2,"labels":{"a":"b","c":"d"},"lines":[` +
	`{"article":"screw","count":100,"price":0.05,"address":{"street":"Main Street 1","city":"Springfield"}},` +
	`{"article":"bolt","count":20,"price":1.5},{"article":"nut","count":20,"price":0.75}]}`

// Arguments are decoded and validated in one pass.
func BenchmarkArguments(b *testing.B) {
	flat, _ := json.Marshal(echoIn{prose(100)})
	b.Run("shape=flat", func(b *testing.B) { benchmarkArguments[echoIn](b, flat) })
	b.Run("shape=nested", func(b *testing.B) { benchmarkArguments[order](b, []byte(orderJSON)) })
}

func benchmarkArguments[T any](b *testing.B, args []byte) {
	typ, err := schema.For[T]()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(args)))
	for b.Loop() {
		var v T
		if err := typ.Decode(args, &v); err != nil {
			b.Fatal(err)
		}
	}
}

// A foreign schema arrives as JSON: from a tool made with HandleTool, or from another
// server.
func BenchmarkForeignSchema(b *testing.B) {
	typ, err := schema.For[order]()
	if err != nil {
		b.Fatal(err)
	}
	for _, shape := range []struct{ name, schema, value string }{
		{"flat", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, `{"message":"hello"}`},
		{"nested", string(typ.JSON()), orderJSON},
	} {
		b.Run("do=compile/shape="+shape.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := schema.Compile(json.RawMessage(shape.schema)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("do=validate/shape="+shape.name, func(b *testing.B) {
			v, err := schema.Compile(json.RawMessage(shape.schema))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Validate([]byte(shape.value)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
