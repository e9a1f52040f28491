package chain

import (
	"context"
	"strings"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/principal"
)

// Team returns the team of the caller of a request, by the teams of gateway.yaml; empty: none.
func (c *Chain) Team(ctx context.Context) string {
	teams := c.teams.Load()
	if teams == nil || teams.From == "" {
		return ""
	}
	p := auth.From(ctx)
	if p == nil {
		p = &auth.Principal{ID: principal.From(ctx)}
	}
	return teams.Of(valuesOf(p, teams.From))
}

// valuesOf returns the values of a principal that the From of teams names.
func valuesOf(p *auth.Principal, from string) []string {
	switch from {
	case "principal.id":
		return []string{p.ID}
	case "principal.roles":
		return p.Roles
	case "principal.scopes":
		return p.Scopes
	}
	var value any = p.Claims
	for name := range strings.SplitSeq(strings.TrimPrefix(from, "principal.claims."), ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		var texts []string
		for _, v := range value {
			if text, ok := v.(string); ok {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}
