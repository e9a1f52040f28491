package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/providers"
	"github.com/patchbay-dev/patchbay/internal/spelling"
)

// Parameters choose how a model answers. The zero value leaves everything to the model. A parameter
// that a provider refuses is left out, with a [Delta].Note that says so, and left out of later
// requests at once.
type Parameters struct {
	MaxTokens   int      `json:"maxTokens,omitempty"`   // of the answer; 0: the maximum of the model
	Temperature *float64 `json:"temperature,omitempty"` // nil: the default of the model; not sent to models without it
	TopP        *float64 `json:"topP,omitempty"`        // likewise
	Effort      Effort   `json:"effort,omitempty"`      // empty: the default of the model

	// Extra are further members of the request, by the names in the API of the model. A member that
	// the request has of its own takes precedence, and some, such as "messages", cannot be set.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// Effort is how much a model thinks before it answers. Each model has some of them.
type Effort string

// The known efforts. NoEffort turns thinking off where the model allows it.
const (
	NoEffort      Effort = "none"
	MinimalEffort Effort = "minimal"
	LowEffort     Effort = "low"
	MediumEffort  Effort = "medium"
	HighEffort    Effort = "high"
	XHighEffort   Effort = "xhigh"
	MaxEffort     Effort = "max"
)

// ParseEffort returns the effort of a word. The error of an unknown one names all.
func ParseEffort(word string) (Effort, error) {
	if err := providers.CheckEffort(word); err != nil {
		return "", err
	}
	return Effort(strings.ToLower(word)), nil
}

// names are the names that Set takes beside those of extra members, with the spelling of the APIs.
var names = map[string]string{
	"effort": "effort", "temperature": "temperature", "topP": "topP", "top_p": "topP",
	"maxTokens": "maxTokens", "max_tokens": "maxTokens", "max_completion_tokens": "maxTokens", "max_output_tokens": "maxTokens",
	"topK": "top_k", "presencePenalty": "presence_penalty", "frequencyPenalty": "frequency_penalty",
}

// Set sets a parameter by its name: "effort", "temperature", "topP", "maxTokens", or an extra member of
// the request, whose value is JSON or else a text. An empty value, or "default", removes the
// parameter. A name that looks like a misspelt one is an error, as is a value that does not fit: after
// an error the parameters are as before.
func (p *Parameters) Set(name, value string) error {
	known, is := names[name]
	if !is {
		known = name
		if near := misspelt(name); near != "" {
			return fmt.Errorf("unknown parameter %q: did you mean %q?", name, near)
		}
	}
	if value == "default" {
		value = ""
	}
	before := *p
	var err error
	switch known {
	case "effort":
		if p.Effort = ""; value != "" {
			p.Effort, err = ParseEffort(value)
		}
	case "temperature":
		p.Temperature, err = number(known, value, 2)
	case "topP":
		p.TopP, err = number(known, value, 1)
	case "maxTokens":
		if p.MaxTokens = 0; value != "" {
			if p.MaxTokens, err = strconv.Atoi(value); err != nil || p.MaxTokens < 1 || p.MaxTokens > 1e9 {
				p.MaxTokens, err = 0, errors.New("maxTokens is a whole number of tokens, such as 4096")
			}
		}
	default:
		err = p.extra(known, value)
	}
	if err != nil {
		*p = before
	}
	return err
}

// number reads a value from 0 to most; nil: there is none.
func number(name, value string, most float64) (*float64, error) {
	if value == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > most {
		return nil, fmt.Errorf("%s is a number from 0 to %g, not %q", name, most, value)
	}
	return &n, nil
}

func (p *Parameters) extra(name, value string) error {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}):
		return fmt.Errorf("%q is not the name of a parameter", name)
	case slices.Contains(providers.OwnMembers, name):
		return fmt.Errorf("%q is part of every request and cannot be set", name)
	}
	extra := maps.Clone(p.Extra) // which a copy of the parameters may share
	delete(extra, name)
	if value != "" {
		raw := json.RawMessage(value)
		if !json.Valid(raw) {
			raw, _ = json.Marshal(value) // does not fail
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		extra[name] = raw
	}
	p.Extra = extra
	return nil
}

// misspelt returns the known name that a long unknown one is likely to mean, or "".
func misspelt(name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	if len(name) < len("efort") {
		return ""
	}
	for _, known := range slices.Sorted(maps.Keys(names)) {
		if len(known) >= len("effort") && spelling.Distance(plain(name), plain(known)) <= 2 {
			return known
		}
	}
	return ""
}

// List returns the parameters that are set, as NAME=VALUE, in a stable order.
func (p *Parameters) List() []string {
	var list []string
	add := func(name string, value any) { list = append(list, fmt.Sprintf("%s=%v", name, value)) }
	if p.Effort != "" {
		add("effort", p.Effort)
	}
	if p.Temperature != nil {
		add("temperature", *p.Temperature)
	}
	if p.TopP != nil {
		add("topP", *p.TopP)
	}
	if p.MaxTokens > 0 {
		add("maxTokens", p.MaxTokens)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		add(name, string(p.Extra[name]))
	}
	return list
}
