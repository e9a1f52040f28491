package config

import (
	"fmt"
	"slices"
	"strings"
)

// Input is an element of "inputs", as in VS Code: a value that is not in the file. A server refers
// to it as ${input:ID}, and a person is asked for it when that server starts.
type Input struct {
	ID          string
	Type        string // "promptString", "pickString", "command" or another word
	Description string
	Default     string
	Password    bool     // the answer must not be shown
	Options     []string // of pickString: the values to choose from
}

// EnvName returns the environment variable with the value of an input where no person can be
// asked: PATCHBAY_INPUT_ and the id in upper case, _ for all characters other than ASCII letters
// and digits.
func (in Input) EnvName() string {
	return InputEnvPrefix + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, in.ID)
}

// InputEnvPrefix is the prefix of the names from [Input.EnvName].
const InputEnvPrefix = "PATCHBAY_INPUT_"

// maxInputs bounds the inputs of a file, which are searched for each reference.
const maxInputs = 1000

// inputs reads the list of inputs of a file.
func (l *loader) inputs(n *node) {
	if n.kind != '[' {
		l.fail(n.pos, `"inputs" is not a list`, `write [{"type": "promptString", "id": "NAME", "description": "..."}]`)
		return
	}
	if len(n.items) > maxInputs {
		l.fail(n.items[maxInputs].pos, fmt.Sprintf("more than %d inputs", maxInputs), "is it the right file?")
		return
	}
	seen := make(map[string]int)
	for _, item := range n.items {
		if item.kind != '{' {
			l.fail(item.pos, "an input is not an object", `write {"type": "promptString", "id": "NAME", "description": "..."}`)
			continue
		}
		if in, id := l.input(item); id == nil {
			l.fail(item.pos, "an input without an id", `add "id": "NAME", which servers use as ${input:NAME}`)
		} else if !l.twice(seen, member{name: in.ID, pos: id.pos}, "input") {
			l.file.Inputs = append(l.file.Inputs, in)
		}
	}
}

// input reads one input. id is its place, or nil if it has none.
func (l *loader) input(n *node) (in Input, id *node) {
	seen := make(map[string]int)
	for _, m := range n.members {
		text := func() string {
			if m.value.kind != '"' {
				l.fail(m.value.pos, fmt.Sprintf("%q of an input is not a string", m.name), "put it in quotes")
			}
			return m.value.text
		}
		if l.twice(seen, m, "member") {
			continue
		}
		switch m.name {
		case "id":
			if in.ID = text(); in.ID != "" {
				id = m.value
			}
		case "type":
			if in.Type = text(); !slices.Contains([]string{"promptString", "pickString", "command"}, in.Type) {
				l.warn(m.value.pos, "an input of the unknown type "+quote(in.Type), `it is asked for as a "promptString" is`)
			}
		case "description":
			in.Description = text()
		case "default":
			in.Default = text()
		case "password":
			if m.value.kind != 't' && m.value.kind != 'f' {
				l.fail(m.value.pos, `"password" is not true or false`, "write true or false without quotes")
			}
			in.Password = m.value.kind != 'f' // hidden unless it is false
		case "options":
			for _, option := range m.value.items {
				if option.kind == '"' {
					in.Options = append(in.Options, option.text)
				} else if value := option.member("value"); value != nil && value.kind == '"' {
					in.Options = append(in.Options, value.text)
				} else {
					l.fail(option.pos, "an option of an input is not a string", "put it in quotes")
				}
			}
		default:
			l.unknown(m, " of an input", []string{"id", "type", "description", "default", "password", "options"})
		}
	}
	return in, id
}

// named returns the input with an id.
func (f *File) named(id string) (Input, bool) {
	i := slices.IndexFunc(f.Inputs, func(in Input) bool { return in.ID == id })
	if i < 0 {
		return Input{}, false
	}
	return f.Inputs[i], true
}
