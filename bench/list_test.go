package bench_test

import (
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A list of 1,000 tools with schemas of 1 KiB: as the pages that a server writes, and as the
// Tools that a client decodes.
func BenchmarkList(b *testing.B) {
	const tools = 1000
	for _, rev := range revisions {
		b.Run(fmt.Sprintf("side=server/rev=%s/tools=%d", rev, tools), func(b *testing.B) {
			p := newPipe(b, newServer(b, tools))
			frame := modernFrame("tools/list", "")
			if rev != mcp.V2026_07_28 {
				p.initialize()
				frame = legacyFrame("tools/list", "{}")
			}
			b.ReportAllocs()
			for b.Loop() {
				if answer := p.exchange(frame); len(answer) < 100<<10 {
					b.Fatalf("%d bytes: %.200q", len(answer), answer)
				}
			}
		})
		b.Run(fmt.Sprintf("side=both/rev=%s/tools=%d", rev, tools), func(b *testing.B) {
			s := connect(b, newServer(b, tools), speaking(rev))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range s.Tools(b.Context(), mcp.WithoutCache()) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != tools {
					b.Fatalf("listed %d tools", n)
				}
			}
		})
	}
}
