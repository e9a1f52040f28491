package models_test

import (
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
)

func TestSet(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "planted-key")
	var set models.Set
	set.Add(nil, nil)
	set.Add(&config.File{Models: []config.Model{{Name: "fast", Provider: "openai", Model: "one"}}}, config.Problems{{Model: "bad"}, {Server: "other"}})
	set.Add(&config.File{Models: []config.Model{{Name: "fast", Provider: "openai", Model: "two"}, {Name: "own", Provider: "anthropic", Model: "three", Key: "planted-key"}}, Model: "anthropic/four"}, nil)
	if !slices.Equal(set.Names(), []string{"fast", "own"}) || set.Named("fast").Model != "one" || set.Named("none") != nil || len(set.Faults) != 1 {
		t.Errorf("%+v", set)
	}
	rows := set.Rows(new(inputs.Answers))
	want := []models.Row{
		{Name: "fast", Key: "OPENAI_API_KEY is not set"},
		{Name: "own", Key: "in the file", HasKey: true},
		{Name: "anthropic/four", Key: "ANTHROPIC_API_KEY of the environment", HasKey: true, Default: true},
	}
	for i, w := range want {
		if i >= len(rows) || rows[i].Name != w.Name || rows[i].Key != w.Key || rows[i].HasKey != w.HasKey || rows[i].Default != w.Default {
			t.Fatalf("row %d of %+v, want %+v", i, rows, w)
		}
	}
}
