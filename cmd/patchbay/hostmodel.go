package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// modelFlags name the language model and its system prompt.
type modelFlags struct {
	priced   bool     // a model without a price is refused
	Model    string   `short:"m" placeholder:"MODEL" help:"A name in mcp.json, or PROVIDER/NAME."`
	Fallback []string `sep:"none" placeholder:"MODEL" help:"Ask it while the other cannot answer (repeatable)."`
	System   string   `placeholder:"TEXT|@FILE" help:"System prompt; {tools}: the list of tools."`
}

// model opens the model that the flags or the configuration name. If they name none, the error
// wraps host.ErrNoModel, in a fault with advice.
func (a *app) model(f modelFlags) (model.Model, error) {
	name := f.Model
	if name == "" {
		set, err := a.models()
		if err != nil {
			return nil, err
		}
		if name = set.Default; name == "" {
			return nil, a.noModel(set)
		}
	}
	others := make([]model.Model, len(f.Fallback))
	for i, name := range f.Fallback {
		var err error
		if others[i], err = a.openModel(name); err != nil {
			return nil, err
		}
	}
	m, err := a.openModel(name)
	if err == nil && f.priced {
		err = models.Priced(append(others, m)...)
	}
	if err != nil || len(others) == 0 {
		return m, err
	}
	return model.Fallback(m, others...), nil
}

// openModel opens a model by its name, as [models.Set.Find] finds it.
func (a *app) openModel(name string) (model.Model, error) {
	a.secrets.Learn(models.Keys()...)
	set, err := a.models()
	if err != nil {
		return nil, err
	}
	if m := set.Find(name); m != nil {
		a.asked.Store(m)
		return a.configured(*m)
	}
	for _, p := range set.Faults {
		if p.Model == name {
			return nil, config.Problems{p}
		}
	}
	return nil, usagef("no model %q%s", name, didYouMean(name, set.Names())).Hint("--model openai/NAME, or patchbay config models")
}

// offered returns the models of the server that was asked for a model last, as names for openModel.
func (a *app) offered(ctx context.Context) ([]string, error) {
	m := a.asked.Load()
	if m == nil {
		return nil, nil
	}
	names, err := a.listModels(ctx, m)
	of, _, _ := strings.Cut(m.Name, "/")
	for i := range names {
		names[i] = of + "/" + names[i]
	}
	return names, err
}

// listModels returns the names of the models at the server of a model.
func (a *app) listModels(ctx context.Context, m *config.Model) ([]string, error) {
	resolved, err := a.resolveModel(*m)
	if err != nil {
		return nil, err
	}
	reach, err := a.modelClient()
	if err != nil {
		return nil, err
	}
	return models.List(ctx, &resolved, reach)
}

// silentTime is the silence of a model after which a line says that the program waits for it. Tests
// change it.
var silentTime = 5 * time.Second

// noted returns a model whose silence is noted; nil stays nil.
func (a *app) noted(m model.Model) model.Model {
	if m == nil {
		return nil
	}
	return model.OnIdle(m, silentTime, func() {
		a.talk.Note("waiting for %s, which has sent nothing for %v", m.Info().Name, silentTime)
	})
}

// configured opens a model of the configuration.
func (a *app) configured(m config.Model) (model.Model, error) {
	var err error
	if a.replayed {
		m.Key = "none"
	} else if m, err = a.resolveModel(m); err != nil {
		return nil, err
	}
	reach, err := a.modelClient()
	if err != nil {
		return nil, err
	}
	opened, err := models.Open(&m, reach)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return opened, nil
}

// modelClient returns the HTTP client for models; nil: the default.
func (a *app) modelClient() (*http.Client, error) {
	if a.modelWire != nil {
		return &http.Client{Transport: a.modelWire}, nil
	}
	secure, err := a.modelTLS()
	if err != nil || secure == nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = secure
	return &http.Client{Transport: t}, nil
}

// noModel returns the error for a missing model, with a command that names one.
func (a *app) noModel(set *models.Set) *fault {
	f := &fault{Code: exitUsage, Err: host.ErrNoModel}
	if len(set.List) > 0 {
		f.Err = fmt.Errorf("%w; available: %s", host.ErrNoModel, strings.Join(set.Names(), ", "))
		return f.Hint(a.again("--model", set.List[0].Name))
	}
	if of, variable := models.OfVariable(); of != "" {
		f.Err = fmt.Errorf("%w, but %s is set", host.ErrNoModel, variable)
		return f.Hint(a.again("--model", of+"/NAME"))
	}
	return f.Hint("set OPENAI_API_KEY or ANTHROPIC_API_KEY, then " + a.again("--model", "openai/NAME"))
}

// sampler chooses between a model and those of the configuration, for servers that have
// preferences. The others are opened at a server's first request, if their keys are available then.
// Those of a file that the person has not agreed to are left out.
func (a *app) sampler(m model.Model) func(*mcp.ModelPreferences) model.Model {
	choices := host.Choices{{Model: m}}
	fill := sync.OnceFunc(func() {
		set, err := a.models()
		if err != nil {
			return
		}
		for _, c := range set.List {
			if file := a.ofFile(c); file != nil {
				if yes, err := a.agreed(file); err != nil || !yes {
					continue
				}
			}
			choice := host.Choice{Model: m, Hints: append(slices.Clone(c.Hints), c.Name), Cost: c.Rank.Cost, Speed: c.Rank.Speed, Intelligence: c.Rank.Intelligence}
			if c.Provider+"/"+c.Model == m.Info().Name {
				choices[0] = choice
			} else if choice.Model, err = a.configured(c); err == nil {
				choices = append(choices, choice)
			}
		}
	})
	return func(p *mcp.ModelPreferences) model.Model {
		fill()
		return choices.Choose(p)
	}
}

// modelFault explains an error from a model or its provider.
func (a *app) modelFault(e *model.Error) *fault {
	f := &fault{Code: exitModel, Err: errors.New(clip(a.secrets.Text(e.Error())))}
	name := e.Model
	if set, err := a.models(); err == nil {
		if i := slices.IndexFunc(set.List, func(m config.Model) bool { return m.Provider+"/"+m.Model == name }); i >= 0 {
			name = set.List[i].Name
		}
	}
	look := shell([]string{"patchbay", "config", "doctor", name})
	switch e.Kind {
	case model.NoKey:
		f.Hint("check its key: " + look)
	case model.NoModel:
		f.Hint("check --model " + shell([]string{e.Model}) + " and the base URL: " + look)
	case model.TooLong:
		f.Hint("shorten the input, or use fewer servers with -s")
	}
	return f
}

// system returns the system prompt.
func (a *app) system(f modelFlags, otherwise string) (string, error) {
	path, isFile := strings.CutPrefix(f.System, "@")
	switch {
	case f.System == "":
		return otherwise, nil
	case !isFile:
		return f.System, nil
	}
	data, err := arguments.ReadFile(path)
	if err != nil {
		return "", usagef("--system: %w", err)
	}
	return string(data), nil
}
