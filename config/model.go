package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/providers"
)

// Model is a language model of a configuration file, its variables replaced. Inputs in its Key
// and Headers stay ${input:ID} until [Model.Resolve] replaces them.
type Model struct {
	Name     string            // its name in the file
	Provider string            // one of [Providers]
	Model    string            // the provider's name for it
	BaseURL  string            // http or https; empty: that of the provider
	Key      string            // empty: not said
	Headers  map[string]string // sent with each request to BaseURL

	Window    int   // tokens of a request and its answer together; 0: not said
	MaxTokens int   // of an answer; 0: not said
	Images    *bool // whether it accepts pictures; nil: not set
	Audio     *bool // sounds
	Files     *bool // PDF files
	Price     Price

	Effort string // how much it thinks, one of the words of providers; empty: not said

	// Parameters are further members of each request, by the names of the provider's API, such as
	// "temperature" and "top_p". Nil: none.
	Parameters map[string]json.RawMessage

	// Rank and Hints are for the model preferences in sampling requests: how good the model is,
	// and names that servers may use for it.
	Rank  Rank
	Hints []string

	Source string // "path:line" of its name

	filled
	missing Problems // variables that are not set
}

// Price is the price of a million tokens, in any currency. The zero value means that it is not
// known.
type Price struct {
	Input, Output  float64
	Cached, Stored float64 // read from and written to a cache; 0: as Input
}

// Rank rates a model from 0 to 1, the best: cheapest, fastest, most able. 0 means not set.
type Rank struct {
	Cost, Speed, Intelligence float64
}

// Providers are the names of the providers of models. "text" is for models without tool calls, which are
// then written as text.
var Providers = providers.Names()

// modelMembers are the members of a model that this package reads.
var modelMembers = []string{"provider", "name", "baseUrl", "key", "headers", "window", "maxTokens", "effort", "price", "images", "audio", "files", "rank", "hints"}

// elsewhereInModels maps members that a person may write instead to the right ones.
var elsewhereInModels = map[string]string{
	"model": "name", "url": "baseUrl", "endpoint": "baseUrl", "apiBase": "baseUrl", "apiKey": "key", "api_key": "key", "token": "key",
	"contextWindow": "window", "contextLength": "window", "max_tokens": "maxTokens", "maxOutputTokens": "maxTokens", "type": "provider", "vision": "images",
	"reasoningEffort": "effort", "reasoning_effort": "effort", "thinking": "effort", "extraBody": "parameters", "extra_body": "parameters",
}

// String returns only the name of the model, because its fields hold secrets.
func (m Model) String() string { return "model " + quote(m.Name) }

// GoString returns the same as String.
func (m Model) GoString() string { return m.String() }

// Values is [Server.Values] for a model.
func (m Model) Values() []Value { return slices.Clone(m.values) }

// Inputs returns the inputs that the model needs: [Model.Resolve] inserts their values.
func (m Model) Inputs() []Input { return slices.Clone(m.inputs) }

// Missing returns the unset environment variables that the model needs. They are not faults of the
// file, because a model must not prevent the use of the servers.
func (m Model) Missing() Problems { return slices.Clone(m.missing) }

// Secrets is [Server.Secrets] for a model, with the key.
func (m Model) Secrets(named func(variable string) bool) []string {
	out := m.secrets(named)
	if m.Key != "" && !m.open("key") {
		out = append(out, m.Key)
	}
	return out
}

// Resolve returns the model with the values of its inputs inserted, as [Server.Resolve] does.
// Missing variables are an error of the type [Problems].
func (m Model) Resolve(value func(Input) (string, error)) (Model, error) {
	if len(m.missing) > 0 {
		return m, m.missing
	}
	if len(m.inputs) == 0 {
		return m, nil
	}
	was := m
	m.Headers = maps.Clone(m.Headers)
	var err error
	if m.filled, err = m.filled.resolve("the model "+quote(m.Name), m.Source, value, m.set); err != nil {
		return was, err
	}
	return m, nil
}

// set puts a value into its field.
func (m *Model) set(v Value) error {
	text := v.Text()
	switch v.Member {
	case "key":
		if m.Key = text; strings.TrimSpace(text) == "" {
			return errors.New(`"key" is empty after its inputs are replaced`)
		}
	case "headers":
		m.Headers[v.Name] = text
	}
	return nil
}

// models reads the models under "patchbay", and the choice of one.
func (l *loader) models(own *node) {
	names := []string{}
	if list := own.member("models"); list != nil && list.kind != '{' {
		l.fail(list.pos, `"models" is not an object`, `write {"NAME": {"provider": "openai", "name": "..."}}`)
	} else if list != nil {
		seen := make(map[string]int)
		for _, m := range list.members {
			switch {
			case l.twice(seen, m, "model"):
				continue
			case strings.TrimSpace(m.name) == "" || strings.Contains(m.name, "/"):
				l.fail(m.pos, "the name of the model "+quote(m.name)+" is empty or has a / in it", "rename it; PROVIDER/NAME is for models without an entry")
			case m.value.kind != '{':
				l.fail(m.value.pos, "the model "+quote(m.name)+" is not an object", `write {"provider": "openai", "name": "..."}`)
			default:
				l.model(m)
			}
			names = append(names, m.name)
		}
	}
	n := own.member("model")
	if n == nil {
		return
	}
	provider, _, whole := strings.Cut(n.text, "/")
	switch {
	case n.kind != '"' || n.text == "":
		l.fail(n.pos, `"model" is not the name of a model`, "put the name of one of \"models\" in quotes")
	case whole && !slices.Contains(Providers, provider):
		l.fail(n.pos, providers.Unknown(provider), "write PROVIDER/NAME")
	case !whole && !slices.Contains(names, n.text):
		fix := `name one of "models", or "PROVIDER/NAME"`
		if near := misspelt(n.text, names); near != "" {
			fix = "did you mean " + quote(near) + "?"
		}
		l.fail(n.pos, "there is no model "+quote(n.text), fix)
	}
	l.file.Model = n.text
}

// model reads one model.
func (l *loader) model(m member) {
	l.aboutModel = m.name
	defer func() { l.aboutModel = "" }()
	out := Model{Name: m.name, Source: l.source(m.pos)}
	faults := len(l.problems)
	seen, members := make(map[string]int), make(map[string]*node)
	sampling, spelled := samplingNames()
	for _, field := range m.value.members {
		if l.twice(seen, field, "member") {
			continue
		}
		members[field.name] = field.value
		if slices.Contains(spelled, field.name) {
			continue
		}
		if word := elsewhereInModels[field.name]; word != "" {
			l.warn(field.pos, "the member "+quote(field.name)+" of a model is not read", "did you mean "+quote(word)+"?")
		} else {
			l.unknown(field, " of a model", slices.Concat(modelMembers, sampling))
		}
	}
	v := values{loader: l, into: &out.filled, missing: func(n *node, wrong *unreplaced) bool {
		if wrong.unset {
			out.missing = append(out.missing, l.at(n.pos, wrong.text, wrong.fix))
		}
		return wrong.unset
	}}
	out.Provider = l.provider(m, members)
	switch n := members["name"]; {
	case n == nil:
		l.fail(m.pos, "the model "+quote(m.name)+" has no name", `add "name", as the provider calls it`)
	case n.kind != '"' || strings.TrimSpace(n.text) == "":
		l.fail(n.pos, `"name" of a model is not a string`, "put in quotes how the provider calls it")
	default:
		out.Model = n.text
	}
	out.BaseURL = v.text(members, "baseUrl")
	switch n := members["baseUrl"]; {
	case out.open("baseUrl"): // a key is for one address
		l.fail(n.pos, `"baseUrl" has an input in it`, "write the address, or use a variable")
	case out.BaseURL != "" && len(out.missing) == 0:
		if problem, fix := checkURL("baseUrl", out.BaseURL); problem != "" {
			l.fail(n.pos, problem, fix)
		}
	}
	if n := members["key"]; n != nil {
		out.Key = v.key(n, &out)
	}
	out.Headers = v.table(members, "headers")
	out.Window = l.count("window", members)
	out.MaxTokens = l.count("maxTokens", members)
	if n := members["effort"]; n != nil {
		switch err := providers.CheckEffort(n.text); {
		case n.kind != '"':
			l.fail(n.pos, `"effort" is not a string`, `write a word such as "high"`)
		case err != nil:
			l.fail(n.pos, `"effort" has an unknown value`, err.Error())
		default:
			out.Effort = strings.ToLower(n.text)
		}
	}
	for name, b := range map[string]**bool{"images": &out.Images, "audio": &out.Audio, "files": &out.Files} {
		if n := members[name]; n != nil {
			is := l.truth(name, n)
			*b = &is
		}
	}
	l.numbers("price", `{"input": 1.25, "output": 10}`, 1e9, members,
		map[string]*float64{"input": &out.Price.Input, "output": &out.Price.Output, "cached": &out.Price.Cached, "stored": &out.Price.Stored})
	l.numbers("rank", `{"cost": 0.9, "speed": 0.8, "intelligence": 0.3}, each from 0 to 1`, 1, members,
		map[string]*float64{"cost": &out.Rank.Cost, "speed": &out.Rank.Speed, "intelligence": &out.Rank.Intelligence})
	l.sampling(members, &out)
	if n := members["hints"]; n != nil {
		out.Hints = l.names(member{name: "hints", value: n})
	}
	slices.SortStableFunc(out.missing, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	if len(l.problems) == faults {
		l.file.Models = append(l.file.Models, out)
	}
}

// key reads the key of a model. A key that is empty because of its variable counts as missing.
func (v values) key(n *node, m *Model) string {
	const fix = "write ${env:NAME} or ${input:ID}"
	if n.kind != '"' || strings.TrimSpace(n.text) == "" {
		v.fail(n.pos, `"key" is not a string`, fix)
		return ""
	}
	if !strings.Contains(n.text, "${") {
		v.warn(n.pos, "the key of "+quote(m.Name)+" is written in the file", fix)
	}
	text := v.expand(n, "key", "")
	if strings.TrimSpace(text) == "" {
		m.missing = append(m.missing, v.at(n.pos, `"key" is empty after its variables are replaced`, "set them, or "+fix))
	}
	return text
}

func (l *loader) provider(m member, members map[string]*node) string {
	n := members["provider"]
	switch {
	case n == nil:
		l.fail(m.pos, "the model "+quote(m.name)+" has no provider", `add "provider": write one of `+strings.Join(Providers, ", "))
	case n.kind != '"':
		l.fail(n.pos, `"provider" is not a string`, "write one of "+strings.Join(Providers, ", "))
	case !slices.Contains(Providers, n.text):
		l.fail(n.pos, `"provider" has an unknown value`, providers.Unknown(n.text))
	default:
		return n.text
	}
	return ""
}

// count reads a number of tokens.
func (l *loader) count(name string, members map[string]*node) int {
	n := members[name]
	if n == nil {
		return 0
	}
	count, err := strconv.Atoi(n.text)
	if n.kind != '0' || err != nil || count < 1 || count > 1e9 {
		l.fail(n.pos, quote(name)+" is not a number of tokens", "write a whole number without quotes, such as 128000")
		return 0
	}
	return count
}

// numbers reads an object of numbers from 0 to most.
func (l *loader) numbers(name, example string, most float64, members map[string]*node, into map[string]*float64) {
	n := members[name]
	if n == nil {
		return
	}
	if n.kind != '{' {
		l.fail(n.pos, quote(name)+" is not an object", "write "+example)
		return
	}
	seen := make(map[string]int)
	for _, m := range n.members {
		if l.twice(seen, m, "member") {
			continue
		}
		to := into[m.name]
		if to == nil {
			l.warn(m.pos, "the member "+quote(m.name)+" of "+quote(name)+" is not read", "it has "+strings.Join(slices.Sorted(maps.Keys(into)), ", "))
			continue
		}
		number, err := strconv.ParseFloat(m.value.text, 64)
		if m.value.kind != '0' || err != nil || number < 0 || number > most {
			l.fail(m.value.pos, fmt.Sprintf("%s of %q is out of range", quote(m.name), name), "write "+example)
			continue
		}
		*to = number
	}
}

// Address returns the base URL of the model, without a slash at its end. It is for people if
// variables that it needs are not set: it then has ${NAME} in it.
func (m *Model) Address() string {
	p := providers.Named(m.Provider)
	if m.BaseURL != "" || p == nil {
		return strings.TrimRight(m.BaseURL, "/")
	}
	base, _ := p.Home(os.Getenv)
	return base
}

// KeyVariable returns the environment variable for the provider's key, if the file has none;
// empty if the file has a base URL, which gets no key from the environment.
func (m *Model) KeyVariable() string {
	p := providers.Named(m.Provider)
	if m.BaseURL != "" && m.Source != "" || p == nil {
		return ""
	}
	return p.Key
}
