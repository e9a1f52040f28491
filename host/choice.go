package host

import (
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Choices are the models that servers may have completions of, the default first.
type Choices []Choice

// Choice is a model, and how it compares with the others: 0 for the worst of them, 1 for the best.
type Choice struct {
	Model       model.Model
	Cheap       float64
	Fast        float64
	Intelligent float64
}

// Choose finds the model that suits the preferences of a server best. The first hint that is part
// of the name of a model, whatever its case, leaves only such models. Among those the priorities
// decide, each multiplied by what a model has of it, and then the order. It suits [Host.Sampler],
// and returns nil only if there are no choices.
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
		if hint.Name == "" {
			continue
		}
		var meant Choices
		for _, c := range cs {
			if strings.Contains(strings.ToLower(c.Model.Info().Name), strings.ToLower(hint.Name)) {
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

func (c Choice) score(p *mcp.ModelPreferences) float64 {
	of := func(priority *float64, has float64) float64 {
		if priority == nil {
			return 0
		}
		return min(max(*priority, 0), 1) * has
	}
	return of(p.CostPriority, c.Cheap) + of(p.SpeedPriority, c.Fast) + of(p.IntelligencePriority, c.Intelligent)
}
