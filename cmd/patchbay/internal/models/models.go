// Package models has the language models that a person can use here: those of mcp.json and, because
// models belong to a person and not to a project, those of the person's own file.
//
// Fill a [Set] with [Set.Add], the file that overrides the other first. [Set.Rows] lists it for
// people, [Set.Find] finds one, [Open] opens it, and [List] asks its server for others.
//
// # Guarantees
//
//   - A row shows where a key comes from, and never the key.
//   - [Open] sends only the configured key. The environment's key may go with a base URL of the
//     environment, and not with one of a file, which may be somebody else's server.
package models

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/internal/providers"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// Priced returns an error with the line to add to mcp.json if the price of a model is not known.
func Priced(list ...model.Model) error {
	for _, m := range list {
		info := m.Info()
		if info.Price != (model.Price{}) {
			continue
		}
		of, name, _ := strings.Cut(info.Name, "/")
		return advice.Usagef("--max-cost needs the price of %s", info.Name).Hint(fmt.Sprintf(
			`in mcp.json: "patchbay": {"models": {"mine": {"provider": %q, "name": %q, "price": {"input": 0.25, "output": 2}}}}, with its price for a million tokens; then --model mine`, of, name))
	}
	return nil
}

// Set holds models. The zero value is an empty set.
type Set struct {
	List    []config.Model
	Default string // a name or PROVIDER/NAME; empty: none
	Faults  config.Problems
}

// Add adds the models of a file, which may be nil, except those whose name the set has.
func (s *Set) Add(file *config.File, faults config.Problems) {
	if file == nil {
		return
	}
	for _, m := range file.Models {
		if s.Named(m.Name) == nil {
			s.List = append(s.List, m)
		}
	}
	s.Default = cmp.Or(s.Default, file.Model)
	for _, p := range faults {
		if p.Model != "" || p.Server == "" {
			s.Faults = append(s.Faults, p)
		}
	}
}

// Named returns the model of a name, or nil if there is none.
func (s *Set) Named(name string) *config.Model {
	if i := slices.IndexFunc(s.List, func(m config.Model) bool { return m.Name == name }); i >= 0 {
		return &s.List[i]
	}
	return nil
}

// Names returns the names of the models.
func (s *Set) Names() []string {
	names := make([]string, len(s.List))
	for i := range s.List {
		names[i] = s.List[i].Name
	}
	return names
}

// Find returns the model of a name: of the set; NAME of the server of a model of the set, as MODEL/NAME;
// or PROVIDER/NAME, with the settings of the environment. It returns nil if there is none; a name with
// an unknown provider is one that [Open] refuses.
func (s *Set) Find(name string) *config.Model {
	if m := s.Named(name); m != nil {
		return m
	}
	before, id, slash := strings.Cut(name, "/")
	if m := s.Named(before); slash && m != nil {
		other := *m
		other.Model, other.Window, other.Price = id, 0, config.Price{}
		return &other
	}
	if !slash {
		return nil
	}
	m := OfEnvironment(name)
	return &m
}

// OfEnvironment returns a model that is known only as PROVIDER/NAME; the environment may set its
// base URL.
func OfEnvironment(name string) config.Model {
	provider, id, _ := strings.Cut(name, "/")
	m := config.Model{Name: name, Provider: provider, Model: id}
	if p := providers.Named(provider); p != nil {
		m.BaseURL = strings.TrimSpace(os.Getenv(p.Other))
	}
	return m
}

// Keys returns the keys of providers in the environment.
func Keys() (keys []string) {
	for _, name := range providers.Keys() {
		if key := os.Getenv(name); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// OfVariable returns the first provider with a variable in the environment, and the variable.
func OfVariable() (provider, variable string) {
	for _, provider := range providers.Names() {
		p := providers.Named(provider)
		for _, variable := range []string{p.Key, p.Other} {
			if os.Getenv(variable) != "" {
				return provider, variable
			}
		}
	}
	return "", ""
}

// AsServer returns a model in the form of a server, because answers to inputs are kept for servers.
// These answers belong to the model's address.
func AsServer(m *config.Model) config.Server {
	return config.Server{Name: m.Name, URL: m.Address(), Source: m.Source}
}

// Open opens a model whose inputs are resolved. The client may be nil.
func Open(m *config.Model, client *http.Client) (model.Model, error) {
	opened, err := provider.Open(m.Provider+"/"+m.Model, options(m, client))
	if err != nil && m.Source != "" {
		err = fmt.Errorf("%s: %w", m.Name, err)
	}
	return opened, err
}

// List returns the names of the models that the server of a model offers. The inputs of the model are
// resolved, and the client may be nil.
func List(ctx context.Context, m *config.Model, client *http.Client) ([]string, error) {
	return provider.Models(ctx, m.Provider+"/"+m.Model, options(m, client))
}

// options returns the options of a model whose inputs are resolved. Of the environment they have only
// what the address of the provider needs, such as a region.
func options(m *config.Model, client *http.Client) provider.Options {
	header := http.Header{}
	for name, value := range m.Headers {
		header.Set(name, value)
	}
	return provider.Options{
		BaseURL: m.BaseURL, Key: m.Key, Header: header, HTTPClient: client, MaxTokens: m.MaxTokens, Effort: model.Effort(m.Effort), Parameters: m.Parameters,
		Env: func(name string) string {
			if p := providers.Named(m.Provider); p != nil && p.Needs(name) {
				return os.Getenv(name)
			}
			return ""
		},
		Info: func(info *model.Info) {
			if m.Window > 0 {
				info.Window = m.Window
			}
			for _, takes := range []struct {
				said *bool
				is   *bool
			}{{m.Images, &info.Images}, {m.Audio, &info.Audio}, {m.Files, &info.Files}} {
				if takes.said != nil {
					*takes.is = *takes.said
				}
			}
			info.Price = model.Price(m.Price)
		},
	}
}

// Row is a model in a list for people.
type Row struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Address  string   `json:"address"`
	Default  bool     `json:"default"`
	Key      string   `json:"key"` // the source of the key, or what is missing, in words
	HasKey   bool     `json:"hasKey"`
	Window   int      `json:"window,omitzero"`
	Source   string   `json:"source,omitempty"`
	Missing  []string `json:"missing,omitempty"`
}

// Rows lists the models, and the default model if it is only known as PROVIDER/NAME.
func (s *Set) Rows(answers *inputs.Answers) []Row {
	list := slices.Clone(s.List)
	if strings.Contains(s.Default, "/") && s.Named(s.Default) == nil {
		list = append(list, OfEnvironment(s.Default))
	}
	rows := []Row{}
	for _, m := range list {
		row := Row{Name: m.Name, Provider: m.Provider, Model: m.Model, Address: secrets.ShownURL(m.Address()), Default: m.Name == s.Default, Window: m.Window, Source: m.Source}
		row.Key, row.HasKey = keyOf(answers, &m)
		for _, p := range m.Missing() {
			row.Missing = append(row.Missing, p.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// keyOf describes the source of a model's key, and reports whether there is one. It asks nobody.
func keyOf(answers *inputs.Answers, m *config.Model) (text string, has bool) {
	if missing := m.Missing(); len(missing) > 0 {
		return strings.TrimPrefix(missing[0].Text, "the environment variable "), false
	}
	if inputs := m.Inputs(); len(inputs) > 0 {
		for _, in := range inputs {
			if text, has = AnswerOf(answers, m, in); !has {
				return text, false
			}
		}
		return text, true
	}
	if m.Key != "" {
		for _, v := range m.Values() {
			if from := v.From(); v.Member == "key" && len(from) > 0 {
				return strings.Join(from, ", "), true
			}
		}
		return "in the file", true
	}
	name := m.KeyVariable()
	switch p := providers.Named(m.Provider); {
	case name == "", p.Open && os.Getenv(name) == "":
		return "none", false
	case os.Getenv(name) == "":
		return name + " is not set", false
	}
	return name + " of the environment", true
}

// AnswerOf reports whether an input of a model has an answer, and describes its source. It asks
// nobody.
func AnswerOf(answers *inputs.Answers, m *config.Model, in config.Input) (text string, has bool) {
	if _, set := os.LookupEnv(in.EnvName()); set {
		return "from " + in.EnvName(), true
	}
	s := AsServer(m)
	switch kept, err := answers.Kept(s, in); {
	case err != nil:
		return "unreadable vault", false
	case kept != nil && slices.Contains(kept.For, inputs.Use(s)):
		return "stored", true
	case kept != nil:
		return "stored for another address", false
	case in.Default != "":
		return "the default of " + fmt.Sprintf("%q", screen.Cut(in.ID, 60)), true
	}
	return "not answered", false
}
