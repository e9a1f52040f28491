package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/mcp"
)

const insightsURI = "memo://insights"

// The limits of the memo.
const (
	maxInsight  = 10_000 // characters each
	maxInsights = 1_000
)

// insights is the memo: the callers' findings, in order. It is kept in memory, so
// that notes never change the database.
type insights struct {
	mu    sync.Mutex
	texts []string // guarded by mu
}

func (s *server) addInsights() {
	mcp.AddResource(s.mcp, mcp.Resource{
		URI: insightsURI, Name: "Insights", Description: "The findings about the data so far.", MIMEType: "text/plain",
	}, func(context.Context) (string, error) { return s.insights.memo(), nil })

	type input struct {
		Insight string `json:"insight" doc:"one finding about the data" min:"1" max:"10000"`
	}
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "append_insight", Title: "Note an insight",
		Description: "Adds a finding to the memo " + insightsURI + ", which lives as long as the server.",
		Annotations: adds,
	}, func(_ context.Context, in input) (string, error) {
		n, err := s.insights.add(in.Insight)
		if err != nil {
			return "", err
		}
		s.mcp.ResourceUpdated(insightsURI)
		return fmt.Sprintf("Noted as number %d in %s.", n, insightsURI), nil
	})
}

// add appends an insight and returns its number.
func (i *insights) add(text string) (int, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, errors.New("the insight is empty")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.texts) == maxInsights {
		return 0, fmt.Errorf("the memo is full with %d insights", maxInsights)
	}
	i.texts = append(i.texts, text)
	return len(i.texts), nil
}

// memo is the text of the resource.
func (i *insights) memo() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.texts) == 0 {
		return "No insights yet. append_insight adds one.\n"
	}
	var b strings.Builder
	b.WriteString("Insights\n\n")
	for n, text := range i.texts {
		fmt.Fprintf(&b, "%d. %s\n", n+1, text)
	}
	return b.String()
}
