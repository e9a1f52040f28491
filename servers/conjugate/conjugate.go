package conjugate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Options configure a server. The zero value works.
type Options struct {
	// Logger gets the errors that cannot be returned to a client. Nil discards them.
	Logger *slog.Logger
}

// tableURI is the resource of the whole table; the URIs of verbs begin with it.
const tableURI = "conjugate://verbs"

// position names a cell, as arguments of the tool and of the prompt.
type position struct {
	Verb   verbName `json:"verb" doc:"base form of the verb"`
	Tense  tense    `json:"tense" doc:"the tense"`
	Person person   `json:"person" doc:"grammatical person"`
}

func (at position) cell() (cell, error) {
	for _, c := range lookUp(at.Verb) {
		if c.Tense == at.Tense && c.Person == at.Person {
			return c, nil
		}
	}
	// The schema admits no other values.
	return cell{}, fmt.Errorf("no verb %q; %s lists the verbs", at.Verb, tableURI)
}

// New returns a server. Servers share only the table.
func New(o Options) *mcp.Server {
	srv := &mcp.Server{
		Name:         "conjugate",
		Title:        "English verbs",
		Version:      "0.1.0",
		Instructions: "A table of 20 English verbs in 5 tenses and 3 persons. conjugate looks up one cell; " + tableURI + " has all of it.",
		Logger:       o.Logger,
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "conjugate", Title: "Conjugate a verb",
		Description: "Returns an English verb in a tense and a person, in singular and plural.",
		Annotations: &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)},
	}, func(_ context.Context, at position) (cell, error) { return at.cell() })

	mcp.AddPrompt(srv, mcp.Prompt{
		Name: "conjugate_verb", Title: "Practise a verb",
		Description: "A short exercise on a verb in a tense and a person.",
		Complete: map[string]mcp.CompleteFunc{
			"verb":   startingWith(verbName("").Enum()),
			"tense":  startingWith(words(tenses)),
			"person": startingWith(words(persons)),
		},
	}, exercise)

	mcp.AddResource(srv, mcp.Resource{
		URI: tableURI, Name: "Verb table", Description: "All verbs in all tenses and persons.", MIMEType: "application/json",
	}, func(context.Context) ([]cell, error) {
		var all []cell
		for _, name := range verbName("").Enum() {
			all = append(all, lookUp(verbName(name))...)
		}
		return all, nil
	})
	type variables struct {
		Verb string `json:"verb"`
	}
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: tableURI + "/{verb}", Name: "Verb", Description: "One verb in all tenses and persons.", MIMEType: "application/json",
		Complete: map[string]mcp.CompleteFunc{"verb": startingWith(verbName("").Enum())},
	}, func(_ context.Context, in variables) ([]cell, error) {
		cells := lookUp(verbName(in.Verb))
		if cells == nil {
			return nil, mcp.ResourceNotFound(tableURI + "/" + in.Verb)
		}
		return cells, nil
	})
	return srv
}

// exercise includes the forms, so that a model without the tool gets them right too.
func exercise(_ context.Context, at position) (string, error) {
	c, err := at.cell()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Help me practise the English verb %q in the %s tense, %s person: %q in the singular and %q in the plural.\n"+
		"Show each form in two short sentences about everyday life. Then give me three sentences with a gap to fill in, one at a time, "+
		"and tell me after each answer whether it was right, and why.",
		c.Verb, strings.ReplaceAll(string(c.Tense), "_", " "), c.Person, c.Singular, c.Plural), nil
}

// startingWith returns the words that begin with a prefix, in either case.
func startingWith(words []string) mcp.CompleteFunc {
	return func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
		found := []string{}
		for _, w := range words {
			if strings.HasPrefix(w, strings.ToLower(prefix)) {
				found = append(found, w)
			}
		}
		return found, nil
	}
}
