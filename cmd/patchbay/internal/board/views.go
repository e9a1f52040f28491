package board

import (
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Views describes what clients see at each path of a gateway, such as "(view support, /mcp/v/support: 5
// tools, about 620 tokens)", with a line for each of its warnings.
func Views(r *health.Report) (lines []string) {
	for _, v := range r.Views {
		line := "(" + strings.TrimSuffix("view "+v.Name+", "+v.Path, ", ")
		if v.Search {
			line += ": finds " + screen.Quantity(v.Tools, "tool") + " by search"
		} else {
			line += ": " + screen.Quantity(v.Tools, "tool")
		}
		lines = append(lines, line+", "+text.AboutTokens(v.Tokens)+")")
		for _, w := range v.Warnings {
			lines = append(lines, "warning: "+screen.OneLine(w))
		}
	}
	return lines
}

// large is the number of tokens from which Remarks names the largest tools of a server.
const large = 1000

// tokens describes what the tools of a server take, such as "its tools take about 1,200 tokens, the largest
// search (700) and add (300)".
func tokens(s *health.Server) string {
	out := "its tools take " + text.AboutTokens(s.Tokens)
	if s.Tokens < large || len(s.Largest) < 3 {
		return out
	}
	return fmt.Sprintf("%s, the largest %s (%s) and %s (%s)", out, screen.OneLine(s.Largest[0].Name), text.About(s.Largest[0].Tokens), screen.OneLine(s.Largest[1].Name), text.About(s.Largest[1].Tokens))
}
