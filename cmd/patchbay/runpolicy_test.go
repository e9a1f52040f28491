package main

import (
	"os"
	"strings"
	"testing"
)

// The rules of --policy and the bounds of --limit hold for what a model calls, whoever approved it,
// in the words that a caller of up gets. The principal is local#NAME.
func TestRunPolicy(t *testing.T) {
	const script = `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: RESULT}}
    answer: [text: I must not.]
`
	for _, tt := range []struct{ name, result, rules string }{
		{"the tool is left out", "no tool|not offered|There is no", `name == "add-to-cart" && principal.id.startsWith("local#")`},
		{"by arguments", "arguments|refused|not allowed", `name == "add-to-cart" && arguments.product == "prd-1013"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patchbay := scriptedRun(t, strings.Replace(script, "RESULT", tt.result, 1))
			text := "default: allow\nrules:\n  - name: no stoves\n    when: " + tt.rules + "\n    effect: deny\n"
			if err := os.WriteFile("rules.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := patchbay("", "a stove, please", "--allow", "shop/*", "--yes", "--policy", "rules.yaml"); got.code != 0 || !strings.Contains(got.stdout, "I must not.") {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("a limit", func(t *testing.T) {
		patchbay := scriptedRun(t, `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: crt-1003}}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1014}}]
  - when: {results: {shop_add-to-cart: try again in}}
    answer: [text: Enough.]
`)
		if got := patchbay("", "a stove, please", "--allow", "shop/*", "--yes", "--limit", "tool:add-to-cart=1/h"); got.code != 0 || !strings.Contains(got.stdout, "Enough.") {
			t.Errorf("%+v", got)
		}
	})
}
