package everything_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/everything"
	"github.com/patchbay-dev/patchbay/skills"
)

// A client that renders views gets one with the dice, and every client their text.
func TestDice(t *testing.T) {
	renders := &mcp.Client{Name: "c", Extensions: map[string]json.RawMessage{apps.Extension: apps.Settings()}}
	for name, c := range map[string]*mcp.Client{"renders": renders, "plain": {Name: "c"}} {
		s := mcptest.Connect(t, everything.New(), c, mcp.V2026_07_28)
		var link, again apps.Link
		listed := false
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			switch tool.Name {
			case "roll_dice":
				link, err = apps.LinkOf(tool)
			case "reroll_dice":
				listed = true
				again, err = apps.LinkOf(tool)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if (link.ResourceURI != "") != (c == renders) || listed != (c == renders) {
			t.Errorf("%s: roll_dice has %+v, reroll_dice is listed: %v", name, link, listed)
		}
		res, err := s.CallTool(t.Context(), "roll_dice", map[string]int{"sides": 2, "dice": 3})
		if err != nil || !strings.HasPrefix(res.Text(), `{"sides":2,"pips":[`) {
			t.Errorf("%s: roll_dice = %+v, %v", name, res, err)
		}
		if c != renders {
			continue
		}
		if again.For(apps.Model) || !again.For(apps.App) {
			t.Errorf("reroll_dice is for %q, want views alone", again.Visibility)
		}
		view, err := s.ReadResource(t.Context(), link.ResourceURI)
		if err != nil || view.Contents[0].MIMEType != apps.MIMEType {
			t.Fatalf("view = %v, %v", view, err)
		}
		needs, err := apps.NeedsOf(view.Contents[0])
		if err != nil || needs.CSP != nil || needs.Permissions != nil {
			t.Errorf("the view needs %+v, %v; want nothing outside of itself", needs, err)
		}
	}
}

// Each skill that is offered can be loaded, with all its files.
func TestSkills(t *testing.T) {
	s := mcptest.Connect(t, everything.New(), &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	n := 0
	for skill, err := range skills.List(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		active, err := skills.Load(t.Context(), s, skill)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range skill.Files {
			if _, err := active.Read(t.Context(), f.URI); err != nil {
				t.Error(err)
			}
			n++
		}
	}
	if n != 4 {
		t.Errorf("the skills have %d files, want 4", n)
	}
}
