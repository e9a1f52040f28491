package mcp

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// ToolResult is the result of a tool call.
type ToolResult struct {
	// Content is for the model. If a tool of [AddTool] or [Server.HandleTool] leaves it nil and sets
	// Structured, it becomes that JSON as text. An empty list that is not nil stays empty.
	Content []Content

	// Structured is the JSON of the structured result, or nil if there is none. Invalid JSON fails the
	// call like a panic. Before 2026-07-28 it must be an object, and before 2025-06-18 it does not
	// exist; such callers get it as text, but only if Content has no text, which is taken to say it.
	Structured json.RawMessage

	// IsError says that the tool failed; Content says how, for the model to act on.
	IsError bool

	Meta Meta

	own *byte // where Structured begins if this package has encoded it, so that it is valid JSON
}

// Text returns the text blocks of the result, joined by newlines.
func (r *ToolResult) Text() string { return textOf(r.Content) }

// appendJSON appends the result in the inner form and returns the newer features it uses.
func (r *ToolResult) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"content":`...)
	dst, uses := appendContents(dst, r.Content)
	if r.Structured != nil {
		r.checkStructured()
		dst = append(dst, `,"structuredContent":`...)
		dst = jsonx.AppendLine(dst, r.Structured)
		uses |= revision.Structured
		if jsonx.KindOf(r.Structured) != '{' {
			uses |= revision.StructuredAny
		}
	}
	if r.IsError {
		dst = append(dst, `,"isError":true`...)
	}
	return appendMeta(dst, r.Meta), uses
}

// checkStructured panics if Structured is not valid JSON.
func (r *ToolResult) checkStructured() {
	if len(r.Structured) == 0 || &r.Structured[0] != r.own {
		mustBeJSON("structured content", r.Structured)
	}
}

// encode encodes the result in its inner form, in dst.
func (r *ToolResult) encode(dst []byte) engine.Result {
	b, uses := r.appendJSON(dst)
	return engine.Result{JSON: b, Uses: uses, Meta: r.Meta != nil, Typed: true}
}

func decodeToolResult(raw json.RawMessage) (*ToolResult, error) {
	r := &ToolResult{}
	for name, v := range jsonx.Members(raw) {
		if err := r.decode(string(name), v); err != nil {
			return nil, fmt.Errorf("tool result: %w", err)
		}
	}
	return r, nil
}

// decode reads one member.
func (r *ToolResult) decode(name string, v json.RawMessage) (err error) {
	switch name {
	case "content":
		r.Content, err = decodeContents(v)
	case "structuredContent":
		r.Structured = v
	case "isError":
		err = jsonx.Unmarshal(v, &r.IsError)
	case "_meta":
		err = jsonx.Unmarshal(v, &r.Meta)
	}
	return err
}

// ResourceContents is the contents of one resource: Text, or Blob if it is not nil.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte // the bytes, not their base64 form
	Meta     Meta
}

type resourceContentsWire struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitzero"`
	Blob     *[]byte `json:"blob,omitzero"`
	Meta     Meta    `json:"_meta,omitempty"`
}

// MarshalJSON writes the form of the specification.
func (c ResourceContents) MarshalJSON() ([]byte, error) {
	w := resourceContentsWire{URI: c.URI, MIMEType: c.MIMEType, Meta: c.Meta}
	if c.Blob != nil {
		w.Blob = &c.Blob
	} else {
		w.Text = &c.Text
	}
	return jsonx.Marshal(w)
}

// UnmarshalJSON reads the form of the specification.
func (c *ResourceContents) UnmarshalJSON(data []byte) error {
	var w resourceContentsWire
	if err := jsonx.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = ResourceContents{URI: w.URI, MIMEType: w.MIMEType, Meta: w.Meta}
	if w.Text != nil {
		c.Text = *w.Text
	}
	if w.Blob != nil {
		if c.Blob = *w.Blob; c.Blob == nil {
			c.Blob = []byte{}
		}
	}
	return nil
}

// ReadResult is the result of reading a resource: usually one element, several
// when the URI names a collection.
type ReadResult struct {
	Contents []ResourceContents `json:"contents"`
	Meta     Meta               `json:"_meta,omitempty"`

	// Cache says how long the contents may be cached. On a client it is the server's value, less
	// the time that the client has already cached the result.
	Cache CacheHint `json:"-"`
}

// CacheHint says how long, and for whom, a result may be cached (2026-07-28,
// server/utilities/caching). Other revisions do not transmit it.
type CacheHint struct {
	TTL    time.Duration // zero or less: do not cache
	Public bool          // the result is the same for every caller and may be cached for all of them
}

// PromptResult is a filled-in prompt.
type PromptResult struct {
	Description string
	Messages    []PromptMessage
	Meta        Meta
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // "user" or "assistant"
	Content Content
}

// User returns a [PromptMessage] with the role "user" and a text.
func User(text string) PromptMessage { return PromptMessage{Role: "user", Content: Text(text)} }

func (r *PromptResult) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, '{')
	if r.Description != "" {
		dst = append(dst, `"description":`...)
		dst = jsonx.AppendString(dst, r.Description)
		dst = append(dst, ',')
	}
	dst = append(dst, `"messages":[`...)
	var uses revision.Feature
	for i, m := range r.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"role":`...)
		dst = jsonx.AppendString(dst, m.Role)
		dst = append(dst, `,"content":`...)
		var u revision.Feature
		dst, u = m.Content.appendJSON(dst)
		uses |= u
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	return appendMeta(dst, r.Meta), uses
}

func decodePromptResult(raw json.RawMessage) (*PromptResult, error) {
	var w struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Meta Meta `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("prompt result: %w", err)
	}
	r := &PromptResult{Description: w.Description, Meta: w.Meta}
	for i, m := range w.Messages {
		c, err := decodeContent(m.Content)
		if err != nil {
			return nil, fmt.Errorf("prompt result: messages[%d]: %w", i, err)
		}
		r.Messages = append(r.Messages, PromptMessage{m.Role, c})
	}
	return r, nil
}

// CompleteResult holds the suggested values.
type CompleteResult struct {
	Values  []string
	Total   int // 0 if not known
	HasMore bool
}

type completeWire struct {
	Completion struct {
		Values  []string `json:"values"`
		Total   int      `json:"total,omitzero"`
		HasMore bool     `json:"hasMore,omitzero"`
	} `json:"completion"`
}

// ServerInfo is a server's description of itself: the result of server/discover, or of initialize
// before 2026-07-28.
type ServerInfo struct {
	Implementation
	Capabilities Capabilities
	Instructions string
	Revisions    []Revision // that the server speaks, as far as it names them

	memo *engine.Memo
}

// appendMeta ends an object with its _meta.
func appendMeta(dst []byte, m Meta) []byte {
	if m != nil {
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, encode(m)...)
	}
	return append(dst, '}')
}

// encodeResult encodes the result of a handler in its inner form.
func encodeResult(r Result) engine.Result {
	if r == nil {
		panic(errNoResult)
	}
	return r.inner()
}

// jsonOf implements [Result.JSON].
func jsonOf(r Result) json.RawMessage {
	res := r.inner()
	if res.Memo != nil {
		return res.Memo.Inner()
	}
	return res.JSON
}

// JSON implements [Result].
func (r RawResult) JSON() json.RawMessage { return jsonOf(r) }

func (r RawResult) inner() engine.Result {
	return engine.Result{JSON: jsonx.OrObject(json.RawMessage(r)), Uses: revision.Unknown}
}

// JSON implements [Result].
func (r *ToolResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *ToolResult) inner() engine.Result { return r.encode(nil) }

// JSON implements [Result].
func (r *CreateTaskResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *CreateTaskResult) inner() engine.Result {
	return engine.Result{JSON: r.Task, Task: true, Drop: r.drop}
}

// JSON implements [Result].
func (r *PromptResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *PromptResult) inner() engine.Result {
	b, uses := r.appendJSON(nil)
	return engine.Result{JSON: b, Uses: uses, Meta: r.Meta != nil}
}

// JSON implements [Result].
func (r *ReadResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *ReadResult) inner() engine.Result {
	raw := encode(r)
	if r.Cache != (CacheHint{}) {
		raw = engine.Hint(r.Cache).AppendTo(raw)
	}
	return engine.Result{JSON: raw, Uses: revision.Unknown}
}

// JSON implements [Result].
func (r *CompleteResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *CompleteResult) inner() engine.Result {
	var w completeWire
	w.Completion.Values, w.Completion.Total, w.Completion.HasMore = r.Values, r.Total, r.HasMore
	return engine.Result{JSON: encode(w)}
}

// JSON implements [Result].
func (s *ServerInfo) JSON() json.RawMessage { return jsonOf(s) }

func (s *ServerInfo) inner() engine.Result {
	if memo := s.memo.Of(s); memo != nil {
		return engine.Result{Memo: memo, Uses: revision.Unknown}
	}
	return engine.Result{JSON: s.encode(), Uses: revision.Unknown}
}

// JSON implements [Result].
func (l *List[T]) JSON() json.RawMessage { return jsonOf(l) }

func (l *List[T]) inner() engine.Result {
	if memo := l.memo.Of(l); memo != nil {
		return engine.Result{Memo: memo, Uses: revision.Unknown}
	}
	return engine.Result{JSON: encode(l), Uses: revision.Unknown}
}

func (r *keptResult) JSON() json.RawMessage { return jsonOf(r) }

func (r *keptResult) inner() engine.Result {
	return engine.Result{Memo: r.memo, Uses: revision.Unknown}
}

// encode returns the inner form: a DiscoverResult without the members that the edge adds.
func (s *ServerInfo) encode() json.RawMessage {
	versions := make([]string, len(s.Revisions))
	for i, r := range s.Revisions {
		versions[i] = string(r)
	}
	return encode(struct {
		SupportedVersions []string                  `json:"supportedVersions"`
		Capabilities      Capabilities              `json:"capabilities"`
		Instructions      string                    `json:"instructions,omitempty"`
		Meta              map[string]Implementation `json:"_meta"`
	}{versions, s.Capabilities, s.Instructions, map[string]Implementation{engine.MetaServerInfo: s.Implementation}})
}

func decodeServerInfo(raw json.RawMessage) (*ServerInfo, error) {
	var w struct {
		SupportedVersions []Revision                 `json:"supportedVersions"`
		Capabilities      Capabilities               `json:"capabilities"`
		Instructions      string                     `json:"instructions"`
		Meta              map[string]json.RawMessage `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	s := &ServerInfo{Capabilities: w.Capabilities, Instructions: w.Instructions, Revisions: w.SupportedVersions}
	if info := w.Meta[engine.MetaServerInfo]; info != nil {
		if err := jsonx.Unmarshal(info, &s.Implementation); err != nil {
			return nil, fmt.Errorf("server info: %w", err)
		}
	}
	return s, nil
}
