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
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// Options configure access to a model. The zero value takes everything from the environment.
type Options struct {
	// BaseURL is the URL of the API, such as "http://localhost:11434/v1". Empty: that of the variable
	// of the provider, such as OPENAI_BASE_URL, else the provider's own.
	BaseURL string

	// Key is the key of the API. Empty: that of the variable of the provider, such as OPENAI_API_KEY,
	// except if BaseURL is set and not the provider's own: such a server gets no key from the
	// environment, and may need none.
	Key string

	// API is "chat", "responses", "messages" or "text" and overrides the API of the provider.
	API string

	Header     http.Header  // sent with each request; overrides other headers
	HTTPClient *http.Client // nil: http.DefaultClient

	// Info may change the description of the model, such as its window and its price. It gets what
	// this package knows by the model's name, which is nothing for most models and never includes
	// prices. If nil, the description is that. Unless Info sets the window, the first request asks the
	// server for it, if it may tell: OpenAI's does not, and another server with its API is asked only
	// if the window is not known.
	Info func(*model.Info)

	// Parameters are further members of each request, by their names in the API: "temperature",
	// "top_p", "seed", "reasoning_effort" and others. A member that a request has of its own, such
	// as a temperature from [model.Request], takes precedence.
	Parameters map[string]json.RawMessage

	Effort    model.Effort  // how much the model thinks, where the request does not say; empty: its default
	MaxTokens int           // of an answer, where the request does not say; 0: as many as the model has
	Timeout   time.Duration // of a request and its answer; 0: none

	// Retry says how requests are retried after temporary failures, and how long a silence may be, as in
	// model.Retry. Nil: its defaults. With Attempts 1 nothing is retried.
	Retry *model.RetryOptions

	Env func(string) string // looks a variable up; nil: os.Getenv
}

// Open opens a model by its name, PROVIDER/NAME, such as "openai/gpt-5" or "ollama/qwen3". Providers
// are openai (Chat Completions), openai-responses (Responses), anthropic (Messages), text (Chat
// Completions, for models without tool calls), and those of Chat Completions with a name of their own:
// gemini, azure, bedrock, vertex, openrouter, ollama, lmstudio, llamacpp, vllm, deepseek, moonshot,
// mistral, xai and groq. It does not connect. The error names the missing part.
func Open(name string, o Options) (model.Model, error) {
	c, api, err := open(name, o)
	if err != nil {
		return nil, err
	}
	if c.id == "" {
		return nil, fmt.Errorf("model %q: the name of the model is missing: write %s/NAME", name, strings.TrimSuffix(name, "/"))
	}
	var m model.Model
	switch api {
	case "messages":
		m = &messages{c}
	case "text":
		m = model.Text(&chat{c})
	case "responses":
		m = &response{c}
	default:
		m = &chat{c}
	}
	if !c.official && api != "messages" && api != "text" {
		m = model.Thoughts(m) // other servers have many models with such thoughts
	}
	return model.Retry(m, o.Retry), nil
}

// open returns a client for a model, whose name may be missing, and its API.
func open(name string, o Options) (c *client, api string, err error) {
	named, id, slash := strings.Cut(name, "/")
	p := providers.Named(named)
	switch {
	case p == nil && !slash:
		return nil, "", fmt.Errorf("model %q has no provider: write PROVIDER/NAME, such as openai/%s; providers are %s", name, name, strings.Join(providers.Names(), ", "))
	case p == nil:
		return nil, "", fmt.Errorf("model %q: %s", name, providers.Unknown(named))
	}
	api = cmp.Or(o.API, p.API)
	switch messages := api == "messages"; {
	case !slices.Contains([]string{"chat", "responses", "messages", "text"}, api):
		return nil, "", fmt.Errorf("model %q: unknown API %q: it is chat, responses, messages or text", name, api)
	case messages && p.API != "messages":
		p = providers.Named("anthropic")
	case !messages && p.API == "messages":
		p = providers.Named("openai")
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	elsewhere := o.BaseURL != ""
	var missing string
	if o.BaseURL == "" {
		if o.BaseURL, missing = p.Address(o.Env); missing != "" {
			return nil, "", fmt.Errorf("model %q: no address: set %s, or the whole base URL as %s", name, missing, p.Other)
		}
	}
	own, _ := p.Home(o.Env)
	base, err := url.Parse(strings.TrimRight(o.BaseURL, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, "", fmt.Errorf("model %q: the base URL is not an http or https URL; it looks like %s", name, own)
	}
	if api == "messages" && !strings.HasSuffix(base.Path, "/v1") {
		base = base.JoinPath("v1") // base URLs of Anthropic leave it out
	}
	for _, parameter := range slices.Sorted(maps.Keys(o.Parameters)) {
		switch {
		case slices.Contains(providers.OwnMembers, parameter):
			return nil, "", fmt.Errorf("model %q: the parameter %q is part of every request and cannot be set", name, parameter)
		case !json.Valid(o.Parameters[parameter]):
			return nil, "", fmt.Errorf("model %q: the value of the parameter %q is not JSON", name, parameter)
		}
	}
	there, err := url.Parse(own)
	home := err == nil && base.Host == there.Host
	plain := p.Key == "OPENAI_API_KEY" || p.Key == "ANTHROPIC_API_KEY" // many other servers have their APIs
	c = &client{
		id:        id,
		base:      base,
		official:  home && plain,
		provider:  api,
		line:      p,
		header:    o.Header,
		maxTokens: o.MaxTokens,
		thinks:    o.Effort,
		more:      maps.Clone(o.Parameters),
		timeout:   o.Timeout,
		without:   refusals{},
	}
	if !c.official {
		c.provider += "@" + base.Host
	}
	if c.key = o.Key; c.key == "" && (home || !elsewhere) {
		c.key = strings.TrimSpace(o.Env(p.Key))
	}
	if home && c.key == "" && !p.Open {
		return nil, "", fmt.Errorf("model %q: no key: set %s, or a base URL if it is served elsewhere", name, p.Key)
	}
	c.own = c.keyHeader(p.KeyHeader)
	if api == "messages" {
		c.own.Set("Anthropic-Version", "2023-06-01")
	}
	httpClient := http.DefaultClient
	if o.HTTPClient != nil {
		httpClient = o.HTTPClient
	}
	stay := *httpClient
	stay.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &stay

	c.info = known(id)
	if !plain {
		c.info = known(id[strings.LastIndexByte(id, '/')+1:])
	}
	c.info.Name = name
	if c.official && api != "messages" {
		c.info.Tools = 128
	}
	if api == "responses" || api == "messages" {
		c.info.Audio = false
	}
	guess := c.info.Window
	if o.Info != nil {
		o.Info(&c.info)
		c.info.Name = name
	}
	switch {
	case c.info.Window != guess: // it was set
	case !plain || home:
		c.window.places = p.Windows
	case guess == 0:
		c.window.places = everywhere
	}
	if !plain {
		for _, refused := range p.Refuses {
			c.without[refused] = true
		}
	}
	return c, api, nil
}

// keyHeader returns the header with the key; none if there is no key.
func (c *client) keyHeader(name string) http.Header {
	h := http.Header{}
	switch {
	case c.key == "":
	case name == "":
		h.Set("Authorization", "Bearer "+c.key)
	default:
		h.Set(name, c.key)
	}
	return h
}

// client is the common part of the three APIs.
type client struct {
	id        string // of the model, as the provider knows it
	base      *url.URL
	official  bool   // it is OpenAI's or Anthropic's own server
	provider  string // provider of its [model.Opaque] parts
	line      *providers.Provider
	key       string
	own       http.Header // the key and what else the API wants in each request
	header    http.Header // of the caller, over those
	http      *http.Client
	maxTokens int
	thinks    model.Effort
	more      members // further members of a request
	timeout   time.Duration
	info      model.Info
	window    window

	mu       sync.Mutex
	without  refusals // guarded by mu; replaced, never changed
	leftOut  []string // parameters that the person knows of, as in model.Info; guarded by mu; replaced, never changed
	marks    bool     // the server has marked the end of an answer; guarded by mu
	unmarked bool     // an answer had no such mark; guarded by mu
}

func (c *client) Info() model.Info {
	info := c.info
	if n := c.window.known.Load(); n > 0 {
		info.Window = int(n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	info.LeftOut = c.leftOut
	return info
}

// reasons reports whether the name is that of an OpenAI model that may reason, wherever it is served:
// openai/gpt-5 is such a name, too. Such models refuse a temperature, and in Chat Completions stop
// texts and max_tokens.
func (c *client) reasons() bool {
	name := strings.TrimPrefix(c.id[strings.LastIndexByte(c.id, '/')+1:], "ft:")
	is := func(families ...string) bool {
		return slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(name, f) })
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
	{"gemini-", model.Info{Images: true, Audio: true}},
}

func known(id string) model.Info {
	for _, f := range families {
		if strings.HasPrefix(id, f.prefix) {
			return f.info
		}
	}
	return model.Info{}
}
