package mcp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Content is one block of a result, prompt message or sampling message: a
// [TextContent], [ImageContent], [AudioContent], [ResourceLink],
// [EmbeddedResource], [ToolUseContent], [ToolResultContent], or [RawContent] for a kind that this
// package does not know. Content that the caller's revision lacks is replaced by the nearest
// equivalent, for instance a resource link by text before 2025-06-18.
type Content interface {
	// appendJSON appends the block and returns the newer features it uses.
	appendJSON(dst []byte) ([]byte, revision.Feature)
}

// Annotations say who content is for and how much it matters
// (2026-07-28, server/resources, Annotations).
type Annotations struct {
	Audience     []string `json:"audience,omitempty"` // "user", "assistant"
	Priority     *float64 `json:"priority,omitempty"` // 0 to 1
	LastModified string   `json:"lastModified,omitempty"`
}

// Meta is the _meta object of a request, result, feature or content block.
type Meta map[string]json.RawMessage

// Text makes a [TextContent].
func Text(s string) Content { return TextContent{Text: s} }

// TextContent is plain text.
type TextContent struct {
	Text        string
	Annotations *Annotations
	Meta        Meta
}

// ImageContent is an image. Data holds its bytes, not their base64 form. An empty MIMEType is
// detected from the bytes.
type ImageContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        Meta
}

// AudioContent is a sound (since 2025-03-26). Data holds its bytes, not their base64 form. An empty
// MIMEType is detected from the bytes.
type AudioContent struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        Meta
}

// ResourceLink names a resource that the caller may read (since 2025-06-18).
type ResourceLink struct {
	Resource
}

// EmbeddedResource carries the contents of a resource. An empty MIME type is sent as text/plain, or
// as application/octet-stream for a blob.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        Meta
}

// ToolUseContent is a model's request to call a tool, in sampling (since 2025-11-25).
type ToolUseContent struct {
	ID    string
	Name  string
	Input json.RawMessage
	Meta  Meta
}

// ToolResultContent is the result of a tool call, in sampling (since 2025-11-25).
type ToolResultContent struct {
	ToolUseID string
	Result    ToolResult
}

// RawContent is the JSON of a block whose type this package does not know.
type RawContent json.RawMessage

func (c TextContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"type":"text","text":`...)
	dst = jsonx.AppendString(dst, c.Text)
	return appendTail(dst, c.Annotations, c.Meta)
}

func (c ImageContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	return appendBlob(dst, "image", c.Data, c.MIMEType, c.Annotations, c.Meta)
}

func (c AudioContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst, uses := appendBlob(dst, "audio", c.Data, c.MIMEType, c.Annotations, c.Meta)
	return dst, uses | revision.Audio
}

func (c ResourceLink) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"type":"resource_link",`...)
	rest := encode(c.Resource)
	if c.Resource.Extra["type"] != nil {
		rest = jsonx.Without(nil, rest, "type") // of the resource; the block has its own
	}
	return append(dst, rest[1:]...), revision.ResourceLink | revision.Unknown
}

func (c EmbeddedResource) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"type":"resource","resource":`...)
	r := c.Resource
	if r.MIMEType == "" {
		r.MIMEType = "text/plain"
		if r.Blob != nil {
			r.MIMEType = "application/octet-stream"
		}
	}
	dst = append(dst, encode(r)...)
	dst, uses := appendTail(dst, c.Annotations, c.Meta)
	if c.Resource.Meta != nil {
		uses |= revision.Unknown
	}
	return dst, uses
}

func (c ToolUseContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"type":"tool_use","id":`...)
	dst = jsonx.AppendString(dst, c.ID)
	dst = append(dst, `,"name":`...)
	dst = jsonx.AppendString(dst, c.Name)
	dst = append(dst, `,"input":`...)
	mustBeJSON("the input of a tool use", jsonx.OrObject(c.Input))
	dst = jsonx.AppendLine(dst, jsonx.OrObject(c.Input))
	dst, uses := appendTail(dst, nil, c.Meta)
	return dst, uses | revision.SampleTools
}

func (c ToolResultContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	dst = append(dst, `{"type":"tool_result","toolUseId":`...)
	dst = jsonx.AppendString(dst, c.ToolUseID)
	dst = append(dst, ',')
	body, uses := c.Result.appendJSON(nil)
	dst = append(dst, body[1:]...)
	return dst, uses | revision.SampleTools
}

func (c RawContent) appendJSON(dst []byte) ([]byte, revision.Feature) {
	raw := jsonx.OrObject(json.RawMessage(c))
	mustBeJSON("raw content", raw)
	if jsonx.KindOf(raw) != '{' {
		panic(errors.New("mcp: raw content of a handler: want an object"))
	}
	return append(dst, raw...), revision.Unknown
}

func appendBlob(dst []byte, kind string, data []byte, mime string, a *Annotations, m Meta) ([]byte, revision.Feature) {
	if mime == "" {
		mime = http.DetectContentType(data)
	}
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = jsonx.AppendString(dst, mime)
	return appendTail(dst, a, m)
}

// appendTail ends a block with its annotations and _meta.
func appendTail(dst []byte, a *Annotations, m Meta) ([]byte, revision.Feature) {
	var uses revision.Feature
	if a != nil {
		dst = append(dst, `,"annotations":`...)
		dst = append(dst, encode(a)...)
		if a.LastModified != "" {
			uses |= revision.LastModified
		}
	}
	if m != nil {
		dst = append(dst, `,"_meta":`...)
		dst = append(dst, encode(m)...)
		uses |= revision.ContentMeta
	}
	return append(dst, '}'), uses
}

// appendContents appends an array of blocks.
func appendContents(dst []byte, cs []Content) ([]byte, revision.Feature) {
	var uses revision.Feature
	dst = append(dst, '[')
	for i, c := range cs {
		if i > 0 {
			dst = append(dst, ',')
		}
		var u revision.Feature
		dst, u = c.appendJSON(dst)
		uses |= u
	}
	return append(dst, ']'), uses
}

// decodeContent reads one block.
func decodeContent(raw json.RawMessage) (Content, error) {
	if text, ok := plainText(raw); ok {
		return TextContent{Text: text}, nil
	}
	var w struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Data        []byte          `json:"data"`
		MIMEType    string          `json:"mimeType"`
		Resource    json.RawMessage `json:"resource"`
		ID          string          `json:"id"`
		Name        string          `json:"name"`
		Input       json.RawMessage `json:"input"`
		ToolUseID   string          `json:"toolUseId"`
		Annotations *Annotations    `json:"annotations"`
		Meta        Meta            `json:"_meta"`
	}
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("content block: %w", err)
	}
	switch w.Type {
	case "text":
		return TextContent{w.Text, w.Annotations, w.Meta}, nil
	case "image":
		return ImageContent{w.Data, w.MIMEType, w.Annotations, w.Meta}, nil
	case "audio":
		return AudioContent{w.Data, w.MIMEType, w.Annotations, w.Meta}, nil
	case "resource_link":
		var r Resource
		if err := jsonx.Unmarshal(raw, &r); err != nil {
			return nil, fmt.Errorf("resource link: %w", err)
		}
		if delete(r.Extra, "type"); len(r.Extra) == 0 {
			r.Extra = nil
		}
		return ResourceLink{r}, nil
	case "resource":
		var r ResourceContents
		if err := jsonx.Unmarshal(w.Resource, &r); err != nil {
			return nil, fmt.Errorf("embedded resource: %w", err)
		}
		return EmbeddedResource{r, w.Annotations, w.Meta}, nil
	case "tool_use":
		return ToolUseContent{w.ID, w.Name, w.Input, w.Meta}, nil
	case "tool_result":
		res, err := decodeToolResult(raw)
		if err != nil {
			return nil, err
		}
		return ToolResultContent{w.ToolUseID, *res}, nil
	case "":
		return nil, fmt.Errorf("content block has no type")
	}
	return RawContent(append([]byte(nil), raw...)), nil
}

// plainText returns the text of a valid block that has text and nothing else.
func plainText(raw json.RawMessage) (text string, ok bool) {
	typed := false
	for name, v := range jsonx.Members(raw) {
		switch string(name) {
		case "type":
			typed = string(v) == `"text"`
		case "text":
			if ok = jsonx.KindOf(v) == '"'; !ok {
				return "", false
			}
			text, _ = jsonx.Unescaped(v, 0)
		default:
			return "", false
		}
	}
	return text, ok && typed
}

// decodeContents reads an array of blocks, or a single one (sampling allows both).
func decodeContents(raw json.RawMessage) ([]Content, error) {
	if jsonx.KindOf(raw) == '{' {
		c, err := decodeContent(raw)
		if err != nil {
			return nil, err
		}
		return []Content{c}, nil
	}
	switch jsonx.KindOf(raw) {
	case '[':
	case 'n':
		return nil, nil
	default:
		return nil, errors.New("content: want an array")
	}
	out := make([]Content, 0, 1)
	for r := range jsonx.Elements(raw) {
		c, err := decodeContent(r)
		if err != nil {
			return nil, fmt.Errorf("content[%d]: %w", len(out), err)
		}
		out = append(out, c)
	}
	return out, nil
}

// textOf joins the text blocks of cs with newlines.
func textOf(cs []Content) string {
	if len(cs) == 1 {
		t, _ := cs[0].(TextContent)
		return t.Text
	}
	var parts []string
	for _, c := range cs {
		if t, ok := c.(TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// encode marshals a value of this package. It panics if a raw field has invalid JSON, which is a
// mistake of the program; the call then gets an internal error.
func encode(v any) json.RawMessage {
	b, err := jsonx.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("mcp: encode %T: %w", v, err))
	}
	return b
}
