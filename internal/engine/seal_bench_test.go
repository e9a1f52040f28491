package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// The cost of a round of questions besides the call itself: its state is sealed with the question
// and opened with the answer.
func BenchmarkSeal(b *testing.B) {
	bound := []byte(strings.Repeat("b", 32))
	for _, size := range []int{100, 10 << 10} {
		st := state{Round: 1, Kept: map[string]json.RawMessage{"once:k": json.RawMessage(`"` + strings.Repeat("x", size) + `"`)}}
		s := sealer(b, "s", "a")
		token, err := s.seal(b.Context(), st, bound)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("do=seal/size=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.seal(b.Context(), st, bound); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("do=open/size=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.open(b.Context(), token, bound); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
