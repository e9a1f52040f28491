package provider

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Many servers tell the window of a model, each in its own way. They are asked beside the first request,
// so that nobody waits for it: where the table of providers says, or everywhere, because the base URL
// of another server does not tell which one it is. The smallest number counts: some servers tell the
// window that they loaded the model with and the larger one that it was made for.
const (
	windowTime  = 2 * time.Second // bound of the questions
	maxListed   = 8 << 20         // bytes of an answer; OpenRouter lists all its models
	leastWindow = 256             // tokens; smaller numbers mean something else
	mostWindow  = 1 << 30
)

// window is what is known about the window of a model beside its description. The zero value knows
// nothing.
type window struct {
	places []string     // where the server is to be asked
	known  atomic.Int64 // tokens; 0: not known
	asking sync.Mutex   // held while the server is asked
	asked  bool         // the server has answered; guarded by asking
}

// windowPlace is a way to ask for the window of a model.
type windowPlace struct {
	named bool   // the request names the model, in a POST
	key   string // header of the key; empty: as in other requests
	read  func(answer []byte, id string) []int64
}

// windowPlaces are the places where servers tell the window of a model: below the base URL, or below the
// root of the server if they begin with a slash. ID stands for the model.
var windowPlaces = map[string]windowPlace{
	"models":         {read: windowListed},                           // vLLM, OpenRouter, Groq, Mistral and others
	"/api/v0/models": {read: windowListed},                           // LM Studio
	"/props":         {read: windowOfProps},                          // llama.cpp
	"/api/show":      {read: windowShown, named: true},               // Ollama
	"/api/ps":        {read: windowListed},                           // Ollama, if it has loaded the model
	"models/ID":      {read: windowDescribed},                        // Anthropic
	"../models/ID":   {read: windowDescribed, key: "X-Goog-Api-Key"}, // Gemini, in its other API
}

// everywhere are the places of servers that anybody may run.
var everywhere = []string{"models", "/api/v0/models", "/props", "/api/show", "/api/ps"}

// windowListed reads lists of models, in which each server has its own name for the window.
func windowListed(answer []byte, id string) (found []int64) {
	for _, raw := range listed(answer) {
		var m struct {
			ID                  string `json:"id"`
			Name                string `json:"name"`
			Model               string `json:"model"`
			MaxModelLen         int64  `json:"max_model_len"`
			ContextLength       int64  `json:"context_length"`
			ContextWindow       int64  `json:"context_window"`
			MaxContextLength    int64  `json:"max_context_length"`
			LoadedContextLength int64  `json:"loaded_context_length"`
		}
		if decode(raw, &m) != nil || m.ID != id && m.Name != id && m.Model != id && strings.TrimSuffix(m.Model, ":latest") != id {
			continue
		}
		found = append(found, m.MaxModelLen, m.ContextLength, m.ContextWindow, m.MaxContextLength, m.LoadedContextLength)
	}
	return found
}

// windowOfProps reads the properties of llama.cpp, which serves a single model.
func windowOfProps(answer []byte, _ string) []int64 {
	var props struct {
		Settings struct {
			Window int64 `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	_ = decode(answer, &props)
	return []int64{props.Settings.Window}
}

// windowShown reads Ollama's description of a model: the window that its file sets, and the one
// that it was made for.
func windowShown(answer []byte, _ string) (found []int64) {
	var shown struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	_ = decode(answer, &shown)
	for line := range strings.Lines(shown.Parameters) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == "num_ctx" {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			found = append(found, n)
		}
	}
	for name, value := range shown.Info {
		if strings.HasSuffix(name, ".context_length") {
			n, _ := strconv.ParseInt(string(value), 10, 64)
			found = append(found, n)
		}
	}
	return found
}

// windowDescribed reads the description of a model.
func windowDescribed(answer []byte, _ string) []int64 {
	var m struct {
		MaxInputTokens  int64 `json:"max_input_tokens"`
		InputTokenLimit int64 `json:"inputTokenLimit"`
	}
	_ = decode(answer, &m)
	return []int64{m.MaxInputTokens, m.InputTokenLimit}
}

// askWindow begins to ask the server for the window of the model, unless it is known or was asked
// before. The returned function waits for the end of that.
func (x *exchange) askWindow() (wait func()) {
	w := &x.client.window
	if len(w.places) == 0 || !w.asking.TryLock() {
		return func() {}
	}
	if w.asked {
		w.asking.Unlock()
		return func() {}
	}
	ctx, cancel := context.WithTimeoutCause(x.ctx, windowTime, errTimeout)
	answers := make(chan []int64, len(w.places))
	for _, p := range w.places {
		go func() { answers <- x.windowAt(ctx, p) }() // ends with ctx
	}
	return func() {
		defer w.asking.Unlock()
		defer cancel()
		for range w.places {
			found := <-answers
			w.asked = w.asked || found != nil
			for _, n := range found {
				w.learn(n, int(w.known.Load()))
			}
		}
		w.asked = w.asked || context.Cause(ctx) == errTimeout // it will not tell
	}
}

// learnWindow records that the window has no more than a number of tokens.
func (c *client) learnWindow(tokens int64) { c.window.learn(tokens, c.Info().Window) }

// learn records a number of tokens if it is plausible and less than was known.
func (w *window) learn(tokens int64, known int) {
	if leastWindow <= tokens && tokens <= mostWindow && (known == 0 || tokens < int64(known)) {
		w.known.Store(tokens)
	}
}

// windowAt asks in one place. The result is nil if the server has not answered.
func (x *exchange) windowAt(ctx context.Context, place string) []int64 {
	p := windowPlaces[place]
	at := x.base
	if strings.HasPrefix(place, "/") && strings.HasSuffix(at.Path, "/v1") {
		at = at.JoinPath("..")
	}
	at = at.JoinPath(strings.Replace(place, "ID", url.PathEscape(x.id), 1))
	own := x.own
	if p.key != "" {
		own = x.keyHeader(p.key)
	}
	method, body := http.MethodGet, []byte(nil)
	if p.named {
		method = http.MethodPost
		body, _ = encode(map[string]string{"model": x.id}) // cannot fail for strings
	}
	res, err := x.do(ctx, method, at, own, body)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxListed))
	switch {
	case err != nil:
		return nil
	case res.StatusCode != http.StatusOK:
		return []int64{}
	}
	return append(p.read(answer, x.id), 0)
}
