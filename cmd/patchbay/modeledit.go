package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
)

var configModelVerb = verb{
	name: "model", summary: "Add, remove or choose a language model.",
	examples: []string{"patchbay config model add fast --provider openai --model gpt-5 --key-input", "patchbay config model use fast"},
	details:  `Models are stored under "patchbay" in mcp.json, which other hosts ignore.`,
	verbs:    []*verb{&modelAddVerb, &modelRemoveVerb, &modelUseVerb},
}

var modelAddVerb = verb{
	name: "add", summary: "Add a model to mcp.json.", usage: "NAME --provider API [--key-input | --key-env X]",
	examples: []string{"patchbay config model add fast --provider openai --model gpt-5 --key-input", "patchbay config model add own --provider openai --base-url http://HOST/v1"},
	details: `With --key-input, the terminal asks for the key and the vault stores it; with
--key-env, it comes from a variable. Default: the provider's variable,
such as OPENAI_API_KEY. The first model becomes the default.`,
	command: func() command { return new(modelAddCmd) },
}

type modelAddCmd struct{ models.Add }

func (c *modelAddCmd) Run(a *app) error {
	object, input, err := c.Object()
	if err != nil {
		return err
	}
	var chosen bool
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if slices.Contains(namesOf(doc.Models()), c.Name) {
			return usagef("%s already has a model %q", path, c.Name).Hint(a.beside("config", "model", "remove", c.Name))
		}
		if input != nil && !models.HasInput(doc, c.InputID()) {
			if err := doc.AddInput(input); err != nil {
				return err
			}
		}
		if err := doc.AddModel(config.Entry{Name: c.Name, Object: object}); err != nil {
			return err
		}
		if chosen = c.Use || doc.Model() == ""; !chosen {
			return nil
		}
		return doc.UseModel(c.Name)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("added %s to %s", a.shown(oneLine(c.Name)), path))
	if chosen {
		a.talk.Note("it is now the default model")
	}
	return c.after(a, path)
}

// after asks for the key at a terminal, and prints the faults of the model.
func (c *modelAddCmd) after(a *app, path string) error {
	file, faults, err := config.Inspect(path, nil)
	if err != nil {
		return nil // the file was just written; the next reader gets the error
	}
	for _, p := range faults {
		if p.Model == c.Name {
			a.talk.Note("warning: %s", p)
		}
	}
	i := slices.IndexFunc(file.Models, func(m config.Model) bool { return m.Name == c.Name })
	if i < 0 {
		return nil
	}
	m := file.Models[i]
	for _, p := range m.Missing() {
		a.talk.Note("warning: %s", p)
	}
	if !c.KeyInput {
		return nil
	}
	if text, has := models.AnswerOf(a.answers, &m, m.Inputs()[0]); has {
		a.talk.Note("its key: %s", text)
		return nil
	}
	if !a.tty.in || !a.tty.err {
		a.talk.Note("a terminal asks for its key at first use; or set %s", m.Inputs()[0].EnvName())
		return nil
	}
	_, err = a.resolveModel(m)
	return err
}

var modelRemoveVerb = verb{
	name: "remove", summary: "Remove a model from mcp.json.", usage: "NAME",
	examples: []string{"patchbay config model remove fast"},
	details:  `Its stored key stays until patchbay config inputs --forget.`,
	command:  func() command { return new(modelRemoveCmd) },
}

type modelRemoveCmd struct {
	Name string `arg:"" help:"The model."`
	User bool   `help:"Change your own file, which applies everywhere."`
}

func (*modelRemoveCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return a.modelNames()
}

func (c *modelRemoveCmd) Run(a *app) error {
	var used bool
	var left []string
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if names := namesOf(doc.Models()); !slices.Contains(names, c.Name) {
			return usagef("%s has no model %q%s", path, c.Name, didYouMean(c.Name, names)).Hint(a.beside("config", "models"))
		}
		used = doc.Model() == c.Name
		err := doc.RemoveModel(c.Name)
		left = namesOf(doc.Models())
		return err
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("removed %s from %s", a.shown(oneLine(c.Name)), path))
	if used && len(left) > 0 {
		a.talk.Note("it was the default; choose another with patchbay config model use %s", shell(left[:1]))
	}
	return nil
}

var modelUseVerb = verb{
	name: "use", summary: "Choose the default model.", usage: "NAME | PROVIDER/NAME",
	examples: []string{"patchbay config model use fast", "patchbay config model use anthropic/claude-sonnet-4-5"},
	details:  `PROVIDER/NAME is a model without its own entry.`,
	command:  func() command { return new(modelUseCmd) },
}

type modelUseCmd struct {
	Name string `arg:"" help:"A model, or PROVIDER/NAME."`
	User bool   `help:"Change your own file, which applies everywhere."`
}

func (*modelUseCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return a.modelNames()
}

func (c *modelUseCmd) Run(a *app) error {
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		provider, model, whole := strings.Cut(c.Name, "/")
		switch names := namesOf(doc.Models()); {
		case whole && (!slices.Contains(config.Providers, provider) || model == ""):
			return usagef("%q is not PROVIDER/NAME with one of the providers %s", c.Name, strings.Join(config.Providers, ", "))
		case !whole && !slices.Contains(names, c.Name):
			return usagef("%s has no model %q%s", path, c.Name, didYouMean(c.Name, names)).Hint(a.beside("config", "models"))
		}
		return doc.UseModel(c.Name)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("%s uses %s", path, a.shown(oneLine(c.Name))))
	return nil
}

func namesOf(list []config.Entry) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name
	}
	return names
}
