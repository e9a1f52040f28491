package approval_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/approval"
	"github.com/patchbay-dev/patchbay/mcp"
)

func named(name, description string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// An approval of all tools of a server is one of each tool that it had then: a new tool and a changed one are
// not allowed.
func TestRuleOfSeveralTools(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "a.json"))
	all := approval.Rule{Text: "shop/*"}
	if err := allow(f, "id", "shop", all, named("a", "A"), named("b", "B")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool    *mcp.Tool
		allowed []approval.Rule
		changed string
	}{
		{named("a", "A"), []approval.Rule{all}, ""},
		{named("b", "B"), []approval.Rule{all}, ""},
		{named("b", "B!"), nil, "description"},
		{named("c", "C"), nil, ""},
	} {
		found, err := f.Find("id", tt.tool)
		if diff := cmp.Diff(tt.allowed, found.Rules); diff != "" || found.Changed != tt.changed || err != nil {
			t.Errorf("%s: changed %q, %v (-want +got):\n%s", tt.tool.Name, found.Changed, err, diff)
		}
		if (found.Before != nil) != (tt.changed != "") || found.Before != nil && found.Before.Description != "B" {
			t.Errorf("%s was %+v", tt.tool.Name, found.Before)
		}
	}
}

// Several rules may allow a tool. When one of them is allowed again after a change, the others, which were for
// the earlier definition, are gone, even if the tool changes back.
func TestSeveralRules(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "a.json"))
	first, second := approval.Rule{Text: "shop/a if x", When: "x"}, approval.Rule{Text: "shop/*"}
	for _, r := range []approval.Rule{first, second, first} {
		if err := allow(f, "id", "shop", r, named("a", "A")); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := f.Find("id", named("a", "A")); len(found.Rules) != 2 || err != nil {
		t.Errorf("Find = %+v, %v, want both rules", found, err)
	}
	if err := allow(f, "id", "shop", first, named("a", "B")); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Find("id", named("a", "A")); len(found.Rules) > 0 || found.Changed == "" || err != nil {
		t.Errorf("the earlier definition: %+v, %v", found, err)
	}
}

// A program that does not know conditions must not read an approval with one as an approval of every call. A
// file of an earlier version is read, and written in its version as long as it can be.
func TestVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	f := open(t, path)
	version := func() int {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var k struct{ Version int }
		if err := json.Unmarshal(data, &k); err != nil {
			t.Fatal(err)
		}
		return k.Version
	}
	hash := approval.Hash(named("a", "A"))
	old := `{"version":1,"approvals":[{"identity":"id","server":"shop","tool":"a","hash":"` + hash + `","at":"2026-01-02T03:04:05Z","members":{"description":"0"}}]}`
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Find("id", named("a", "A")); len(found.Rules) != 1 || found.Rules[0] != (approval.Rule{}) || err != nil {
		t.Errorf("an old approval: %+v, %v", found, err)
	}
	if found, err := f.Find("id", named("a", "B")); len(found.Rules) > 0 || !strings.Contains(found.Changed, "description") || found.Before != nil || err != nil {
		t.Errorf("an old approval of a tool that has changed: %+v, %v", found, err)
	}
	if err := allow(f, "id", "shop", approval.Rule{Text: "shop/*"}, named("b", "B")); err != nil || version() != 1 {
		t.Errorf("without a condition: version %d, %v, want 1", version(), err)
	}
	if err := allow(f, "id", "shop", approval.Rule{Text: "shop/c if x", When: "x"}, named("c", "C")); err != nil || version() != 2 {
		t.Errorf("with a condition: version %d, %v, want 2", version(), err)
	}
	if _, err := f.Revoke(func(a approval.Approval) bool { return a.When != "" }); err != nil || version() != 1 {
		t.Errorf("without it again: version %d, %v, want 1", version(), err)
	}
}

// A long definition is not stored, and one that was edited in the file does not count as what was allowed.
func TestDefinitionInFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	f := open(t, path)
	if err := allow(f, "id", "shop", approval.Rule{}, named("long", strings.Repeat("x", 20<<10)), named("a", "<A>")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, before string }{{"long", ""}, {"a", "<A>"}} {
		found, err := f.Find("id", named(tt.name, "new"))
		if got := found.Before; err != nil || found.Changed != "description" || (got == nil) != (tt.before == "") || got != nil && got.Description != tt.before {
			t.Errorf("%s: %+v, %v", tt.name, found, err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), `\u003cA\u003e`, "harmless", 1)
	if edited == string(data) {
		t.Fatal("the file has no such definition")
	}
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Find("id", named("a", "new")); found.Before != nil || found.Changed != "description" || err != nil {
		t.Errorf("with an edited definition: %+v, %v", found, err)
	}
}
