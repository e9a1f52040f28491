package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// SampleRequest asks the client's language model for a completion.
//
// Specification: 2026-07-28, client/sampling (deprecated there, but served).
type SampleRequest struct {
	Messages      []SampleMessage
	MaxTokens     int // required, more than 0
	SystemPrompt  string
	Temperature   *float64
	StopSequences []string
	Preferences   *ModelPreferences
	Tools         []*Tool // needs a client of 2025-11-25 or later that declares sampling.tools
	ToolChoice    string  // "auto", "required" or "none"; empty: the client's default
	Metadata      json.RawMessage

	// IncludeContext is "none", "thisServer" or "allServers"; empty: none.
	IncludeContext string
}

// SampleMessage is one message of a conversation with a model. Several blocks
// need a client of 2025-11-25 or later.
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []Content
}

// ModelPreferences say what matters in the choice of a model; priorities are 0 to 1.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitempty"`
	SpeedPriority        *float64    `json:"speedPriority,omitempty"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitempty"`
}

// ModelHint is part of a model's name, such as "claude" or "sonnet".
type ModelHint struct {
	Name string `json:"name,omitempty"`
}

// SampleResult is what the client's model answered.
type SampleResult struct {
	Role       string // usually "assistant"
	Content    []Content
	Model      string
	StopReason string // "endTurn", "stopSequence", "maxTokens", "toolUse" or another
}

// Text returns the text blocks of the answer, joined by newlines.
func (r *SampleResult) Text() string { return textOf(r.Content) }

type sampleWire struct {
	Messages       []sampleMessageWire `json:"messages"`
	MaxTokens      int                 `json:"maxTokens"`
	SystemPrompt   string              `json:"systemPrompt,omitempty"`
	Temperature    *float64            `json:"temperature,omitempty"`
	StopSequences  []string            `json:"stopSequences,omitempty"`
	Preferences    *ModelPreferences   `json:"modelPreferences,omitempty"`
	Tools          []*Tool             `json:"tools,omitempty"`
	ToolChoice     *toolChoiceWire     `json:"toolChoice,omitempty"`
	Metadata       json.RawMessage     `json:"metadata,omitempty"`
	IncludeContext string              `json:"includeContext,omitempty"`
}

type toolChoiceWire struct {
	Mode string `json:"mode,omitempty"`
}

type sampleMessageWire struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type sampleResultWire struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitempty"`
}

// Sample asks the client's model for a completion and waits for it. Errors:
// [ErrNotSupported], [ErrNoCall], or the client's [*Error], for instance when the user
// refused.
func Sample(ctx context.Context, r *SampleRequest, opts ...AskOption) (*SampleResult, error) {
	if r.MaxTokens <= 0 {
		return nil, fmt.Errorf("sample: MaxTokens must be more than 0, got %d", r.MaxTokens)
	}
	raw, err := ask(ctx, revision.MethodSample, r.encode(), opts)
	if err != nil {
		return nil, err
	}
	var w sampleResultWire
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("sample: the client's answer: %w", err)
	}
	content, err := decodeContents(w.Content)
	if err != nil {
		return nil, fmt.Errorf("sample: the client's answer: %w", err)
	}
	return &SampleResult{w.Role, content, w.Model, w.StopReason}, nil
}

func (r *SampleRequest) encode() json.RawMessage {
	w := sampleWire{
		Messages:  make([]sampleMessageWire, len(r.Messages)),
		MaxTokens: r.MaxTokens, SystemPrompt: r.SystemPrompt, Temperature: r.Temperature,
		StopSequences: r.StopSequences, Preferences: r.Preferences, Tools: r.Tools,
		Metadata: r.Metadata, IncludeContext: r.IncludeContext,
	}
	if r.ToolChoice != "" {
		w.ToolChoice = &toolChoiceWire{r.ToolChoice}
	}
	for i, m := range r.Messages {
		w.Messages[i] = sampleMessageWire{m.Role, appendBlocks(m.Content)}
	}
	return encode(w)
}

// appendBlocks writes one block as an object, as all revisions read it, and
// several as an array.
func appendBlocks(cs []Content) json.RawMessage {
	if len(cs) == 1 {
		b, _ := cs[0].appendJSON(nil)
		return b
	}
	b, _ := appendContents(nil, cs)
	return b
}

func decodeSampleRequest(raw json.RawMessage) (*SampleRequest, error) {
	var w sampleWire
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("sampling request: %w", err)
	}
	r := &SampleRequest{
		MaxTokens: w.MaxTokens, SystemPrompt: w.SystemPrompt, Temperature: w.Temperature,
		StopSequences: w.StopSequences, Preferences: w.Preferences, Tools: w.Tools,
		Metadata: w.Metadata, IncludeContext: w.IncludeContext,
	}
	if w.ToolChoice != nil {
		r.ToolChoice = w.ToolChoice.Mode
	}
	if i := slices.Index(w.Tools, nil); i >= 0 {
		return nil, fmt.Errorf("sampling request: tools[%d] is null", i)
	}
	for i, m := range w.Messages {
		content, err := decodeContents(m.Content)
		if err != nil {
			return nil, fmt.Errorf("sampling request: messages[%d]: %w", i, err)
		}
		r.Messages = append(r.Messages, SampleMessage{m.Role, content})
	}
	return r, nil
}

func (r *SampleResult) encode() json.RawMessage {
	role := r.Role
	if role == "" {
		role = "assistant"
	}
	return encode(sampleResultWire{role, appendBlocks(r.Content), r.Model, r.StopReason})
}
