// Package block handles the content blocks of results for people: their text and bytes, a
// description of blocks without text, and the file names that bytes are saved under. A block of an
// unknown kind is described by its JSON.
package block

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Block is one content block, of a known or unknown kind.
type Block struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Data        []byte          `json:"data"`
	MIMEType    string          `json:"mimeType"`
	URI         string          `json:"uri"`
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Resource    *Contents       `json:"resource"`
	Raw         json.RawMessage `json:"-"`
}

// Of returns the blocks of the result of a tool: its content and, if that has no text, its structured content as
// text. It calls bad for each block that cannot be read, which is then of the type "unreadable".
func Of(result json.RawMessage, bad func(index int, err error)) (blocks []*Block) {
	list, _ := jsonx.Lookup(result, "content")
	hasText := false
	for item := range jsonx.Elements(list) {
		b, err := Decode(item)
		if err != nil {
			bad(len(blocks), err)
			b = &Block{Type: "unreadable", Raw: item}
		}
		if _, ok := b.Words(); ok {
			hasText = true
		}
		blocks = append(blocks, b)
	}
	if structured, _ := jsonx.Lookup(result, "structuredContent"); structured != nil && !hasText {
		blocks = append(blocks, &Block{Type: "text", Text: screen.Indented(structured)})
	}
	return blocks
}

// Contents is the contents of a resource.
type Contents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType"`
	Text     *string `json:"text"`
	Blob     []byte  `json:"blob"`
}

// Decode reads a content block.
func Decode(raw json.RawMessage) (*Block, error) {
	b := new(Block)
	if err := jsonx.Unmarshal(raw, b); err != nil {
		return nil, err
	}
	b.Raw = raw
	return b, nil
}

// Blob returns the bytes of a block, or nil if it has none.
func (b *Block) Blob() (data []byte, mime string) {
	switch {
	case (b.Type == "image" || b.Type == "audio") && b.Data != nil:
		return b.Data, b.MIMEType
	case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != nil:
		return b.Resource.Blob, b.Resource.MIMEType
	}
	return nil, ""
}

// Words returns the text of a text block.
func (b *Block) Words() (string, bool) {
	switch {
	case b.Type == "text":
		return b.Text, true
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
		return *b.Resource.Text, true
	}
	return "", false
}

// Describe describes a block in one line.
func (b *Block) Describe() string {
	if data, mime := b.Blob(); data != nil {
		s := fmt.Sprintf("%s, %s", cmp.Or(screen.OneLine(mime), "unknown type"), screen.Bytes(len(data)))
		if b.Type == "resource" {
			return "[blob " + screen.OneLine(b.Resource.URI) + " " + s + "]"
		}
		return "[" + b.Type + " " + s + "]"
	}
	if b.Type == "resource_link" {
		return strings.TrimSpace("[link " + screen.OneLine(b.URI) + "] " + screen.OneLine(screen.About("", cmp.Or(b.Title, b.Name), b.Description)))
	}
	return "[" + screen.OneLine(b.Type) + "] " + screen.OneLine(string(jsonx.Compact(nil, b.Raw)))
}
