package main

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

const noStoves = `
default: allow
rules:
  - name: no stoves
    when: RULE
    effect: deny
`

func writeRules(t *testing.T, rule string) {
	t.Helper()
	if err := os.WriteFile("rules.yaml~", []byte(strings.Replace(noStoves, "RULE", rule, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("rules.yaml~", "rules.yaml"); err != nil {
		t.Fatal(err)
	}
}

// The rules of --policy and the limits of --limit apply to the calls of a model, whoever approved
// them. The principal is local#NAME, and the errors are those that a caller of up gets.
func TestRunPolicy(t *testing.T) {
	const script = `
turns:
  - when: {user: stove}
    answer: [call: {name: shop_add-to-cart, arguments: {product: prd-1013}}]
  - when: {results: {shop_add-to-cart: 'RESULT$'}}
    answer: [text: I must not.]
`
	const byArguments = `name == "add-to-cart" && arguments.product == "prd-1013"`
	run := func(t *testing.T, result, rule string) {
		t.Helper()
		patchbay := scriptedRun(t, strings.Replace(script, "RESULT", strings.ReplaceAll(result, "'", "''"), 1))
		writeRules(t, rule)
		if got := patchbay("", "a stove, please", "--allow", "shop/*", "--yes", "--policy", "rules.yaml"); got.code != 0 || got.stdout != "I must not.\n" {
			t.Errorf("the model is not told %q: %+v", result, got)
		}
	}
	t.Run("a tool that is refused", func(t *testing.T) {
		run(t, `The tool "shop_add-to-cart" does not exist\. .*`, `name == "add-to-cart" && principal.id.startsWith("local#")`)
	})
	t.Run("in the words of up", func(t *testing.T) {
		alone(t)
		runtimeFolder(t)
		writeRules(t, byArguments)
		up := startUp(t, map[string]any{"shop": map[string]any{"builtin": "shop"}}, "--policy", "rules.yaml")
		s, err := (&mcp.Client{}).Dial(t.Context(), up.url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, err = s.CallTool(t.Context(), "shop_add-to-cart", map[string]any{"product": "prd-1013"})
		var refusal *mcp.Error
		if !errors.As(err, &refusal) {
			t.Fatalf("up does not refuse the call: %v", err)
		}
		run(t, "refused the call, and it has not run.* server.s answer: call .*: "+regexp.QuoteMeta(refusal.Error()), byArguments)
	})
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

// A conversation follows edits of the policy file: the new rules decide the next call, and filter
// the lists.
func TestChatFollowsItsPolicy(t *testing.T) {
	alone(t)
	writeRules(t, `name == "add-to-cart" && arguments.product == "prd-1013"`)
	typed, in := io.Pipe()
	out, said := new(transcript), new(transcript)
	ended := make(chan int)
	go func() {
		ended <- run(t.Context(), []string{"chat", "-s", "shop", "--no-memory", "--policy", "rules.yaml"}, typed, out, said)
	}()
	say := func(line, want string) {
		t.Helper()
		io.WriteString(in, line+"\n")
		until(t, want, func() bool { return strings.Contains(out.String(), want) })
	}
	say("/call shop/add-to-cart product=prd-1013", `refused with these arguments by \"no stoves\"`)
	writeRules(t, `name == "add-to-cart"`)
	said.await(t, "rules.yaml: now 1 rule")
	say("/call shop/add-to-cart product=prd-1014", `has no tool "add-to-cart"`)
	writeRules(t, `name == "place-order"`)
	until(t, "the third file is read", func() bool { return strings.Count(said.String(), "now 1 rule") == 2 })
	say("/call shop/add-to-cart product=prd-1013", `✓ shop/add-to-cart`)
	in.Close()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d: %s", code, said)
	}
}
