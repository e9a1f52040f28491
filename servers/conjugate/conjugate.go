package conjugate

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
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
	v, ok := find(at.Verb)
	if !ok { // the schema admits no other verbs
		return cell{}, fmt.Errorf("no verb %q; %s lists the verbs", at.Verb, tableURI)
	}
	return newCell(v, at.Tense, at.Person), nil
}

// New returns a server. Servers share only the table.
func New(o Options) *mcp.Server {
	srv := &mcp.Server{
		Name:         "conjugate",
		Title:        "English verbs",
		Version:      "0.1.0",
		Instructions: "A table of 31 English verbs. conjugate looks up one form; " + tableURI + " has all verbs.",
		Logger:       o.Logger,
	}
	srv.Use(exactNames)
	output, err := schema.ForOutput[cell]()
	if err != nil {
		panic(err) // no input can cause it
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "conjugate", Title: "Conjugate a verb",
		Description:  "Returns an English verb in a tense and a person: the form alone for a person with a number (3rd singular), else singular and plural.",
		Annotations:  &mcp.ToolAnnotations{ReadOnly: new(true), OpenWorld: new(false)},
		OutputSchema: output.JSON(),
	}, func(_ context.Context, at position) (*mcp.ToolResult, error) {
		c, err := at.cell()
		if err != nil {
			return nil, err
		}
		object, err := output.Encode(c)
		text := c.Form
		if text == "" {
			text = string(object)
		}
		return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(text)}, Structured: object}, err
	})

	mcp.AddPrompt(srv, mcp.Prompt{
		Name: "conjugate_verb", Title: "Practise a verb",
		Description: "A short exercise on a verb in a tense and a person.",
		Complete: map[string]mcp.CompleteFunc{
			"verb":   startingWith(verbName("").Enum()),
			"tense":  startingWith(tense("").Enum()),
			"person": startingWith(person("").Enum()),
		},
	}, exercise)

	mcp.AddResource(srv, mcp.Resource{
		URI: tableURI, Name: "Verb table", Description: "All verbs in five tenses and three persons.", MIMEType: "application/json",
	}, func(context.Context) ([]cell, error) {
		var all []cell
		for _, v := range verbs {
			all = append(all, v.cells()...)
		}
		return all, nil
	})
	type variables struct {
		Verb string `json:"verb"`
	}
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: tableURI + "/{verb}", Name: "Verb", Description: "One verb in five tenses and three persons.", MIMEType: "application/json",
		Complete: map[string]mcp.CompleteFunc{"verb": startingWith(verbName("").Enum())},
	}, func(_ context.Context, in variables) ([]cell, error) {
		v, ok := find(verbName(in.Verb))
		if !ok {
			return nil, mcp.ResourceNotFound(tableURI + "/" + in.Verb)
		}
		return v.cells(), nil
	})
	return srv
}

// exercise includes the forms, so that a model without the tool gets them right too.
func exercise(_ context.Context, at position) (string, error) {
	c, err := at.cell()
	if err != nil {
		return "", err
	}
	tense := strings.ReplaceAll(string(c.Tense), "_", " ")
	forms := fmt.Sprintf("in the %s tense, %s person: %q in the singular and %q in the plural", tense, c.Person, c.Singular, c.Plural)
	if c.Form != "" {
		forms = fmt.Sprintf("in one form, %s, %s: %q", tense, c.Person, c.Form)
	}
	return fmt.Sprintf("Help me practise the English verb %q %s.\n"+
		"Show each form in two short sentences about everyday life. Then give me three sentences with a gap to fill in, one at a time, "+
		"and tell me after each answer whether it was right, and why.",
		c.Verb, forms), nil
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
