package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
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
	Tools         []*Tool // needs a client that speaks 2025-11-25 or later that declares sampling.tools
	ToolChoice    string  // "auto", "required" or "none"; empty: the client's default
	Metadata      json.RawMessage

	// IncludeContext is "none", "thisServer" or "allServers"; empty: none.
	IncludeContext string
}

// SampleMessage is one message of a conversation with a model. Several blocks need a client that
// speaks 2025-11-25 or later.
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []Content
}

// ModelPreferences state the client's priorities for the choice of a model, each from 0 to 1.
type ModelPreferences struct {
	Hints                []string // parts of model names, such as "claude" or "sonnet", the best first
	CostPriority         *float64
	SpeedPriority        *float64
	IntelligencePriority *float64
}

// preferencesWire is the JSON of ModelPreferences.
type preferencesWire struct {
	Hints                []modelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitempty"`
	SpeedPriority        *float64    `json:"speedPriority,omitempty"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitempty"`
}

type modelHint struct {
	Name string `json:"name,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p ModelPreferences) MarshalJSON() ([]byte, error) {
	w := preferencesWire{nil, p.CostPriority, p.SpeedPriority, p.IntelligencePriority}
	for _, name := range p.Hints {
		w.Hints = append(w.Hints, modelHint{name})
	}
	return jsonx.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *ModelPreferences) UnmarshalJSON(raw []byte) error {
	var w preferencesWire
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return err
	}
	*p = ModelPreferences{nil, w.CostPriority, w.SpeedPriority, w.IntelligencePriority}
	for _, hint := range w.Hints {
		p.Hints = append(p.Hints, hint.Name)
	}
	return nil
}

// SampleResult is the answer of the client's model.
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

// Sample asks the client's model for a completion and waits for it. Errors: [ErrNotSupported],
// [ErrNoCall], [ErrDeclined], or the client's [*Error]. Sample refuses invalid
// conversations: each message needs a role and content, and if one uses tools, the next holds the
// results and nothing else.
func Sample(ctx context.Context, r *SampleRequest, opts ...AskOption) (*SampleResult, error) {
	if r.MaxTokens <= 0 {
		return nil, fmt.Errorf("sample: MaxTokens must be more than 0, got %d", r.MaxTokens)
	}
	if err := checkMessages(r.Messages); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	raw, err := ask(ctx, revision.MethodSample, r.encode(), opts)
	if rpc := (*Error)(nil); errors.As(err, &rpc) && rpc.Code == bridge.CodeDeclined && !errors.Is(err, ErrDeclined) {
		err = fmt.Errorf("%w: %w", ErrDeclined, err)
	}
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

// checkMessages checks a conversation (2026-07-28, client/sampling, Messages and
// Message Content Constraints).
func checkMessages(ms []SampleMessage) error {
	var open []string // uses of tools in the message before
	for i, m := range ms {
		var uses, results []string
		for _, c := range m.Content {
			switch c := c.(type) {
			case ToolUseContent:
				uses = append(uses, c.ID)
			case ToolResultContent:
				results = append(results, c.ToolUseID)
			}
		}
		slices.Sort(results)
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return fmt.Errorf("messages[%d]: the role is %q; use user or assistant", i, text.Short(m.Role))
		case len(m.Content) == 0:
			return fmt.Errorf("messages[%d]: no content", i)
		case len(uses) > 0 && m.Role != "assistant":
			return fmt.Errorf("messages[%d]: the user does not use tools, the assistant does", i)
		case len(results) > 0 && (m.Role != "user" || len(results) < len(m.Content)):
			return fmt.Errorf("messages[%d]: results of tools belong in a message of the user that holds nothing else", i)
		case !slices.Equal(open, results):
			return fmt.Errorf("messages[%d]: results of the tool uses %q, want those of %q, which the message before has", i, clipAll(results), clipAll(open))
		}
		slices.Sort(uses)
		open = uses
	}
	if len(open) > 0 {
		return fmt.Errorf("messages: the tool uses %q have no results", clipAll(open))
	}
	return nil
}

// clipAll bounds texts from a peer for use in an error.
func clipAll(ss []string) []string {
	out := make([]string, min(len(ss), 5))
	for i := range out {
		out[i] = text.Short(ss[i])
	}
	return out
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
	if err := checkMessages(r.Messages); err != nil {
		return nil, fmt.Errorf("sampling request: %w", err)
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
