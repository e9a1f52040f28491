package arguments

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/schema"
)

// Suggest calls add with each word that may continue the arguments of a tool, and a text about it:
// KEY= for the arguments that are not given yet or, if current is KEY=..., the known values of one.
func Suggest(inputSchema json.RawMessage, given func(key string) bool, current string, add func(word, about string)) {
	form, err := schema.FormOf(inputSchema)
	if err != nil {
		return
	}
	key, _, valued := strings.Cut(current, "=")
	for i := range form.Fields {
		f := &form.Fields[i]
		switch {
		case !valued && !given(f.Name):
			add(f.Name+"=", Kind(f)+" "+f.Description)
		case valued && f.Name == key:
			for _, o := range f.Options {
				add(key+"="+screen.Plain(o.Value), o.Title)
			}
			if f.Kind == schema.Boolean {
				add(key+"=true", "")
				add(key+"=false", "")
			}
		}
	}
}

// Given reports whether an argument is among the words of a command line. Lists may take several words, but that is rare.
func Given(words []string, name string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return strings.HasPrefix(w, name+"=") || strings.HasPrefix(w, name+":=")
	})
}
