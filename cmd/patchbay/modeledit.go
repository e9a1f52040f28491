package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// configModelCmd has the verbs that change models.
type configModelCmd struct {
	Add    modelAddCmd    `cmd:"" help:"Add a model to mcp.json."`
	Remove modelRemoveCmd `cmd:"" help:"Remove a model from mcp.json."`
	Use    modelUseCmd    `cmd:"" help:"Choose the model to use."`
}

type modelAddCmd struct {
	Name      string `arg:"" help:"What the model is to be called."`
	Provider  string `placeholder:"API" help:"openai, openai-responses, anthropic or text."`
	Model     string `placeholder:"NAME" help:"How the provider calls it; default: as you do."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"Where it is asked; default: at the provider's."`
	KeyInput  bool   `help:"Ask for the key, and keep it in the vault."`
	KeyEnv    string `placeholder:"VARIABLE" help:"Take the key from the environment."`
	Window    int    `placeholder:"N" help:"Tokens of a request and its answer."`
	MaxTokens int    `placeholder:"N" help:"Tokens of an answer."`
	Use       bool   `help:"Use it from now on."`
	User      bool   `help:"Change your own file, which holds everywhere."`
}

func (c *modelAddCmd) Run(a *app) error {
	if err := a.notServer(); err != nil {
		return err
	}
	object, input, err := c.object()
	if err != nil {
		return err
	}
	var chosen bool
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if slices.Contains(namesOf(doc.Models()), c.Name) {
			return usagef("%s has a model %q already", path, c.Name).hint(a.beside("config", "model", "remove", c.Name))
		}
		if input != nil && !hasInput(doc, c.inputID()) {
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
		a.talk.note("it is the model that is used from now on")
	}
	return c.after(a, path)
}

// object makes the model of the command line, and the input of its key; nil: it has none.
func (c *modelAddCmd) object() (object, input []byte, err error) {
	switch {
	case strings.TrimSpace(c.Name) == "" || strings.Contains(c.Name, "/"):
		return nil, nil, usagef("a model needs a name, without a /")
	case !slices.Contains(config.Providers, c.Provider):
		return nil, nil, usagef("--provider %q%s it is one of %s", c.Provider, didYouMean(c.Provider, config.Providers)+";", strings.Join(config.Providers, ", "))
	case c.KeyInput && c.KeyEnv != "":
		return nil, nil, usagef("both --key-input and --key-env say where the key is from; keep one")
	case strings.ContainsAny(c.KeyEnv, "${}:"):
		return nil, nil, usagef("--key-env is the name of a variable").hint("--key-env OPENAI_API_KEY") // it may be the key itself
	case c.Window < 0 || c.MaxTokens < 0:
		return nil, nil, usagef("--window and --max-tokens are numbers of tokens")
	}
	if u, err := url.Parse(c.BaseURL); c.BaseURL != "" && !strings.Contains(c.BaseURL, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, nil, usagef("--base-url is no http or https URL").hint("--base-url http://127.0.0.1:11434/v1")
	}
	o := struct {
		Provider  string `json:"provider"`
		Name      string `json:"name"`
		BaseURL   string `json:"baseUrl,omitempty"`
		Key       string `json:"key,omitempty"`
		Window    int    `json:"window,omitzero"`
		MaxTokens int    `json:"maxTokens,omitzero"`
	}{Provider: c.Provider, Name: cmp.Or(c.Model, c.Name), BaseURL: c.BaseURL, Window: c.Window, MaxTokens: c.MaxTokens}
	switch {
	case c.KeyEnv != "":
		o.Key = "${env:" + c.KeyEnv + "}"
	case c.KeyInput:
		o.Key = "${input:" + c.inputID() + "}"
		input, err = jsonx.Marshal(struct {
			Type        string `json:"type"`
			ID          string `json:"id"`
			Description string `json:"description"`
			Password    bool   `json:"password"`
		}{"promptString", c.inputID(), "API key of the model " + c.Name, true})
		if err != nil {
			return nil, nil, err
		}
	}
	object, err = jsonx.Marshal(o)
	return object, input, err
}

// inputID names the input of the key.
func (c *modelAddCmd) inputID() string {
	return strings.Map(func(r rune) rune {
		if r == '}' || r == '{' || r < ' ' {
			return '_'
		}
		return r
	}, c.Name) + "-key"
}

func hasInput(doc *config.Document, id string) bool {
	return slices.ContainsFunc(doc.Inputs(), func(raw json.RawMessage) bool {
		v, _ := jsonx.Lookup(raw, "id")
		return plain(v) == id
	})
}

// after asks for the key, if somebody is there, and tells what is wrong with the model.
func (c *modelAddCmd) after(a *app, path string) error {
	file, faults, err := config.Inspect(path, nil)
	if err != nil {
		return nil // it was written a moment ago; the next one who reads it is told
	}
	for _, p := range faults {
		if p.Model == c.Name {
			a.talk.note("warning: %s", p)
		}
	}
	i := slices.IndexFunc(file.Models, func(m config.Model) bool { return m.Name == c.Name })
	if i < 0 {
		return nil
	}
	m := file.Models[i]
	for _, p := range m.Missing() {
		a.talk.note("warning: %s", p)
	}
	if !c.KeyInput {
		return nil
	}
	if text, has := a.answerOf(&m, m.Inputs()[0]); has {
		a.talk.note("its key: %s", text)
		return nil
	}
	if !a.tty.in || !a.tty.err {
		a.talk.note("its key is asked for at the terminal when the model is used, or set %s", m.Inputs()[0].EnvName())
		return nil
	}
	_, err = a.resolveModel(m)
	return err
}

type modelRemoveCmd struct {
	Name string `arg:"" help:"The model."`
	User bool   `help:"Change your own file, which holds everywhere."`
}

func (c *modelRemoveCmd) Run(a *app) error {
	if err := a.notServer(); err != nil {
		return err
	}
	var used bool
	var left []string
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if names := namesOf(doc.Models()); !slices.Contains(names, c.Name) {
			return usagef("%s has no model %q%s", path, c.Name, didYouMean(c.Name, names)).hint(a.beside("config", "models"))
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
		a.talk.note("it was the one to use; choose another with patchbay config model use %s", shell(left[:1]))
	}
	return nil
}

type modelUseCmd struct {
	Name string `arg:"" help:"A model, or PROVIDER/NAME."`
	User bool   `help:"Change your own file, which holds everywhere."`
}

func (c *modelUseCmd) Run(a *app) error {
	if err := a.notServer(); err != nil {
		return err
	}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		provider, model, whole := strings.Cut(c.Name, "/")
		switch names := namesOf(doc.Models()); {
		case whole && (!slices.Contains(config.Providers, provider) || model == ""):
			return usagef("%q is not PROVIDER/NAME; providers are %s", c.Name, strings.Join(config.Providers, ", "))
		case !whole && !slices.Contains(names, c.Name):
			return usagef("%s has no model %q%s", path, c.Name, didYouMean(c.Name, names)).hint(a.beside("config", "models"))
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
