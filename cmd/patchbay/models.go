package main

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/hook"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/secrets"
)

// models reads the models. A model of mcp.json overrides one with the same name in the person's own
// file; so does its default.
func (a *app) models() (*models.Set, error) {
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	set := &models.Set{}
	set.Add(read.file, read.faults)
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
	set.Add(file, faults)
	return set, nil
}

// hooks returns the hooks that run around calls of models.
func (a *app) hooks() ([]config.Hook, error) {
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	list, err := hook.Find(hook.Source{File: read.file, Faults: read.faults, Agreed: a.agreed, Note: a.talk.Note})
	for _, h := range list {
		a.secrets.Learn(h.Secrets(secrets.Name)...)
	}
	return list, err
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
	for _, m := range set.List {
		out = append(out, complete.Candidate{Text: m.Name, About: m.Provider + "/" + m.Model})
	}
	return out
}

// ofFile returns the file of a model, if it is the mcp.json that was found or named.
func (a *app) ofFile(m config.Model) *config.File {
	if a.file != nil && a.file.file != nil && entry.File(models.AsServer(&m)) == a.file.path {
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
	s := models.AsServer(&m)
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

func (c *configModelsCmd) Run(a *app) error {
	set, err := a.models()
	if err != nil {
		return err
	}
	rows := set.Rows(a.answers)
	if a.JSON {
		if err := a.printJSON(rows); err != nil {
			return err
		}
	} else {
		a.printModels(rows)
	}
	if len(set.Faults) > 0 {
		return set.Faults
	}
	return nil
}

func (a *app) printModels(rows []models.Row) {
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
