package provider

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
)

// A model that takes no PDF, for instance because the conversation began with another one, gets its text.
func TestPDFAsText(t *testing.T) {
	report := "%PDF-1.7 1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Contents 4 0 R/Resources<</Font<</F<</Subtype/Type1>>>>>>>>endobj " +
		"4 0 obj<<>>stream\nBT /F 9 Tf (A report.) Tj ET\nendstream endobj"
	for _, tt := range []struct{ name, data, want string }{
		{"a.pdf", report, "[text of the PDF \"a.pdf\"]\n[page 1 of 1]\nA report.\n"},
		{"", report, "[text of a PDF]\n[page 1 of 1]\nA report.\n"},
		{"b.pdf", "%PDF-1.7", `[the PDF "b.pdf" is left out here: the model does not take it, and its text cannot be read: it is damaged]`},
		{"c.pdf", strings.Replace(report, "endstream endobj", "endstream endobj trailer<</Root 1 0 R/Encrypt 9 0 R>>", 1), `[the PDF "c.pdf" is left out here: the model does not take it, and its text cannot be read: it is encrypted]`},
	} {
		for range 2 { // the second one is remembered
			if got := mediaText(&model.Media{MIME: "application/pdf", Data: []byte(tt.data), Name: tt.name}); got != tt.want {
				t.Errorf("the model gets %q, want %q", got, tt.want)
			}
		}
	}
}
