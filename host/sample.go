package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	maxSampling = 4               // concurrent sampling requests of one server
	maxNested   = 2               // nesting of sampling requests
	maxStops    = 4               // stop sequences passed to the provider
	sampleTime  = 5 * time.Minute // bound of the model's answer
)

// nestedKey is the context key for the number of enclosing sampling requests.
type nestedKey struct{}

// sample lets a model answer a sampling request from the server, after review by the person. The
// model sees only the request: content of other conversations (includeContext) is never included.
//
// Specification: 2026-07-28, client/sampling.
func (s *server) sample(ctx context.Context, c *Conversation, r *mcp.SampleRequest) (res *mcp.SampleResult, err error) {
	ctx, q := s.question(ctx, c)
	defer q.over()
	defer func() { q.unanswered(err) }()
	nested, _ := ctx.Value(nestedKey{}).(int)
	if nested >= maxNested {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "this completion is requested inside of %d others, which is too deep", nested)
	}
	if err := q.maySample(); err != nil {
		return nil, err
	}
	select {
	case q.s.asking <- struct{}{}:
		defer func() { <-q.s.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	m := q.model(r.Preferences)
	if m == nil {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "this host has no model for completions")
	}
	return q.sample(context.WithValue(ctx, nestedKey{}, nested+1), m, r)
}

// model returns the model that answers.
func (q *question) model(p *mcp.ModelPreferences) model.Model {
	h := q.s.h
	switch {
	case h.Sampler != nil:
		return h.Sampler(p)
	case q.c != nil && q.c.Model != nil:
		return q.c.Model
	}
	return h.Model
}

// sample asks the model, between the two reviews of the person.
func (q *question) sample(ctx context.Context, m model.Model, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
	h := q.s.h
	sampling := &Sampling{Server: q.s.Name, Model: m.Info().Name}
	sampling.Conversation, sampling.Call = q.id()
	if r.IncludeContext != "" && r.IncludeContext != "none" {
		q.note("server %q asks for the context %q, but the model sees only the request", q.s.Name, bounded(r.IncludeContext, 50))
	}
	limited := *r
	most := or(h.Limits.SampleSize, 4096)
	if limited.MaxTokens <= 0 || limited.MaxTokens > most {
		limited.MaxTokens = most
	}
	r = &limited
	if h.Person != nil {
		sampling.Request = r
		q.tell(Event{Kind: Asked, Text: fmt.Sprintf("may %s answer for the server?", sampling.Model)})
		var err error
		r, err = ask(ctx, func() (*mcp.SampleRequest, error) { return h.Person.ReviewRequest(ctx, sampling) })
		if err != nil || r == nil {
			return nil, q.refused(ctx, err)
		}
		reviewed := *sampling
		reviewed.Request, sampling = r, &reviewed
	}
	req, names, err := toModel(r, m.Info())
	if err != nil {
		return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	answering, cancel := context.WithTimeoutCause(ctx, sampleTime, fmt.Errorf("no answer within %v", sampleTime))
	defer cancel()
	res, err := q.generate(answering, m, req)
	if res != nil {
		cost := m.Info().Price.Of(res.Usage)
		if q.c != nil {
			q.c.spent(res.Usage, cost)
		}
		q.tell(Event{Kind: Sampled, Usage: &res.Usage, Cost: cost, Model: res.Model})
	}
	if err == nil && res == nil {
		err = errors.New("the model returned neither an answer nor an error")
	}
	if err != nil {
		return nil, q.failed(ctx, sampling.Model, err)
	}
	out := fromModel(res, r, names)
	if out.Model == "" {
		out.Model = sampling.Model
	}
	if r.ToolChoice == "required" && out.StopReason != "toolUse" {
		return nil, mcp.Errorf(jsonrpc.CodeInternal, "the model has used no tool, but one was required")
	}
	if h.Person == nil {
		return out, nil
	}
	reviewed, err := ask(ctx, func() (*mcp.SampleResult, error) { return h.Person.ReviewAnswer(ctx, sampling, out) })
	if err != nil || reviewed == nil {
		return nil, q.refused(ctx, err)
	}
	return reviewed, nil
}

// generate asks the model, within the limits of the turn if the request belongs to one.
func (q *question) generate(ctx context.Context, m model.Model, req *model.Request) (*model.Response, error) {
	if q.c == nil {
		return m.Generate(ctx, req, nil)
	}
	size := tokens(len(req.System))
	for _, message := range req.Messages {
		for _, p := range message.Parts {
			size += partTokens(p)
		}
	}
	return q.c.within(ctx, m, req, int64(size), func(model.Delta) {})
}

// refused returns the error for the server after a review that did not approve.
func (q *question) refused(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, mcp.ErrDeclined) && !errors.Is(err, mcp.ErrDismissed):
		q.note("the request of server %q for a completion was not answered: %v", q.s.Name, err)
	}
	return mcp.ErrDeclined
}

// failed returns the error for the server after the model failed. It names only the kind of the
// failure: the provider's message may reveal details of the account, so only the person sees it.
func (q *question) failed(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q.note("no completion for server %q: %v", q.s.Name, err)
	kind := "it did not answer"
	var known *model.Error
	switch {
	case errors.Is(err, ErrBudget):
		kind = "the limits of this host are reached"
	case errors.As(err, &known):
		kind = string(known.Kind)
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "no answer from %s: %s", name, kind)
}

// toolNames maps names that a model accepts to the server's own names.
type toolNames map[string]string

// of returns the name for the model.
func (n toolNames) of(own string) string {
	if own == "" || len(own) > 64 || strings.Trim(own, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		name := gateway.Name("tool", own)
		n[name] = own
		return name
	}
	return own
}

// own returns the server's own name for a name that the model has used.
func (n toolNames) own(name string) string {
	if own, ok := n[name]; ok {
		return own
	}
	return name
}

// toModel converts a sampling request from a server to a request to a model.
func toModel(r *mcp.SampleRequest, info model.Info) (*model.Request, toolNames, error) {
	names := toolNames{}
	req := &model.Request{
		System: r.SystemPrompt, Parameters: model.Parameters{MaxTokens: r.MaxTokens, Temperature: r.Temperature},
		Stop: slices.Clone(r.StopSequences[:min(len(r.StopSequences), maxStops)]),
	}
	for _, t := range r.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: names.of(t.Name), Description: t.Description, Schema: t.InputSchema})
	}
	switch r.ToolChoice {
	case "", "auto":
	case "none", "required":
		req.Choice.Mode = r.ToolChoice
		if r.ToolChoice == "required" && len(r.Tools) == 0 {
			return nil, nil, errors.New("a tool is required, but there is none")
		}
	default:
		return nil, nil, fmt.Errorf("unknown tool choice %q; use auto, required or none", bounded(r.ToolChoice, 50))
	}
	used := map[string]string{} // names of tools by tool use id
	for i, m := range r.Messages {
		role := model.User
		if m.Role == "assistant" {
			role = model.Assistant
		}
		var parts []model.Part
		for _, c := range m.Content {
			p, err := partOf(c, info, names, used)
			if err != nil {
				return nil, nil, fmt.Errorf("messages[%d]: %w", i, err)
			}
			if p != (model.Part{}) { // providers refuse an empty text
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 {
			parts = words("[nothing]")
		}
		if last := len(req.Messages) - 1; last >= 0 && req.Messages[last].Role == role {
			req.Messages[last].Parts = append(req.Messages[last].Parts, parts...)
			continue
		}
		req.Messages = append(req.Messages, model.Message{Role: role, Parts: parts})
	}
	switch {
	case len(req.Messages) == 0:
		return nil, nil, errors.New("there are no messages")
	case req.Messages[0].Role != model.User: // models expect the user to begin
		req.Messages = slices.Insert(req.Messages, 0, model.UserText("[Begin.]"))
	}
	if req.Messages[len(req.Messages)-1].Role != model.User {
		req.Messages = append(req.Messages, model.UserText("[Go on.]"))
	}
	return req, names, nil
}

// partOf converts a content block to a part of a message.
func partOf(c mcp.Content, info model.Info, names toolNames, used map[string]string) (model.Part, error) {
	switch c := c.(type) {
	case mcp.TextContent:
		return model.Part{Text: clean(c.Text)}, nil
	case mcp.ImageContent:
		if !info.Images {
			return model.Part{}, fmt.Errorf("the model %s does not accept images", info.Name)
		}
		return model.Part{Media: &model.Media{MIME: mediaType(c.MIMEType, c.Data), Data: c.Data}}, nil
	case mcp.AudioContent:
		if !info.Audio {
			return model.Part{}, fmt.Errorf("the model %s does not accept audio", info.Name)
		}
		return model.Part{Media: &model.Media{MIME: mediaType(c.MIMEType, c.Data), Data: c.Data}}, nil
	case mcp.ToolUseContent:
		used[c.ID] = names.of(c.Name)
		return model.Part{Call: &model.Call{ID: c.ID, Name: used[c.ID], Arguments: c.Input}}, nil
	case mcp.ToolResultContent:
		p := &presenting{takes: info}
		for _, block := range c.Result.Content {
			if l, ok := block.(mcp.ResourceLink); ok { // the server cannot call the host's own tools
				p.text(fmt.Sprintf("[link to resource %q%s]", l.URI, typed(l.MIMEType)))
				continue
			}
			p.block(block)
		}
		p.text(string(unsaid(c.Result.Structured, c.Result.Content)))
		if p.nothing() {
			p.text("[nothing]")
		}
		return model.Part{Result: &model.Result{ID: c.ToolUseID, Name: used[c.ToolUseID], Parts: p.parts, Error: c.Result.IsError}}, nil
	}
	return model.Part{}, errors.New("a kind of content that models do not accept")
}

// fromModel converts the answer from a model to a result for the server, without its reasoning.
func fromModel(res *model.Response, r *mcp.SampleRequest, names toolNames) *mcp.SampleResult {
	out := &mcp.SampleResult{Role: "assistant", Model: res.Model, StopReason: stopReason(res.Stop)}
	text := res.Message.Text()
	// Providers support only a few stop sequences, or none.
	if at := firstOf(text, r.StopSequences); at >= 0 {
		text, out.StopReason = text[:at], "stopSequence"
	}
	if text != "" {
		out.Content = append(out.Content, mcp.Text(text))
	}
	used := false
	for _, p := range res.Message.Parts {
		switch {
		case p.Media != nil && strings.HasPrefix(p.Media.MIME, "audio/"):
			out.Content = append(out.Content, mcp.AudioContent{Data: p.Media.Data, MIMEType: p.Media.MIME})
		case p.Media != nil && strings.HasPrefix(p.Media.MIME, "image/"):
			out.Content = append(out.Content, mcp.ImageContent{Data: p.Media.Data, MIMEType: p.Media.MIME})
		case p.Call != nil && offered(r, names.own(p.Call.Name)) && out.StopReason != "stopSequence":
			used = true
			out.Content = append(out.Content, mcp.ToolUseContent{ID: p.Call.ID, Name: names.own(p.Call.Name), Input: object(p.Call.Arguments)})
		}
	}
	switch {
	case used:
		out.StopReason = "toolUse"
	case out.StopReason == "toolUse":
		out.StopReason = "endTurn"
	}
	if out.Content == nil {
		out.Content = []mcp.Content{mcp.Text("")}
	}
	return out
}

// offered reports whether the model may use a tool.
func offered(r *mcp.SampleRequest, name string) bool {
	return r.ToolChoice != "none" && slices.ContainsFunc(r.Tools, func(t *mcp.Tool) bool { return t.Name == name })
}

// object returns the arguments that a model wrote if they are a JSON object, or else an object that
// contains them.
func object(raw json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil && members != nil {
		return raw
	}
	b, _ := json.Marshal(map[string]string{"invalid": string(raw)})
	return b
}

// firstOf returns the index of the first occurrence of any of ends, or -1.
func firstOf(text string, ends []string) int {
	first := -1
	for _, end := range ends {
		if at := strings.Index(text, end); end != "" && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

func stopReason(s model.Stop) string {
	switch s {
	case model.StopCalls:
		return "toolUse"
	case model.StopLength:
		return "maxTokens"
	case model.StopText:
		return "stopSequence"
	case model.StopRefused:
		return "refusal"
	}
	return "endTurn"
}
