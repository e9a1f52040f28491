package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A form scrolls to the choices of a field.
func TestFormScrolls(t *testing.T) {
	onStage(t, func(t *testing.T, u *ui, p *paper) {
		resize(u, 60, 13)
		typed(u, "call book")
		press(u, "enter")
		settle(u)
		press(u, "c")
		settle(u)
		typed(u, "Ada")
		press(u, "tab")
		typed(u, "ada@example.com")
		press(u, "tab", "tab", "tab", "tab")
		text := p.frameText()
		for _, want := range []string{"snack", "[ ] ice", "[ ] wine", "space selects"} {
			if !strings.Contains(text, want) {
				t.Errorf("the form does not show %q:\n%s", want, text)
			}
		}
	})
}

// A title that does not fit its column is shown in full where it is answered and reviewed; of many options
// those around the chosen one are named.
func TestFormLongTitle(t *testing.T) {
	title := "May everything in the folder of the project be deleted?"
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"v%d"`, i))
	}
	f, err := newForm(&host.Elicitation{Server: "s", ElicitRequest: &mcp.ElicitRequest{Schema: []byte(
		`{"type":"object","properties":{"all":{"type":"boolean","title":"` + title + `"},"one":{"type":"string","default":"v20","enum":[` + strings.Join(many, ",") + `]}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	text := func() string {
		return strings.Join(strings.Fields(strings.Join(f.show(&look{width: 70, height: 24}).body, " ")), " ")
	}
	if got := text(); !strings.Contains(got, title) {
		t.Errorf("the form shows %s", got)
	}
	f.key(keyOf("right"))
	f.key(keyOf("tab"))
	if got := text(); !strings.Contains(got, "17 to 25 of 40: v16, v17, v18, v19, v20, v21, v22, v23, v24") {
		t.Errorf("the form shows %s", got)
	}
	f.key(keyOf("ctrl+s"))
	if got := text(); !strings.Contains(got, title+" yes") || !strings.Contains(got, "v20") {
		t.Errorf("the review shows %s", got)
	}
}
