package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Model is a language model of a configuration file, its variables replaced. Inputs stand in its
// Key and Headers as they are written, ${input:ID}, until [Model.Resolve] replaces them.
type Model struct {
	Name     string            // as the file calls it
	Provider string            // one of [Providers]
	Model    string            // as the provider calls it
	BaseURL  string            // http or https; empty: that of the provider
	Key      string            // empty: not said
	Headers  map[string]string // sent with each request to BaseURL

	Window    int   // tokens of a request and its answer together; 0: not said
	MaxTokens int   // of an answer; 0: not said
	Images    *bool // whether it takes pictures; nil: not said
	Audio     *bool // sounds
	Files     *bool // PDF files
	Price     Price

	// Rank and Hints are for the preferences that a server has when it asks for a completion: how
	// well the model does, and names by which servers may mean it.
	Rank  Rank
	Hints []string

	Source string // "path:line" of its name

	filled
	missing Problems // variables that are not set
}

// Price is what a million tokens cost, in any currency. The zero value says that it is not known.
type Price struct {
	Input, Output  float64
	Cached, Stored float64 // read from and written to a cache; 0: as Input
}

// Rank says how well a model does, from 0 to 1, which is best: the cheapest, the fastest, the most
// able. 0 is not said.
type Rank struct {
	Cost, Speed, Intelligence float64
}

// Providers are the APIs by which models are asked. "text" is for models without tools: it writes
// them into the text.
var Providers = []string{"openai", "openai-responses", "anthropic", "text"}

// modelMembers are the members of a model that this package reads.
var modelMembers = []string{"provider", "name", "baseUrl", "key", "headers", "window", "maxTokens", "price", "images", "audio", "files", "rank", "hints"}

// elsewhereInModels are words that a person may write instead.
var elsewhereInModels = map[string]string{
	"model": "name", "url": "baseUrl", "endpoint": "baseUrl", "apiBase": "baseUrl", "apiKey": "key", "api_key": "key", "token": "key",
	"contextWindow": "window", "contextLength": "window", "max_tokens": "maxTokens", "maxOutputTokens": "maxTokens", "type": "provider", "vision": "images",
}

// String names the model and nothing else of it: its fields hold secrets.
func (m Model) String() string { return "model " + quote(m.Name) }

// GoString returns what String does.
func (m Model) GoString() string { return m.String() }

// Values returns what [Server.Values] does, of a model.
func (m Model) Values() []Value { return slices.Clone(m.values) }

// Inputs returns the inputs that the model needs: [Model.Resolve] puts their values in place.
func (m Model) Inputs() []Input { return slices.Clone(m.inputs) }

// Missing returns which variables of the environment the model needs that are not set. A file is
// not at fault for them: the model of somebody else must not keep a person from their servers.
func (m Model) Missing() Problems { return slices.Clone(m.missing) }

// Secrets returns what [Server.Secrets] does, and the key.
func (m Model) Secrets(named func(variable string) bool) []string {
	out := m.secrets(named)
	if m.Key != "" && !m.open("key") {
		out = append(out, m.Key)
	}
	return out
}

// Resolve returns the model with the values of its inputs in place, as [Server.Resolve] does. What
// is missing is an error, of the type [Problems].
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
			return errors.New(`"key" is empty with its inputs in place`)
		}
	case "headers":
		m.Headers[v.Name] = text
	}
	return nil
}

// models reads the models among the members of "patchbay", and which one is to be used.
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
		l.fail(n.pos, "there is no provider "+quote(provider), "there are "+strings.Join(Providers, ", "))
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
	for _, field := range m.value.members {
		if l.twice(seen, field, "member") {
			continue
		}
		members[field.name] = field.value
		if word := cmp.Or(elsewhereInModels[field.name], misspelt(field.name, modelMembers)); word != "" {
			l.warn(field.pos, "the member "+quote(field.name)+" of a model is not read", "did you mean "+quote(word)+"?")
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
		l.fail(n.pos, `"name" of a model is not a text`, "put in quotes how the provider calls it")
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
	if n := members["hints"]; n != nil {
		out.Hints = l.names(member{name: "hints", value: n})
	}
	slices.SortStableFunc(out.missing, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Column-b.Column) })
	if len(l.problems) == faults {
		l.file.Models = append(l.file.Models, out)
	}
}

// key reads the key of a model. One that is empty as its variable is belongs to what is missing.
func (v values) key(n *node, m *Model) string {
	const fix = "write ${env:NAME} or ${input:ID}"
	if n.kind != '"' || strings.TrimSpace(n.text) == "" {
		v.fail(n.pos, `"key" is not a text`, fix)
		return ""
	}
	if !strings.Contains(n.text, "${") {
		v.warn(n.pos, "the key of "+quote(m.Name)+" stands in the file", fix)
	}
	text := v.expand(n, "key", "")
	if strings.TrimSpace(text) == "" {
		m.missing = append(m.missing, v.at(n.pos, `"key" is empty with its variables in place`, "set them, or "+fix))
	}
	return text
}

func (l *loader) provider(m member, members map[string]*node) string {
	n := members["provider"]
	fix := "write one of " + strings.Join(Providers, ", ")
	switch {
	case n == nil:
		l.fail(m.pos, "the model "+quote(m.name)+" has no provider", `add "provider": `+fix)
	case n.kind != '"' || !slices.Contains(Providers, n.text):
		if near := misspelt(n.text, Providers); near != "" {
			fix = "did you mean " + quote(near) + "?"
		}
		l.fail(n.pos, `"provider" is none of its words`, fix)
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
			l.fail(m.value.pos, fmt.Sprintf("%s of %q is not a number it can be", quote(m.name), name), "write "+example)
			continue
		}
		*to = number
	}
}

// Address is the URL below which its provider is reached, without a slash at its end.
func (m *Model) Address() string {
	switch {
	case m.BaseURL != "":
		return strings.TrimRight(m.BaseURL, "/")
	case m.Provider == "anthropic":
		return "https://api.anthropic.com/v1"
	}
	return "https://api.openai.com/v1"
}

// KeyVariable is the variable of the environment that the provider's key is from, if the file has none;
// empty for an address of the file, which gets no key of the environment.
func (m *Model) KeyVariable() string {
	if m.BaseURL != "" && m.Source != "" {
		return ""
	}
	return VariablesOf(m.Provider) + "_API_KEY"
}

// VariablesOf is what the names of a provider's variables begin with.
func VariablesOf(provider string) string {
	if provider == "anthropic" {
		return "ANTHROPIC"
	}
	return "OPENAI"
}
