package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// modelSet are the models that a person has here: those of mcp.json, and, as models are somebody's
// and not a project's, those of the person's own file.
type modelSet struct {
	list   []config.Model
	use    string // the default, a name or PROVIDER/NAME; empty: there is none
	faults config.Problems
}

// models reads the models. One of mcp.json goes before one of the same name in the person's own
// file, and its default likewise.
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

// add takes over the models of a file, which may be nil.
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

// named returns a model, nil if there is none of the name.
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

// sameFilePath compares two paths, which may be relative.
func sameFilePath(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return errX == nil && errY == nil && b != "" && x == y
}

// modelNames are the names of models for completion.
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

// ofEnvironment is a model of which only the name is known, as PROVIDER/NAME: the environment
// says how it is reached.
func ofEnvironment(name string) config.Model {
	provider, id, _ := strings.Cut(name, "/")
	return config.Model{Name: name, Provider: provider, Model: id, BaseURL: strings.TrimSpace(os.Getenv(config.VariablesOf(provider) + "_BASE_URL"))}
}

// asServer is a model as somebody who is given the answers to inputs: its address alone gets them.
func asServer(m *config.Model) config.Server {
	return config.Server{Name: m.Name, URL: m.Address(), Source: m.Source}
}

// resolveModel puts its key in place, asking for it where it is an input, and keeps it out of
// everything that is written.
func (a *app) resolveModel(m config.Model) (config.Model, error) {
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
	name: "models", summary: "List language models, and whether there are keys.",
	examples: []string{"patchbay config models"},
	details: `Models are those of mcp.json, and of your own file where it is another one. Keys
are never shown.`,
	command: func() command { return new(configModelsCmd) },
}

// configModelsCmd lists models.
type configModelsCmd struct{}

// listedModel is a model as it is listed.
type listedModel struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Model    string   `json:"model"`
	Address  string   `json:"address"`
	Default  bool     `json:"default"`
	Key      string   `json:"key"` // where it is from, or what is missing, in words
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
		raw, err := jsonx.Marshal(rows)
		if err != nil {
			return err
		}
		a.print(string(raw))
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

// keyOf tells in words where the key of a model is from, and whether there is one. It asks nobody.
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

// answerOf tells whether there is an answer to an input of a model.
func (a *app) answerOf(m *config.Model, in config.Input) (text string, has bool) {
	if _, set := os.LookupEnv(in.EnvName()); set {
		return "from " + in.EnvName(), true
	}
	s := asServer(m)
	switch kept, err := a.answers.Kept(s, in); {
	case err != nil:
		return "the vault cannot be read", false
	case kept != nil && slices.Contains(kept.For, inputs.Use(s)):
		return "kept", true
	case kept != nil:
		return "kept for another address", false
	case in.Default != "":
		return "the default of " + fmt.Sprintf("%q", cut(in.ID, 60)), true
	}
	return "asked for", false
}
