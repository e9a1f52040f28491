package pdftext_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/internal/pdftext"
)

// A file costs little time and memory, whatever it says.
func TestHostile(t *testing.T) {
	if long.Raced() {
		t.Skip("moves much data, on one goroutine")
	}
	content := func(s string) string { return stream("", s) }
	self := pages("null", content("/X Do /X Do /X Do"))
	self[4] = stream("/Subtype /Form /Resources 3 0 R", strings.Repeat("/X Do ", 1000)+hello)
	bomb := pages("null", flate("", strings.Repeat("(x) Tj\n", 6<<20)))
	bombs := pages("null", "["+strings.Repeat("8 0 R ", 10_000)+"]")
	bombs = append(bombs, flate("", strings.Repeat(" ", 40<<20)))
	bombs[6] = "[" + strings.Repeat("8 0 R ", 10_000) + "]"
	chain := []string{"<</Pages 2 0 R>>"}
	for i := range 50_000 {
		chain = append(chain, fmt.Sprintf("<</Kids [%d 0 R %d 0 R 2 0 R]>>", i+3, i+3))
	}
	widths := pages("<</Subtype /Type0 /Encoding /Identity-H /ToUnicode 5 0 R /DescendantFonts [<</W [0 4000000000 1 -5 [1 2] 7]>>]>>", content("BT /F2 1 Tf <00010002> Tj ET"))
	widths[4] = stream("", strings.Repeat("1 beginbfrange <00000000> <FFFFFFFF> <0041> endbfrange ", 20_000))
	tests := map[string][]byte{
		"a form in itself":  pdf(self...),
		"a bomb":            pdf(bomb...),
		"a bomb, often":     pdf(bombs...),
		"a deep tree":       pdf(chain...),
		"pages in a circle": pdf("<</Pages 2 0 R>>", "<</Kids [2 0 R 3 0 R]>>", "<</Kids [2 0 R 3 0 R] /Parent 3 0 R>>"),
		"a reference loop":  pdf("<</Pages 2 0 R>>", "3 0 R", "2 0 R"),
		"length of itself":  pdf("<</Pages 2 0 R>>", "<</Kids [3 0 R]>>", "<</Contents 4 0 R>>", "<</Length 4 0 R>>\nstream\nx\nendstream"),
		"nested":            pdf(pages("null", content(strings.Repeat("[", 1<<20)+strings.Repeat("<<", 1<<20)+strings.Repeat("(", 1<<20)))...),
		"a long array":      pdf(pages("null", content("["+strings.Repeat("1 ", 5<<20)+"] TJ"))...),
		"gigantic counts":   []byte("%PDF-1.5\n1 0 obj\n<</Type /XRef /W [1 8 8] /Index [0 999999999 5 999999999] /Size 999999999 /Root 1 0 R /N 999999999 /First -5 /Length 20>>\nstream\n01234567890123456789\nendstream endobj\nxref\n0 999999999\n0 0 n\nstartxref\n9\n"),
		"a huge table":      []byte("%PDF-1.5\nxref\n0 999999999\n" + strings.Repeat("0000000009 00000 n \n", 300_000) + "startxref\n9\n"),
		"packs in packs":    []byte("%PDF-1.5\n1 0 obj\n<</Type /XRef /W [1 1 1] /Size 4 /Root 2 0 R /Length 12>>\nstream\n\x02\x01\x00\x02\x01\x00\x02\x03\x00\x02\x02\x00\nendstream endobj\nstartxref\n9\n"),
		"tables in turn":    []byte("%PDF-1.5\nxref\n0 0\ntrailer <</Prev 9 /XRefStm 9>>\nstartxref\n9\n"),
		"columns":           pdf(pages("null", stream("/Filter /FlateDecode /DecodeParms <</Predictor 15 /Columns 1000000 /Colors 60 /BitsPerComponent 32>>", deflated(hello)))...),
		"wide ranges":       pdf(widths...),
		"many objects":      []byte("%PDF-1.5\n" + strings.Repeat("1 0 obj\n<</Length 9>>stream\n", 100_000)),
		"many pages":        pdf("<</Pages 2 0 R>>", "<</Kids ["+strings.Repeat("<<>> ", 40_000)+"]>>"),
		"ASCII85 in itself": pdf(pages("null", stream("/Filter [/A85 /A85 /A85 /A85 /A85 /A85 /A85 /A85 /A85 /A85]", strings.Repeat("z", 1<<20)))...),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, err := pdftext.Extract(ctx, data, 1<<20)
			runtime.ReadMemStats(&after)
			if ctx.Err() != nil {
				t.Errorf("Extract took more than two minutes: %v", err)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 700 {
				t.Errorf("Extract allocated %d MB, want at most 700", n)
			}
			if err == nil && !utf8.ValidString(text.String()) {
				t.Errorf("the text is not UTF-8")
			}
			t.Logf("%v, %d MB allocated", err, (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}
