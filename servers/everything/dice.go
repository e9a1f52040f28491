package everything

import (
	"context"
	_ "embed"
	"math/rand/v2"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/mcp"
)

//go:embed dice.html
var dicePage string

const diceURI = "ui://everything/dice"

// addDice adds a tool with a view, and one that only the view uses.
func addDice(srv *mcp.Server) {
	ui := apps.Enable(srv)
	ui.AddView(apps.View{
		URI: diceURI, Name: "dice", Title: "Dice", Description: "Shows the roll, and rolls again.",
		HTML: dicePage, Needs: apps.Needs{PrefersBorder: new(true)},
	})
	type wish struct {
		Sides int `json:"sides,omitempty" doc:"sides of a die; 6 if left out" min:"2" max:"100"`
		Dice  int `json:"dice,omitempty" doc:"number of dice; 1 if left out" min:"1" max:"10"`
	}
	type rolled struct {
		Sides int   `json:"sides"`
		Pips  []int `json:"pips"`
	}
	roll := func(_ context.Context, in wish) (rolled, error) {
		if in.Sides == 0 {
			in.Sides = 6
		}
		out := rolled{Sides: in.Sides, Pips: make([]int, max(in.Dice, 1))}
		for i := range out.Pips {
			out.Pips[i] = 1 + rand.IntN(in.Sides)
		}
		return out, nil
	}
	apps.AddTool(ui, mcp.Tool{
		Name: "roll_dice", Title: "Roll dice", Description: "Rolls dice. Hosts that render views show them (MCP Apps).", Annotations: harmless,
	}, apps.Link{ResourceURI: diceURI}, roll)
	apps.AddTool(ui, mcp.Tool{
		Name: "reroll_dice", Description: "Rolls dice again, for the view of roll_dice alone.", Annotations: harmless,
	}, apps.Link{ResourceURI: diceURI, Visibility: []apps.Audience{apps.App}}, roll)
}
