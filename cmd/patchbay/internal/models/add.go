package models

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// Add has the flags and arguments that describe a new model.
type Add struct {
	Name      string `arg:"" help:"Name of the model."`
	Provider  string `placeholder:"PROVIDER" help:"openai, anthropic, gemini, ollama or another."`
	Model     string `placeholder:"NAME" help:"Name at the provider; default: the same name."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"Address of the API; default: the provider's."`
	KeyInput  bool   `help:"Ask for the key, and store it in the vault."`
	KeyEnv    string `placeholder:"VARIABLE" help:"Read the key from this variable."`
	Window    int    `placeholder:"N" help:"Maximum tokens of a request and its answer."`
	MaxTokens int    `placeholder:"N" help:"Maximum tokens of an answer."`
	Use       bool   `help:"Make it the default."`
	User      bool   `help:"Change your own file, which applies everywhere."`
}

// Object returns the model as mcp.json has it, and the input for its key; nil: it has none.
func (c *Add) Object() (object, input []byte, err error) {
	switch {
	case strings.TrimSpace(c.Name) == "" || strings.Contains(c.Name, "/"):
		return nil, nil, advice.Usagef("a model needs a name without a /")
	case c.Provider == "":
		return nil, nil, advice.Usagef("missing --provider: %s", strings.Join(config.Providers, ", ")).Hint("patchbay help config model add")
	case !slices.Contains(config.Providers, c.Provider):
		return nil, nil, advice.Usagef("--provider: %s", providers.Unknown(c.Provider))
	case c.KeyInput && c.KeyEnv != "":
		return nil, nil, advice.Usagef("--key-input and --key-env exclude each other")
	case strings.ContainsAny(c.KeyEnv, "${}:"):
		return nil, nil, advice.Usagef("--key-env must be the name of a variable").Hint("--key-env OPENAI_API_KEY") // the value may be the key
	case c.Window < 0 || c.MaxTokens < 0:
		return nil, nil, advice.Usagef("--window and --max-tokens must not be negative")
	}
	if u, err := url.Parse(c.BaseURL); c.BaseURL != "" && !strings.Contains(c.BaseURL, "${") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, nil, advice.Usagef("--base-url is not an http or https URL").Hint("--base-url http://127.0.0.1:11434/v1")
	}
	o := struct {
		Provider  string `json:"provider"`
		Name      string `json:"name"`
		BaseURL   string `json:"baseUrl,omitempty"`
		Key       string `json:"key,omitempty"`
		Window    int    `json:"window,omitzero"`
		MaxTokens int    `json:"maxTokens,omitzero"`
	}{Provider: c.Provider, Name: cmp.Or(c.Model, c.Name), BaseURL: c.BaseURL, Window: c.Window, MaxTokens: c.MaxTokens}
	switch {
	case c.KeyEnv != "":
		o.Key = "${env:" + c.KeyEnv + "}"
	case c.KeyInput:
		o.Key = "${input:" + c.InputID() + "}"
		input, err = jsonx.Marshal(struct {
			Type        string `json:"type"`
			ID          string `json:"id"`
			Description string `json:"description"`
			Password    bool   `json:"password"`
		}{"promptString", c.InputID(), "API key of the model " + c.Name, true})
		if err != nil {
			return nil, nil, err
		}
	}
	object, err = jsonx.Marshal(o)
	return object, input, err
}

// InputID returns the id of the input for the key.
func (c *Add) InputID() string {
	return strings.Map(func(r rune) rune {
		if r == '}' || r == '{' || r < ' ' {
			return '_'
		}
		return r
	}, c.Name) + "-key"
}

// HasInput reports whether a file has an input of an id.
func HasInput(doc *config.Document, id string) bool {
	return slices.ContainsFunc(doc.Inputs(), func(raw json.RawMessage) bool {
		v, _ := jsonx.Lookup(raw, "id")
		return screen.Plain(v) == id
	})
}
