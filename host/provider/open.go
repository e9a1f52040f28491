package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Options configure access to a model. The zero value takes everything from the environment.
type Options struct {
	// BaseURL is the URL of the API, such as "http://localhost:11434/v1". Empty: OPENAI_BASE_URL
	// or ANTHROPIC_BASE_URL, else the provider's own.
	BaseURL string

	// Key is the key of the API. Empty: OPENAI_API_KEY or ANTHROPIC_API_KEY, except if BaseURL is
	// set and not the provider's own: such a server gets no key from the environment, and may
	// need none.
	Key string

	// API is "chat", "responses", "messages" or "text" and overrides the API in the model's name.
	// Empty: the API that the name says.
	API string

	Header     http.Header  // sent with each request; overrides other headers
	HTTPClient *http.Client // nil: http.DefaultClient

	// Info may change the description of the model, such as its window and its price. It gets what
	// this package knows by the model's name, which is nothing for most models and never includes
	// prices. If nil, the description is that.
	Info func(*model.Info)

	// Parameters are further members of each request, by their names in the API: "temperature",
	// "top_p", "seed", "reasoning_effort" and others. A member that a request has of its own, such
	// as a temperature from [model.Request], takes precedence.
	Parameters map[string]json.RawMessage

	MaxTokens int           // of an answer, where the request does not say; 0: as many as the model has
	Timeout   time.Duration // of a request and its answer; 0: none

	Env func(string) string // looks a variable up; nil: os.Getenv
}

// Open opens a model by its name: "openai/NAME" (Chat Completions), "openai-responses/NAME"
// (Responses), "anthropic/NAME" (Messages), or "text/NAME" (Chat Completions, for models without
// tool calls). It does not connect. The error names the missing part.
func Open(name string, o Options) (model.Model, error) {
	provider, id, _ := strings.Cut(name, "/")
	var api, variables, official string
	switch provider {
	case "openai":
		api = "chat"
	case "openai-responses":
		api = "responses"
	case "text":
		api = "text"
	case "anthropic":
		api = "messages"
	default:
		return nil, fmt.Errorf("model %q: unknown provider %q: names begin with openai/, openai-responses/, anthropic/ or text/; servers that speak the API of OpenAI are openai/ with a base URL", name, provider)
	}
	if id == "" {
		return nil, fmt.Errorf("model %q: the name of the model is missing: write %s/NAME", name, provider)
	}
	if o.API != "" {
		api = o.API
	}
	switch api {
	case "chat", "responses", "text":
		variables, official = "OPENAI", "https://api.openai.com/v1"
	case "messages":
		variables, official = "ANTHROPIC", "https://api.anthropic.com"
	default:
		return nil, fmt.Errorf("model %q: unknown API %q: it is chat, responses, messages or text", name, api)
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	env := func(what string) string { return strings.TrimSpace(o.Env(variables + what)) }
	elsewhere := o.BaseURL != ""
	if o.BaseURL == "" {
		o.BaseURL = cmp.Or(env("_BASE_URL"), official)
	}
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("model %q: the base URL is not an http or https URL; it looks like %s", name, official)
	}
	if api == "messages" && !strings.HasSuffix(base.Path, "/v1") {
		base = base.JoinPath("v1") // base URLs of Anthropic leave it out
	}
	for _, parameter := range slices.Sorted(maps.Keys(o.Parameters)) {
		switch {
		case slices.Contains(ownMembers, parameter):
			return nil, fmt.Errorf("model %q: the parameter %q is part of every request and cannot be set", name, parameter)
		case !json.Valid(o.Parameters[parameter]):
			return nil, fmt.Errorf("model %q: the value of the parameter %q is not JSON", name, parameter)
		}
	}
	own, _ := url.Parse(official)
	c := &client{
		id:        id,
		base:      base,
		official:  base.Host == own.Host,
		provider:  api,
		header:    o.Header,
		maxTokens: o.MaxTokens,
		more:      maps.Clone(o.Parameters),
		timeout:   o.Timeout,
		info:      known(id),
	}
	if !c.official {
		c.provider += "@" + base.Host
	}
	if c.key = o.Key; c.key == "" && (c.official || !elsewhere) {
		c.key = env("_API_KEY")
	}
	if c.official && c.key == "" {
		return nil, fmt.Errorf("model %q: no key: set %s_API_KEY, or a base URL if it is served elsewhere", name, variables)
	}
	switch {
	case api == "messages":
		c.own = http.Header{"Anthropic-Version": {"2023-06-01"}}
		if c.key != "" {
			c.own.Set("X-Api-Key", c.key)
		}
	case c.key != "":
		c.own = http.Header{"Authorization": {"Bearer " + c.key}}
	}
	httpClient := http.DefaultClient
	if o.HTTPClient != nil {
		httpClient = o.HTTPClient
	}
	stay := *httpClient
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &stay

	c.info.Name = name
	if variables == "OPENAI" && c.official {
		c.info.Tools = 128
	}
	if api == "responses" || api == "messages" {
		c.info.Audio = false
	}
	if o.Info != nil {
		o.Info(&c.info)
		c.info.Name = name
	}
	var m model.Model
	switch api {
	case "messages":
		return &messages{c}, nil
	case "text":
		return model.Text(&chat{c}), nil
	case "responses":
		m = &response{c}
	default:
		m = &chat{c}
	}
	if !c.official {
		m = model.Thoughts(m) // other servers have many models with such thoughts
	}
	return m, nil
}

// ownMembers are the members of requests that only this package sets.
var ownMembers = []string{"model", "messages", "input", "system", "instructions", "tools", "tool_choice", "stream", "stream_options", "store", "include"}

// client is the common part of the three APIs.
type client struct {
	id        string // of the model, as the provider knows it
	base      *url.URL
	official  bool   // it is the provider's own server
	provider  string // provider of its [model.Opaque] parts
	key       string
	own       http.Header // the key and what else the API wants in each request
	header    http.Header // of the caller, over those
	http      *http.Client
	maxTokens int
	more      map[string]json.RawMessage // further members of a request
	timeout   time.Duration
	info      model.Info
}

func (c *client) Info() model.Info { return c.info }

// reasons reports whether the name is that of an OpenAI model that may reason. Such models refuse
// a temperature, and in Chat Completions stop texts.
func (c *client) reasons() bool {
	is := func(families ...string) bool {
		return slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(strings.TrimPrefix(c.id, "ft:"), f) })
	}
	return !is("gpt-3", "gpt-4", "chatgpt-4", "gpt-5-chat") && (c.official || is("gpt-5", "o1", "o3", "o4"))
}

// bound adds the timeout to a context.
func (c *client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, c.timeout, errTimeout)
}

var errTimeout = errors.New("the answer took too long")

// tokens returns the maximum number of tokens of an answer; 0: not set.
func (c *client) tokens(req *model.Request) int64 {
	if req.MaxTokens > 0 {
		return int64(req.MaxTokens)
	}
	return int64(c.maxTokens)
}

// families describes models by the beginning of their names, longest first. It becomes outdated;
// other models are unknown.
var families = []struct {
	prefix string
	info   model.Info
}{
	{"gpt-3.5", model.Info{Window: 16_385}},
	{"gpt-4.1", model.Info{Window: 1_047_576, Images: true, Files: true}},
	{"gpt-4o-audio", model.Info{Window: 128_000, Audio: true}},
	{"gpt-4o", model.Info{Window: 128_000, Images: true, Files: true}},
	{"gpt-4-turbo", model.Info{Window: 128_000, Images: true}},
	{"gpt-5", model.Info{Window: 400_000, Images: true, Files: true}},
	{"o1", model.Info{Window: 200_000, Images: true, Files: true}},
	{"o3-mini", model.Info{Window: 200_000}},
	{"o3", model.Info{Window: 200_000, Images: true, Files: true}},
	{"o4-mini", model.Info{Window: 200_000, Images: true, Files: true}},
	{"claude-", model.Info{Window: 200_000, Images: true, Files: true}},
}

func known(id string) model.Info {
	for _, f := range families {
		if strings.HasPrefix(id, f.prefix) {
			return f.info
		}
	}
	return model.Info{}
}
