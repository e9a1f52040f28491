package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

const (
	maxRefuse = 64 << 10 // bytes that are read of an error
	maxSaid   = 500      // characters of it that an error quotes
)

// failed returns the error of a request: from the context, from the provider, or from the network.
func (x *exchange) failed(err error) error {
	var e *model.Error
	switch cause := context.Cause(x.ctx); {
	case err == nil:
		return nil
	case cause == errTimeout:
		return x.error(model.Unavailable, 0, fmt.Sprintf("no complete answer within %v", x.timeout), err)
	case cause != nil:
		return cause
	case errors.As(err, &e):
		return e
	}
	return x.error(model.Unavailable, 0, x.clean(err.Error()), nil)
}

// brokeOff returns the error of an answer without an end.
func (x *exchange) brokeOff() error {
	return x.error(model.Unavailable, 0, "the answer broke off", io.ErrUnexpectedEOF)
}

func (x *exchange) malformed(format string, args ...any) error {
	return x.error(model.Malformed, 0, x.clean(fmt.Sprintf(format, args...)), nil)
}

func (x *exchange) error(kind model.Kind, status int, message string, err error) *model.Error {
	return &model.Error{Kind: kind, Model: x.info.Name, Status: status, Message: message, Err: err}
}

// refused returns the error of an HTTP response that is not a success.
func (x *exchange) refused(res *http.Response, body []byte) error {
	if res.StatusCode < 400 {
		return x.error(model.NoModel, res.StatusCode, fmt.Sprintf("the address redirects to %s: set that as the base URL", said(x.clean(res.Header.Get("Location")))), nil)
	}
	kind, text := x.classify(res.StatusCode, body)
	e := x.error(kind, res.StatusCode, text, nil)
	e.After = after(res.Header)
	switch kind {
	case model.NoKey:
		if x.key == "" {
			e.Message += "; no key was sent"
		}
	case model.Rejected:
		if containsAny(strings.ToLower(text), []string{"not support tools", "tool choice requires", "tool calling is not supported", "not support function calling"}) { // Ollama, vLLM
			e.Message += "; text/" + x.id + x.asText() + " is the same model without tool calling of its own: it writes calls into its text"
		}
	case model.NoModel:
		if !x.official {
			e.Message += "; is the base URL right? It often ends in /v1"
		}
	}
	return e
}

// asText returns what a model of a provider with a name of its own needs to be a text model.
func (c *client) asText() string {
	if strings.HasPrefix(c.line.Other, "OPENAI_") {
		return ""
	}
	at := *c.base
	at.User, at.RawQuery = nil, ""
	return " with OPENAI_BASE_URL=" + at.String()
}

// inList returns the error in a list of one, as Gemini writes it.
func inList(body []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) == 1 {
		return list[0]
	}
	return body
}

// event returns the error of an event in the middle of a stream.
func (x *exchange) event(data []byte) error {
	kind, text := x.classify(0, data)
	return x.error(kind, 0, text, nil)
}

// classify returns the kind and the text of an error.
func (x *exchange) classify(status int, body []byte) (model.Kind, string) {
	type reason struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Window  int64  `json:"n_ctx"` // llama.cpp
		More    struct {
			Raw string `json:"raw"`
		} `json:"metadata"` // OpenRouter: the error of the server behind it
	}
	var outer struct {
		reason
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
	}
	var why reason
	if json.Unmarshal(inList(body), &outer) == nil {
		why = outer.reason
		if len(outer.Error) > 0 && json.Unmarshal(outer.Error, &why) != nil {
			why.Message = string(outer.Error)
			_ = json.Unmarshal(outer.Error, &why.Message)
		}
		if why.Message == "" {
			why.Message = string(outer.Detail)
		}
		if why.More.Raw != "" {
			why.Message += ": " + why.More.Raw
		}
	}
	code, _ := why.Code.(string)
	text := why.Message
	if text == "" {
		text = strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") {
			text = "a page of HTML"
		}
	}
	if text == "" {
		text = http.StatusText(status)
	}
	if n, ok := why.Code.(float64); ok && status == 0 && n >= 400 && n < 600 {
		status = int(n) // some servers write the status into the event
	}
	named := strings.ToLower(why.Type + "\n" + code)
	words := strings.ToLower(why.Message) // these may quote the request
	if status == 0 {
		named += "\n" + words // there is nothing better
	}
	has := func(parts ...string) bool { return containsAny(named, parts) }
	says := func(parts ...string) bool { return containsAny(words, parts) }
	kind := model.Unavailable
	switch {
	case status == 402, has("insufficient_quota", "exceeded_current_quota", "billing_error", "billing_hard_limit"), says("credit balance"):
		kind = model.NoMoney
	case status == 413, has("context_length_exceeded", "exceed_context_size", "request_too_large"), status != 429 && says(tooLong...):
		kind = model.TooLong
		x.learnWindow(windowNamed(words))
		x.learnWindow(why.Window)
	case status == 401, status == 403, has("authentication_error", "permission_error", "invalid_api_key"), status == 400 && says("api key not valid", "incorrect api key"): // Gemini, xAI
		kind = model.NoKey
	case status == 404, has("model_not_found", "not_found_error"):
		kind = model.NoModel
	case status == 529, status == 503, status == 498, has("overloaded"): // 498: Groq
		kind = model.Overloaded
	case status == 429, has("rate_limit"):
		kind = model.Limited
	case status == 408, status == 409, status >= 500, has("tool_use_failed"): // the last: Groq, if a call does not fit its schema
	case status >= 400, has("invalid_request", "invalid_prompt"):
		kind = model.Rejected
	}
	return kind, said(x.clean(text))
}

// tooLong has words of errors that a request is too long, of several servers each.
var tooLong = []string{
	"context length", "prompt is too long", "maximum context", "context window", // OpenAI, vLLM, LM Studio, Ollama, Anthropic, Mistral
	"exceed context limit",                 // Anthropic, together with the answer
	"exceeds the available context size",   // llama.cpp
	"exceeds the maximum number of tokens", // Gemini
	"maximum prompt length",                // xAI
	"exceeded model token limit",           // Moonshot
	"input is too long",                    // Bedrock
}

// namedWindow finds the window in such an error.
var namedWindow = pattern.Lazy(`(?:context length (?:is|of|of only)|context length:|prompt length is|token limit:|context size \(|tokens allowed \(|tokens >|\d \+ \d+ >) ?(\d+)|(\d+) maximum context length`)

// windowNamed returns the window that an error names, in tokens, or 0.
func windowNamed(words string) int64 {
	found := namedWindow().FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(found[1]+found[2], 10, 64)
	return n
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// clean removes keys from a text: those of the options, and possible keys in the base URL.
func (x *exchange) clean(text string) string {
	private := []string{x.key}
	if password, ok := x.base.User.Password(); ok {
		private = append(private, password)
	}
	for _, values := range x.base.Query() {
		private = append(private, values...)
	}
	for _, values := range x.header {
		private = append(private, values...)
	}
	for _, s := range private {
		if len(s) >= 8 {
			text = strings.ReplaceAll(text, s, "…")
		}
	}
	return text
}

// said quotes text from a server.
func said(text string) string {
	if runes := []rune(text); len(runes) > maxSaid {
		text = string(runes[:maxSaid]) + "…"
	}
	return strconv.Quote(text)
}

// after returns the retry time in the header, 0 if there is none.
func after(h http.Header) time.Duration {
	const most = 1e6 // seconds, also where a number is too big for a float
	if ms, _ := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); ms > 0 {
		return time.Duration(min(ms, most*1000) * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, _ := strconv.ParseFloat(v, 64); s > 0 {
		return time.Duration(min(s, most) * float64(time.Second))
	}
	if when, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(when))
	}
	return 0
}
