package schema

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

type benchArgs struct {
	City  string  `json:"city" doc:"where"`
	Days  int     `json:"days" min:"1" max:"14"`
	Scale float64 `json:"scale,omitempty"`
}

type benchWide struct {
	ID      string            `json:"id" pattern:"^[a-z0-9-]+$"`
	Tags    []string          `json:"tags,omitempty" max:"10"`
	Labels  map[string]string `json:"labels,omitempty"`
	Inner   benchArgs         `json:"inner"`
	Inners  []benchArgs       `json:"inners,omitempty"`
	Enabled bool              `json:"enabled,omitempty"`
	Level   string            `json:"level,omitempty" enum:"low,mid,high"`
	Limit   uint16            `json:"limit,omitempty"`
	Note    *string           `json:"note"`
	Parent  *benchWide        `json:"parent,omitempty"`
}

var (
	benchSmall = []byte(`{"city":"Bergen","days":3,"scale":1.5}`)
	benchLarge = []byte(`{"id":"a-1","tags":["x","y","z"],"labels":{"k":"v","l":"w"},"inner":{"city":"Oslo","days":1},"inners":[{"city":"A","days":2},{"city":"B","days":3}],"enabled":true,"level":"mid","limit":500,"note":"hello","parent":{"id":"p","inner":{"city":"C","days":4}}}`)
)

func BenchmarkDecode(b *testing.B) {
	b.Run("fields=3", func(b *testing.B) {
		t := mustFor[benchArgs](b)
		var v benchArgs
		b.ReportAllocs()
		b.SetBytes(int64(len(benchSmall)))
		for b.Loop() {
			if err := t.Decode(benchSmall, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fields=10", func(b *testing.B) {
		t := mustFor[benchWide](b)
		b.ReportAllocs()
		b.SetBytes(int64(len(benchLarge)))
		for b.Loop() {
			var v benchWide
			if err := t.Decode(benchLarge, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("string=64KiB", func(b *testing.B) {
		type args struct {
			Text string `json:"text"`
		}
		t := mustFor[args](b)
		data := []byte(`{"text":"` + strings.Repeat("all work and no play ", 64<<10/21) + `"}`)
		var v args
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if err := t.Decode(data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("faults=3", func(b *testing.B) {
		t := mustFor[benchArgs](b)
		data := []byte(`{"citty":"Bergen","days":30,"scale":"x"}`)
		var v benchArgs
		b.ReportAllocs()
		for b.Loop() {
			if err := t.Decode(data, &v); err == nil {
				b.Fatal("no error")
			}
		}
	})
}

func BenchmarkInfer(b *testing.B) {
	for _, t := range []reflect.Type{reflect.TypeFor[benchArgs](), reflect.TypeFor[benchWide]()} {
		b.Run(fmt.Sprintf("fields=%d", t.NumField()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newType(t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("cached", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := For[benchArgs](); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkValidator(b *testing.B) {
	v, err := Compile(mustFor[benchArgs](b).JSON())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("fields=3", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := v.Validate(benchSmall); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fields=3/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := v.Validate(benchSmall); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("compile", func(b *testing.B) {
		raw := mustFor[benchArgs](b).JSON()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Compile(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestDecodeAllocations checks the budget of the hot path: only strings that are kept are
// allocated.
func TestDecodeAllocations(t *testing.T) {
	typ := mustFor[benchArgs](t)
	var v benchArgs
	got := testing.AllocsPerRun(100, func() {
		if err := typ.Decode(benchSmall, &v); err != nil {
			t.Fatal(err)
		}
	})
	if got > 1 {
		t.Errorf("decoding an object with one string makes %v allocations, want 1", got)
	}
}

func mustFor[T any](t testing.TB) *Type {
	t.Helper()
	typ, err := For[T]()
	if err != nil {
		t.Fatal(err)
	}
	return typ
}
