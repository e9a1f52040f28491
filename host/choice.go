package host

import (
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Choices are the models that may answer sampling requests from servers. The first is the default.
type Choices []Choice

// Choice is a model and its ratings relative to the others.
type Choice struct {
	Model model.Model
	Hints []string // names by which servers may refer to it, besides its own

	// From 0 to 1; 1 is the cheapest, the fastest, the most capable.
	Cost, Speed, Intelligence float64
}

// Choose returns the model that suits the preferences of a server best. The first hint that is part
// of the name of any model, ignoring case, restricts the choice to such models. Among those, Choose
// takes the highest sum of priority times rating; on a tie the earlier model wins. Choose can be
// used as [Host.Sampler]. It returns nil only if there are no choices.
//
// Specification: 2026-07-28, client/sampling, Model Preferences.
func (cs Choices) Choose(p *mcp.ModelPreferences) model.Model {
	if len(cs) == 0 {
		return nil
	}
	if p == nil {
		return cs[0].Model
	}
	left := cs
	for _, hint := range p.Hints {
		if hint == "" {
			continue
		}
		var meant Choices
		for _, c := range cs {
			if c.meant(hint) {
				meant = append(meant, c)
			}
		}
		if meant != nil {
			left = meant
			break
		}
	}
	best, most := left[0], left[0].score(p)
	for _, c := range left[1:] {
		if score := c.score(p); score > most {
			best, most = c, score
		}
	}
	return best.Model
}

// meant reports whether a hint is part of a name of the model.
func (c Choice) meant(hint string) bool {
	hint = strings.ToLower(hint)
	return slices.ContainsFunc(append([]string{c.Model.Info().Name}, c.Hints...), func(name string) bool {
		return strings.Contains(strings.ToLower(name), hint)
	})
}

func (c Choice) score(p *mcp.ModelPreferences) float64 {
	of := func(priority *float64, has float64) float64 {
		if priority == nil {
			return 0
		}
		return min(max(*priority, 0), 1) * has
	}
	return of(p.CostPriority, c.Cost) + of(p.SpeedPriority, c.Speed) + of(p.IntelligencePriority, c.Intelligence)
}
