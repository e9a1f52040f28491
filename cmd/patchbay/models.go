package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// modelSet holds the models that a person can use here: those of mcp.json and, because models
// belong to a person and not to a project, those of the person's own file.
type modelSet struct {
	list   []config.Model
	use    string // the default, a name or PROVIDER/NAME; empty: none
	faults config.Problems
}

// models reads the models. A model of mcp.json overrides one with the same name in the person's own
// file; so does its default.
func (a *app) models() (*modelSet, error) {
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	set := &modelSet{}
	set.add(read.file, read.faults)
	own, ok := config.UserFile()
	if !ok || a.Config != "" || sameFilePath(own, read.path) {
		return set, nil
	}
	if _, err := os.Stat(own); err != nil {
		return set, nil
	}
	file, faults, err := config.Inspect(own, nil)
	if err != nil {
		return nil, err
	}
	set.add(file, faults)
	return set, nil
}

// add adds the models of a file, which may be nil.
func (s *modelSet) add(file *config.File, faults config.Problems) {
	if file == nil {
		return
	}
	for _, m := range file.Models {
		if s.named(m.Name) == nil {
			s.list = append(s.list, m)
		}
	}
	s.use = cmp.Or(s.use, file.Model)
	for _, p := range faults {
		if p.Model != "" || p.Server == "" {
			s.faults = append(s.faults, p)
		}
	}
}

// named returns the model of a name, or nil if there is none.
func (s *modelSet) named(name string) *config.Model {
	if i := slices.IndexFunc(s.list, func(m config.Model) bool { return m.Name == name }); i >= 0 {
		return &s.list[i]
	}
	return nil
}

func (s *modelSet) names() []string {
	names := make([]string, len(s.list))
	for i := range s.list {
		names[i] = s.list[i].Name
	}
	return names
}

// sameFilePath reports whether two paths, which may be relative, are equal.
func sameFilePath(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && b != "" && x == y
}

// modelNames returns the names of models for completion.
func (a *app) modelNames() []complete.Candidate {
	set, err := a.models()
	if err != nil {
		return nil
	}
	var out []complete.Candidate
	for _, m := range set.list {
		out = append(out, complete.Candidate{Text: m.Name, About: m.Provider + "/" + m.Model})
	}
	return out
}

// ofEnvironment returns a model that is known only as PROVIDER/NAME; the environment may set its
// base URL.
func ofEnvironment(name string) config.Model {
	provider, id, _ := strings.Cut(name, "/")
	return config.Model{Name: name, Provider: provider, Model: id, BaseURL: strings.TrimSpace(os.Getenv(config.VariablesOf(provider) + "_BASE_URL"))}
}

// asServer returns a model in the form of a server, because answers to inputs are kept for servers.
// These answers belong to the model's address.
func asServer(m *config.Model) config.Server {
	return config.Server{Name: m.Name, URL: m.Address(), Source: m.Source}
}

// ofFile returns the file of a model, if it is the mcp.json that was found or named.
func (a *app) ofFile(m config.Model) *config.File {
	if a.file != nil && a.file.file != nil && entry.File(asServer(&m)) == a.file.path {
		return a.file.file
	}
	return nil
}

// resolveModel sets the key of a model, from an input or the environment, and registers it as a
// secret. It returns an error if the person has not agreed to the file of the model, because the
// key and conversations go to an address that the file chooses.
func (a *app) resolveModel(m config.Model) (config.Model, error) {
	if file := a.ofFile(m); file != nil {
		if err := a.mayUse(file); err != nil {
			return m, err
		}
	}
	s := asServer(&m)
	m, err := m.Resolve(func(in config.Input) (string, error) {
		return a.answers.Answer(s, in)
	})
	if err != nil {
		return m, err
	}
	if name := m.KeyVariable(); m.Key == "" && name != "" {
		m.Key = os.Getenv(name)
	}
	a.secrets.Learn(m.Secrets(secrets.Name)...)
	return m, nil
}

var configModelsVerb = verb{
	name: "models", summary: "List language models, and where their keys come from.",
	examples: []string{"patchbay config models"},
	details: `Lists the models of mcp.json, and of your own file if that is another one. Never
shows keys.`,
	command: func() command { return new(configModelsCmd) },
}

// configModelsCmd lists models.
type configModelsCmd struct{}

// listedModel is a row of the list.
type listedModel struct {
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

func (c *configModelsCmd) Run(a *app) error {
	set, err := a.models()
	if err != nil {
		return err
	}
	list := slices.Clone(set.list)
	if strings.Contains(set.use, "/") && set.named(set.use) == nil {
		list = append(list, ofEnvironment(set.use))
	}
	rows := []listedModel{}
	for _, m := range list {
		row := listedModel{Name: m.Name, Provider: m.Provider, Model: m.Model, Address: secrets.ShownURL(m.Address()), Default: m.Name == set.use, Window: m.Window, Source: m.Source}
		row.Key, row.HasKey = a.keyOf(&m)
		for _, p := range m.Missing() {
			row.Missing = append(row.Missing, p.String())
		}
		rows = append(rows, row)
	}
	if a.JSON {
		if err := a.printJSON(rows); err != nil {
			return err
		}
	} else {
		a.printModels(rows)
	}
	if len(set.faults) > 0 {
		return set.faults
	}
	return nil
}

func (a *app) printModels(rows []listedModel) {
	cells := [][]string{}
	for _, r := range rows {
		name, use := r.Name, ""
		if r.Default {
			use = "default"
		}
		cells = append(cells, []string{name, r.Provider + "/" + r.Model, cmp.Or(use, "-"), r.Key, cmp.Or(hereLine(r.Source), "-"), r.Address})
	}
	a.columns("models", []string{"NAME", "MODEL", "USE", "KEY", "FROM", "WHERE"}, cells)
	if len(rows) == 0 {
		a.talk.Note("hint: patchbay config model add NAME --provider openai --model gpt-5 --key-input")
	}
}

// keyOf describes the source of a model's key, and reports whether there is one. It asks nobody.
func (a *app) keyOf(m *config.Model) (text string, has bool) {
	if missing := m.Missing(); len(missing) > 0 {
		return strings.TrimPrefix(missing[0].Text, "the environment variable "), false
	}
	if inputs := m.Inputs(); len(inputs) > 0 {
		for _, in := range inputs {
			if text, has = a.answerOf(m, in); !has {
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
	switch {
	case name == "":
		return "none", false
	case os.Getenv(name) == "":
		return name + " is not set", false
	}
	return name + " of the environment", true
}

// answerOf reports whether an input of a model has an answer, and describes its source.
func (a *app) answerOf(m *config.Model, in config.Input) (text string, has bool) {
	if _, set := os.LookupEnv(in.EnvName()); set {
		return "from " + in.EnvName(), true
	}
	s := asServer(m)
	switch kept, err := a.answers.Kept(s, in); {
	case err != nil:
		return "unreadable vault", false
	case kept != nil && slices.Contains(kept.For, inputs.Use(s)):
		return "stored", true
	case kept != nil:
		return "stored for another address", false
	case in.Default != "":
		return "the default of " + fmt.Sprintf("%q", cut(in.ID, 60)), true
	}
	return "not answered", false
}
