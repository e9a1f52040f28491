// Package providers is the table of the providers of language models: where each one is, the variable
// with its key, and how its API differs from the one that it is compatible with. Each line names the
// page or issue that it rests on. Nothing is here that a server itself tells, such as its models, and
// no prices.
package providers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/spelling"
)

// Provider is one line of the table. The zero value of each quirk is what OpenAI does.
type Provider struct {
	Name  string
	API   string // "chat", "responses", "messages" or "text"
	Base  string // URL of the API; ${NAME} stands for a variable of the environment
	Other string // variable with a URL that is used in place of Base
	Key   string // variable with the key
	Open  bool   // a key is not required

	KeyHeader string            // header of the key; empty: Authorization, after "Bearer "
	Refuses   []string          // members and forms of requests that it refuses; see package provider
	Members   map[string]string // its names of members that set how a model samples, if not OpenAI's
	Effort    string            // member of requests with an object whose "effort" is how much to think; empty: reasoning_effort is that
	Disables  bool              // {"thinking": {"type": "disabled"}} turns thinking off, and no effort does
	Windows   []string          // where its server tells the window of a model; see package provider
	ListQuery string            // query for the list of its models
	ListNames string            // what names in that list begin with, unlike those of requests
	Unlisted  string            // names the models that can be asked for if its server does not list them

	Source string // the page or issue
}

// Forms of requests that a provider may refuse.
const (
	LongIDs          = "ids of calls other than 9 letters and digits"
	UserAfterResults = "messages of the user directly after results"
)

const openAI = "https://api.openai.com/v1"

var table = []Provider{
	{Name: "openai", API: "chat", Base: openAI, Other: "OPENAI_BASE_URL", Key: "OPENAI_API_KEY",
		Source: "https://platform.openai.com/docs/api-reference/chat"},
	{Name: "openai-responses", API: "responses", Base: openAI, Other: "OPENAI_BASE_URL", Key: "OPENAI_API_KEY",
		Source: "https://platform.openai.com/docs/api-reference/responses"},
	{Name: "text", API: "text", Base: openAI, Other: "OPENAI_BASE_URL", Key: "OPENAI_API_KEY",
		Source: "https://platform.openai.com/docs/api-reference/chat"},
	{Name: "anthropic", API: "messages", Base: "https://api.anthropic.com", Other: "ANTHROPIC_BASE_URL", Key: "ANTHROPIC_API_KEY", KeyHeader: "X-Api-Key",
		Windows: []string{"models/ID"}, ListQuery: "limit=1000",
		Source: "https://docs.anthropic.com/en/api/models-list"},
	{Name: "gemini", API: "chat", Base: "https://generativelanguage.googleapis.com/v1beta/openai", Other: "GEMINI_BASE_URL", Key: "GEMINI_API_KEY",
		Windows: []string{"../models/ID"}, ListNames: "models/",
		Source: "https://ai.google.dev/gemini-api/docs/openai"},
	{Name: "azure", API: "chat", Base: "${AZURE_OPENAI_ENDPOINT}/openai/v1", Other: "AZURE_OPENAI_BASE_URL", Key: "AZURE_OPENAI_API_KEY", KeyHeader: "Api-Key",
		Refuses: []string{"max_tokens"}, Unlisted: "deployments",
		Source: "https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle"},
	{Name: "bedrock", API: "chat", Base: "https://bedrock-runtime.${AWS_REGION}.amazonaws.com/openai/v1", Other: "AWS_BEDROCK_BASE_URL", Key: "AWS_BEARER_TOKEN_BEDROCK",
		Refuses: []string{"max_tokens"}, Unlisted: "models of the region",
		Source: "https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html"},
	{Name: "vertex", API: "chat", Base: "https://aiplatform.googleapis.com/v1/projects/${GOOGLE_CLOUD_PROJECT}/locations/global/endpoints/openapi",
		Other: "VERTEX_BASE_URL", Key: "GOOGLE_OAUTH_ACCESS_TOKEN", Unlisted: "models of the project",
		Source: "https://cloud.google.com/vertex-ai/generative-ai/docs/migrate/openai/overview"},
	{Name: "openrouter", API: "chat", Base: "https://openrouter.ai/api/v1", Other: "OPENROUTER_BASE_URL", Key: "OPENROUTER_API_KEY",
		Effort: "reasoning", Windows: []string{"models"},
		Source: "https://openrouter.ai/docs/use-cases/reasoning-tokens, https://openrouter.ai/docs/api/reference/streaming, https://openrouter.ai/docs/api/reference/errors-and-debugging, https://openrouter.ai/docs/models"},
	{Name: "ollama", API: "chat", Base: "http://localhost:11434/v1", Other: "OLLAMA_BASE_URL", Key: "OLLAMA_API_KEY", Open: true,
		Windows: []string{"/api/show", "/api/ps"},
		Source:  "https://docs.ollama.com/api/openai-compatibility"},
	{Name: "lmstudio", API: "chat", Base: "http://localhost:1234/v1", Other: "LMSTUDIO_BASE_URL", Key: "LMSTUDIO_API_KEY", Open: true,
		Windows: []string{"/api/v0/models"},
		Source:  "https://lmstudio.ai/docs/developer/openai-compat, https://lmstudio.ai/docs/developer/rest/endpoints"},
	{Name: "llamacpp", API: "chat", Base: "http://localhost:8080/v1", Other: "LLAMACPP_BASE_URL", Key: "LLAMA_API_KEY", Open: true,
		Windows: []string{"/props"},
		Source:  "https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"},
	{Name: "vllm", API: "chat", Base: "http://localhost:8000/v1", Other: "VLLM_BASE_URL", Key: "VLLM_API_KEY", Open: true,
		Windows: []string{"models"},
		Source:  "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"},
	{Name: "deepseek", API: "chat", Base: "https://api.deepseek.com", Other: "DEEPSEEK_BASE_URL", Key: "DEEPSEEK_API_KEY", Disables: true,
		Source: "https://api-docs.deepseek.com/api/create-chat-completion, https://api-docs.deepseek.com/guides/thinking_mode, https://api-docs.deepseek.com/quick_start/rate_limit"},
	{Name: "moonshot", API: "chat", Base: "https://api.moonshot.ai/v1", Other: "MOONSHOT_BASE_URL", Key: "MOONSHOT_API_KEY",
		Disables: true, Windows: []string{"models"},
		Source: "https://platform.kimi.ai/docs/guide/use-thinking-effort, https://platform.kimi.ai/docs/overview, https://github.com/earendil-works/pi/issues/2017, https://github.com/MoonshotAI/kimi-cli/issues/2011"},
	{Name: "mistral", API: "chat", Base: "https://api.mistral.ai/v1", Other: "MISTRAL_BASE_URL", Key: "MISTRAL_API_KEY",
		Refuses: []string{"stream_options", LongIDs, UserAfterResults}, Members: map[string]string{"seed": "random_seed"}, Windows: []string{"models"},
		Source: "https://docs.mistral.ai/api, https://github.com/anomalyco/opencode/issues/1680, https://github.com/BerriAI/litellm/issues/17761, https://github.com/editor-code-assistant/eca/issues/231"},
	{Name: "xai", API: "chat", Base: "https://api.x.ai/v1", Other: "XAI_BASE_URL", Key: "XAI_API_KEY", Refuses: []string{"max_tokens"},
		Source: "https://docs.x.ai/docs/api-reference, https://github.com/BerriAI/litellm/issues/12635, https://github.com/continuedev/continue/issues/10778"},
	{Name: "groq", API: "chat", Base: "https://api.groq.com/openai/v1", Other: "GROQ_BASE_URL", Key: "GROQ_API_KEY", Refuses: []string{"max_tokens"},
		Windows: []string{"models"},
		Source:  "https://console.groq.com/docs/openai, https://console.groq.com/docs/errors"},
}

// ended are providers that people may still ask for.
var ended = map[string]string{
	"github": "GitHub Models was retired on 30 July 2026 (https://github.com/orgs/community/discussions/203602)",
}

// Names returns the names of all providers.
func Names() []string {
	names := make([]string, len(table))
	for i := range table {
		names[i] = table[i].Name
	}
	return names
}

// Keys returns the variables with the keys of all providers, each once.
func Keys() []string {
	var keys []string
	for _, p := range table {
		if !slices.Contains(keys, p.Key) {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// Named returns the provider of a name, or nil.
func Named(name string) *Provider {
	for i := range table {
		if table[i].Name == name {
			return &table[i]
		}
	}
	return nil
}

// Unknown returns the reason why a name is not that of a provider, with a similar name if there is one.
func Unknown(name string) string {
	if why := ended[name]; why != "" {
		return why
	}
	plain := strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(name))
	near, distance := "", 3
	for _, p := range table {
		if d := spelling.Distance(plain, strings.ReplaceAll(p.Name, "-", "")); d < distance && d < len(p.Name)/2 {
			near, distance = p.Name, d
		}
	}
	if near != "" {
		return fmt.Sprintf("unknown provider %q: did you mean %q?", name, near)
	}
	return fmt.Sprintf("unknown provider %q: there are %s; another server with the API of OpenAI is openai with a base URL", name, strings.Join(Names(), ", "))
}

// Address returns the base URL without a slash at its end: that of the environment, if it has one,
// else the provider's own. If the latter needs a variable that is not set, missing names it.
func (p *Provider) Address(env func(string) string) (base, missing string) {
	if other := strings.TrimSpace(env(p.Other)); other != "" {
		return strings.TrimRight(other, "/"), ""
	}
	return p.Home(env)
}

// Home returns the provider's own base URL, as Address does.
func (p *Provider) Home(env func(string) string) (base, missing string) {
	rest := p.Base
	for {
		before, after, has := strings.Cut(rest, "${")
		base += before
		if !has {
			return base, missing
		}
		name, tail, _ := strings.Cut(after, "}")
		value := strings.TrimRight(strings.TrimSpace(env(name)), "/")
		if value == "" {
			missing = cmp.Or(missing, name)
			value = "${" + name + "}"
		}
		base, rest = base+value, tail
	}
}

// Needs reports whether the provider's own base URL has a variable in it.
func (p *Provider) Needs(variable string) bool { return strings.Contains(p.Base, "${"+variable+"}") }
