package scripted

import (
	"fmt"
	"net/http"
	"strings"
)

// dialect is how the API of one provider differs from the others. The zero value of a field is what OpenAI
// does.
type dialect struct {
	name       string
	host, path string // where the provider's documentation has the API
	answers    string // path below that; empty: chat/completions
	key        string // header of the key; empty: Authorization
	open       bool   // it needs no key
	list       string // of its models; empty: there is none
	told       map[string]string

	comments    string // before the answer
	thought     string // of its models; empty: none
	thoughtIn   string // member; or "tags": in the content; or "parts": in parts of the content
	wholeCalls  bool   // a call is not sent in pieces
	index       string // of calls; "": counted, "zero", "none"
	callFinish  string // reason of an answer with calls
	cut, breaks string // reasons
	usage       string // "": in a last chunk, if asked for; "finish": beside the reason; "choice": in the choice
	cached      string // member for cached tokens, if it is not in the details
	idForm      string // of ids of calls

	onlyMembers string // it refuses all others in a request
	efforts     string // it refuses all others as reasoning_effort; empty: it refuses none
	noMaxTokens bool   // it refuses max_tokens
	thoughtBack bool   // it refuses messages with calls and no thought
	signed      bool   // it refuses calls without their signature
	strictOrder bool   // it refuses a message of the user after results
	nineLetters bool   // it refuses ids of calls that are not 9 letters and digits

	noKey            *refusal
	tooLong, limited refusal
	refuseForm       string // an error with %q for the message
}

// lets reports whether a request has the key. All providers take it as a token, which the libraries of
// OpenAI and, in JavaScript, of Anthropic send, also those with a header of their own.
func (d *dialect) lets(h http.Header) bool {
	return h.Get("Authorization") == "Bearer "+Key || d.key != "" && h.Get(d.key) == Key
}

func (d *dialect) id(message, n int) string {
	form := d.idForm
	if form == "" {
		form = "call_%010d%014d"
	}
	if strings.Count(form, "%") == 1 {
		return fmt.Sprintf(form, message*10+n)
	}
	return fmt.Sprintf(form, message, n)
}

func (d *dialect) refuse(message string) refusal {
	form := d.refuseForm
	if form == "" {
		form = `{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":null}}`
	}
	return refusal{400, fmt.Sprintf(form, message)}
}

func listed(members string) string {
	return `{"object":"list","data":[{"id":"other","object":"model"},{"id":"` + Model + `","object":"model"` + members + `}]}`
}

func openAIError(status int, message, kind, code string) refusal {
	return refusal{status, fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, message, kind, code)}
}

const (
	longOfOpenAI = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (5000 in the messages, 0 in the completion). Please reduce the length of the messages or completion."
	googleError  = `[{"error":{"code":%d,"message":%q,"status":%q}}]`
	xaiError     = `{"code":"Client specified an invalid argument","error":%q}`
	mistralError = `{"object":"error","message":%q,"type":"invalid_request_error","param":null,"code":null}`
)

func google(status int, message, word string) refusal {
	return refusal{status, fmt.Sprintf(googleError, status, message, word)}
}

var wrongKey = openAIError(401, "Incorrect API key provided: k***t.", "invalid_request_error", `"invalid_api_key"`)

var dialects = map[string]*dialect{
	"openai": {
		host: "api.openai.com", path: "/v1", list: listed(`,"created":1,"owned_by":"openai"`),
		noMaxTokens: true, efforts: "none minimal low medium high xhigh",
		noKey:   &wrongKey,
		tooLong: openAIError(400, longOfOpenAI, "invalid_request_error", `"context_length_exceeded"`),
		limited: openAIError(429, "Rate limit reached for the-model on tokens per min (TPM): Limit 30000, Used 30000, Requested 10.", "tokens", `"rate_limit_exceeded"`),
	},
	"anthropic": {
		host: "api.anthropic.com", path: "/v1", answers: "messages", key: "X-Api-Key",
		list:    `{"data":[{"type":"model","id":"` + Model + `","display_name":"M","max_input_tokens":4096}],"has_more":false,"first_id":"` + Model + `","last_id":"` + Model + `"}`,
		told:    map[string]string{"GET /v1/models/" + Model: `{"type":"model","id":"` + Model + `","display_name":"M","max_input_tokens":4096,"max_tokens":1024}`},
		thought: "Hm.", idForm: "toolu_%010d%010d",
		noKey:      &refusal{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`},
		tooLong:    refusal{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 5000 tokens > 4096 maximum"}}`},
		limited:    refusal{429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit."}}`},
		refuseForm: `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`,
	},
	"gemini": {
		host: "generativelanguage.googleapis.com", path: "/v1beta/openai",
		list: strings.ReplaceAll(listed(`,"owned_by":"google"`), `"id":"`, `"id":"models/`),
		told: map[string]string{"GET /v1beta/models/" + Model: `{"name":"models/` + Model + `","inputTokenLimit":4096,"outputTokenLimit":1024}`},
		// Calls come whole, each with the index 0, and the reason is stop.
		wholeCalls: true, index: "zero", callFinish: "stop", usage: "finish", signed: true, idForm: "function-call-%010d%010d",
		noKey:      ref(google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")),
		tooLong:    google(400, "The input token count (5000) exceeds the maximum number of tokens allowed (4096).", "INVALID_ARGUMENT"),
		limited:    google(429, "You exceeded your current quota, please check your plan and billing details. Please retry in 0.01s.", "RESOURCE_EXHAUSTED"),
		refuseForm: strings.NewReplacer("%d", "400", `%q}}]`, `"INVALID_ARGUMENT"}}]`).Replace(googleError),
	},
	"vertex": {
		host: "aiplatform.googleapis.com", path: "/v1/projects/the-project/locations/global/endpoints/openapi",
		wholeCalls: true, index: "zero", usage: "finish", signed: true, idForm: "function-call-%010d%010d",
		noKey:      ref(google(401, "Request had invalid authentication credentials. Expected OAuth 2 access token.", "UNAUTHENTICATED")),
		tooLong:    google(400, "The input token count (5000) exceeds the maximum number of tokens allowed (4096).", "INVALID_ARGUMENT"),
		limited:    google(429, "Resource exhausted. Please try again later.", "RESOURCE_EXHAUSTED"),
		refuseForm: strings.NewReplacer("%d", "400", `%q}}]`, `"INVALID_ARGUMENT"}}]`).Replace(googleError),
	},
	"azure": {
		host: "the-resource.openai.azure.com", path: "/openai/v1", key: "Api-Key",
		list:        `{"object":"list","data":[{"id":"gpt-5-2025-08-07","object":"model","status":"succeeded"}]}`, // models, not deployments
		comments:    `data: {"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}` + "\n\n",
		noMaxTokens: true,
		noKey:       &refusal{401, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription."}}`},
		tooLong:     openAIError(400, longOfOpenAI, "invalid_request_error", `"context_length_exceeded"`),
		limited:     refusal{429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded the call rate limit of your current pricing tier. Please retry after 1 second."}}`},
	},
	"bedrock": {
		host: "bedrock-runtime.eu-west-1.amazonaws.com", path: "/openai/v1",
		thought: "Hm.", thoughtIn: "tags", noMaxTokens: true, idForm: "chatcmpl-tool-%010d%010d",
		noKey:   &refusal{403, `{"Message":"Authentication failed: Please make sure your API Key is valid."}`},
		tooLong: openAIError(400, "Input is too long for requested model.", "invalid_request_error", `"validation_error"`),
		limited: refusal{429, `{"message":"Too many requests, please wait before trying again."}`},
	},
	"openrouter": {
		host: "openrouter.ai", path: "/api/v1", list: `{"data":[{"id":"` + Model + `","name":"M","context_length":4096,"pricing":{"prompt":"0.1","completion":"0.2"},"top_provider":{"context_length":4096}}]}`,
		comments: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n",
		thought:  "Hm.", thoughtIn: "reasoning_details", breaks: "error",
		noKey:      &refusal{401, `{"error":{"message":"No auth credentials found","code":401}}`},
		tooLong:    refusal{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.\"}}","provider_name":"P"}}}`},
		limited:    refusal{429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"the-model is temporarily rate-limited upstream.","provider_name":"P"}}}`},
		refuseForm: `{"error":{"message":%q,"code":400}}`,
	},
	"ollama": {
		host: "localhost:11434", path: "/v1", open: true, list: listed(`,"owned_by":"library"`),
		told:    map[string]string{"POST /api/show": `{"model_info":{"m.context_length":131072}}`, "GET /api/ps": `{"models":[{"name":"` + Model + `","model":"` + Model + `","context_length":4096}]}`},
		thought: "Hm.", thoughtIn: "reasoning", wholeCalls: true, idForm: "call_%04d%04d",
		tooLong: openAIError(400, "prompt too long; exceeded max context length by 904 tokens", "invalid_request_error", "null"),
		limited: openAIError(503, "server busy, please try again.  maximum pending requests exceeded", "api_error", "null"),
	},
	"lmstudio": {
		host: "localhost:1234", path: "/v1", open: true, list: listed(`,"owned_by":"organization_owner"`),
		told:    map[string]string{"GET /api/v0/models": `{"object":"list","data":[{"id":"` + Model + `","state":"loaded","max_context_length":32768,"loaded_context_length":4096}]}`},
		thought: "Hm.", thoughtIn: "reasoning_content", idForm: "%09d",
		tooLong:    refusal{400, `{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`},
		limited:    refusal{503, `{"error":"The model is busy."}`},
		refuseForm: `{"error":%q}`,
	},
	"llamacpp": {
		host: "localhost:8080", path: "/v1", open: true, list: listed(`,"owned_by":"llamacpp","meta":{"n_ctx_train":131072}`),
		told:    map[string]string{"GET /props": `{"default_generation_settings":{"n_ctx":4096},"total_slots":1}`},
		thought: "Hm.", thoughtIn: "reasoning_content", idForm: "aB%020d%010d",
		tooLong:    refusal{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`},
		limited:    refusal{503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`},
		refuseForm: `{"error":{"code":400,"message":%q,"type":"invalid_request_error"}}`,
	},
	"vllm": {
		host: "localhost:8000", path: "/v1", open: true, list: listed(`,"owned_by":"vllm","max_model_len":4096`),
		thought: "Hm.", thoughtIn: "reasoning", idForm: "chatcmpl-tool-%010d%022d",
		tooLong: openAIError(400, "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.", "BadRequestError", "400"),
		limited: openAIError(503, "The server is overloaded.", "ServiceUnavailableError", "503"),
	},
	"deepseek": {
		host: "api.deepseek.com", path: "", list: listed(`,"owned_by":"deepseek"`),
		comments: ": keep-alive\n\n", thought: "Hm.", thoughtIn: "reasoning_content", thoughtBack: true, breaks: "insufficient_system_resource",
		usage: "finish", cached: "prompt_cache_hit_tokens", idForm: "call_%02d_%020d",
		noKey:   ref(openAIError(401, "Authentication Fails (no such user)", "authentication_error", `"invalid_request_error"`)),
		tooLong: openAIError(400, longOfOpenAI, "invalid_request_error", `"invalid_request_error"`),
		limited: openAIError(429, "Rate Limit Reached", "rate_limit_error", "null"),
	},
	"moonshot": {
		host: "api.moonshot.ai", path: "/v1", list: listed(`,"owned_by":"moonshot","context_length":4096,"supports_image_in":true`),
		thought: "Hm.", thoughtIn: "reasoning_content", thoughtBack: true, usage: "choice", cached: "cached_tokens", idForm: "functions.add:%d",
		noKey:   ref(openAIError(401, "Invalid Authentication", "invalid_authentication_error", "null")),
		tooLong: openAIError(400, "Invalid request: Your request exceeded model token limit: 4096 (requested: 5000)", "invalid_request_error", "null"),
		limited: openAIError(429, "The engine is currently overloaded, please try again later", "engine_overloaded_error", "null"),
	},
	"mistral": {
		host: "api.mistral.ai", path: "/v1", list: listed(`,"owned_by":"mistralai","max_context_length":4096,"capabilities":{"completion_chat":true}`),
		thought: "Hm.", thoughtIn: "parts", wholeCalls: true, usage: "finish", cut: "model_length", breaks: "error", idForm: "aB%07d",
		onlyMembers: "model messages tools tool_choice stream max_tokens temperature top_p stop random_seed response_format presence_penalty frequency_penalty n parallel_tool_calls prediction safe_prompt reasoning_effort", efforts: "high none",
		strictOrder: true, nineLetters: true,
		noKey:      &refusal{401, `{"detail":"Unauthorized"}`},
		tooLong:    refusal{400, fmt.Sprintf(mistralError, "Prompt contains 5000 tokens and 0 draft tokens, too large for model with 4096 maximum context length")},
		limited:    refusal{429, `{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`},
		refuseForm: mistralError,
	},
	"xai": {
		host: "api.x.ai", path: "/v1", list: listed(`,"owned_by":"xai"`),
		thought: "Hm.", thoughtIn: "reasoning_content", wholeCalls: true, idForm: "call_%08d", efforts: "low medium high",
		noKey:      &refusal{400, fmt.Sprintf(xaiError, "Incorrect API key provided: k***t. You can obtain an API key from https://console.x.ai.")},
		tooLong:    refusal{400, fmt.Sprintf(xaiError, "This model's maximum prompt length is 4096 but the request contains 5000 tokens.")},
		limited:    refusal{429, `{"code":"Some resource has been exhausted","error":"Too many requests for team. Your team's rate limit is 8 requests per second."}`},
		refuseForm: xaiError,
	},
	"groq": {
		host: "api.groq.com", path: "/openai/v1", list: listed(`,"owned_by":"Groq","active":true,"context_window":4096,"max_completion_tokens":1024`),
		thought: "Hm.", thoughtIn: "reasoning", wholeCalls: true, usage: "x_groq", idForm: "call_%04d", efforts: "low medium high",
		noKey:   ref(openAIError(401, "Invalid API Key", "invalid_request_error", `"invalid_api_key"`)),
		tooLong: openAIError(400, "Please reduce the length of the messages or completion.", "invalid_request_error", `"context_length_exceeded"`),
		limited: openAIError(429, "Rate limit reached for model `the-model` in organization on tokens per minute (TPM): Limit 6000, Used 6000, Requested 10.", "tokens", `"rate_limit_exceeded"`),
	},
}

func ref(r refusal) *refusal { return &r }

func init() {
	for name, d := range dialects {
		d.name = name
		if d.answers == "" {
			d.answers = "chat/completions"
		}
	}
}
