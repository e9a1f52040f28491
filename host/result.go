package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pdftext"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Bounds of media in one result or message; other media are described in words. Providers accept 5
// MB of base64 for an image, and about 20 MB for a request.
const (
	maxImage      = 3_750_000 // bytes, which are 5 MB of base64
	maxMedia      = 14 << 20  // of all
	maxMediaCount = 20

	maxPDFText = 1 << 20 // bytes of the text of a PDF
)

// resultBytes returns how much text of a result the model is given at once: less than the limit if
// its window is small, so that the results of one step take at most half of it.
func (c *Conversation) resultBytes() int {
	most := or(c.h.Limits.ResultBytes, 32<<10)
	if w := c.window(c.model()); w > 0 { // in tokens of about 4 bytes
		most = min(most, max(min(w, 2*w/max(1, int(c.beside.Load()))), 1<<10))
	}
	return most
}

// resultParts converts a result for the model.
func (c *Conversation) resultParts(ctx context.Context, t Tool, res *mcp.ToolResult) []model.Part {
	p := c.presenting(ctx, t.Server)
	for _, block := range res.Content {
		p.block(block)
	}
	p.text(string(unsaid(res.Structured, res.Content)))
	if p.nothing() {
		p.text("[The tool has run and returned nothing.]")
		if res.IsError {
			p = c.presenting(ctx, t.Server)
			p.text("[The tool failed and did not say why.]")
		}
	}
	return p.done("result of " + t.Name)
}

// presenting converts content of a server to parts for the model.
type presenting struct {
	ctx    context.Context // of the conversion
	c      *Conversation
	server string
	takes  model.Info
	parts  []model.Part // consecutive texts are joined
	media  int          // bytes
	count  int          // of media
}

func (c *Conversation) presenting(ctx context.Context, server string) *presenting {
	p := &presenting{ctx: ctx, c: c, server: server}
	if m := c.model(); m != nil {
		p.takes = m.Info()
	}
	return p
}

func (p *presenting) nothing() bool {
	return !slices.ContainsFunc(p.parts, func(part model.Part) bool { return part.Media != nil || strings.TrimSpace(part.Text) != "" })
}

func (p *presenting) text(s string) {
	s = clean(s)
	if s == "" {
		return
	}
	if n := len(p.parts); n > 0 && p.parts[n-1].Media == nil {
		p.parts[n-1].Text += "\n" + s
		return
	}
	p.parts = append(p.parts, model.Part{Text: s})
}

// done returns the parts and cuts long texts. The argument about describes their origin.
func (p *presenting) done(about string) []model.Part {
	room := p.c.resultBytes()
	for i := range p.parts {
		part := &p.parts[i]
		if part.Media != nil {
			continue
		}
		size := len(part.Text)
		part.Text = p.c.cut(part.Text, about, max(room, 200))
		room -= size
	}
	return p.parts
}

// block adds a content block.
func (p *presenting) block(block mcp.Content) {
	switch b := block.(type) {
	case mcp.TextContent:
		p.text(b.Text)
	case mcp.ImageContent:
		p.blob("an image", b.MIMEType, b.Data, "")
	case mcp.AudioContent:
		p.blob("a sound", b.MIMEType, b.Data, "")
	case mcp.EmbeddedResource:
		p.resource(b.Resource)
	case mcp.ResourceLink:
		p.link(b.Resource)
	default:
		p.text(string(blockJSON(block)))
	}
}

// blockJSON returns a content block as it is in a result.
func blockJSON(block mcp.Content) json.RawMessage {
	raw := (&mcp.ToolResult{Content: []mcp.Content{block}}).JSON()
	var r struct{ Content []json.RawMessage }
	if json.Unmarshal(raw, &r) == nil && len(r.Content) == 1 {
		return r.Content[0]
	}
	return raw
}

// resource adds the contents of a resource.
func (p *presenting) resource(r mcp.ResourceContents) {
	if r.Blob == nil && r.Text == "" {
		p.text(fmt.Sprintf("[resource %q%s is empty]", r.URI, typed(r.MIMEType)))
		return
	}
	if r.Blob == nil {
		p.text(fmt.Sprintf("[resource %q%s]\n%s", r.URI, typed(r.MIMEType), r.Text))
		return
	}
	if textual(r.MIMEType) && utf8.Valid(r.Blob) {
		p.text(fmt.Sprintf("[resource %q%s]\n%s", r.URI, typed(r.MIMEType), r.Blob))
		return
	}
	p.text(fmt.Sprintf("[resource %q%s]", r.URI, typed(r.MIMEType)))
	p.blob("its contents", r.MIMEType, r.Blob, r.URI)
}

// link adds a description of a resource and how to read it.
func (p *presenting) link(r mcp.Resource) {
	text := fmt.Sprintf("[link to resource %q%s", r.URI, typed(r.MIMEType))
	if name := cmp.Or(r.Title, r.Name); name != "" && name != r.URI {
		text += ", " + quoted(name)
	}
	if r.Size > 0 {
		text += fmt.Sprintf(", %d bytes", r.Size)
	}
	if r.Description != "" {
		text += ": " + bounded(r.Description, 500)
	}
	p.text(fmt.Sprintf("%s; read_resource with server %q reads it]", text, p.server))
}

// blob adds media, or a description if the model does not support them.
func (p *presenting) blob(what, kind string, data []byte, name string) {
	media := mediaType(kind, data)
	ok, most := false, maxMedia
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		ok, most = p.takes.Images, maxImage
	case "audio/wav", "audio/mpeg":
		ok = p.takes.Audio
	case "application/pdf":
		ok = p.takes.Files
	}
	why := ""
	switch {
	case len(data) == 0:
		why = "is empty"
	case !ok:
		why = "cannot be shown to this model"
	case len(data) > most || p.media+len(data) > maxMedia || p.count == maxMediaCount:
		why = "is too large to be shown to this model"
	}
	if why != "" && media == "application/pdf" && len(data) > 0 {
		text, _, err := pdftext.ForModel(p.ctx, name, data, maxPDFText)
		if err == nil {
			p.text(text)
			return
		}
		why += fmt.Sprintf(", and its text cannot be read: %v", err)
	}
	if why != "" {
		p.text(fmt.Sprintf("[%s of type %s, %d bytes, %s]", what, quoted(cmp.Or(media, "unknown")), len(data), why))
		return
	}
	p.media += len(data)
	p.count++
	p.parts = append(p.parts, model.Part{Media: &model.Media{MIME: media, Data: data, Name: name}})
}

// mediaType returns the type of data. For images the data decide, whatever the server says, because
// providers reject images with a wrong type.
func mediaType(said string, data []byte) string {
	t, _, err := mime.ParseMediaType(said)
	if err != nil {
		t = ""
	}
	looks, _, _ := mime.ParseMediaType(http.DetectContentType(data))
	switch {
	case strings.HasPrefix(looks, "image/") && (t == "" || strings.HasPrefix(t, "image/")):
		return looks
	case t == "" || t == "application/octet-stream":
		t = looks
	}
	switch t {
	case "image/jpg":
		return "image/jpeg"
	case "audio/wave", "audio/x-wav", "audio/vnd.wave":
		return "audio/wav"
	case "audio/mp3":
		return "audio/mpeg"
	case "application/x-pdf":
		return "application/pdf"
	}
	return t
}

// textual reports whether a MIME type stands for text.
func textual(kind string) bool {
	t, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return false
	}
	switch t {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/toml", "application/sql", "application/x-ndjson", "application/jsonl":
		return true
	}
	return strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "+xml")
}

// typed returns a MIME type for use in a sentence.
func typed(kind string) string {
	if kind == "" {
		return ""
	}
	return " (" + bounded(kind, 100) + ")"
}

// clean returns valid UTF-8 without the character 0, which providers reject.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

const (
	maxCompared = 16 << 20 // bytes of JSON that are parsed to compare it
	longValue   = 200      // bytes of a value that cannot stand in a text by chance
)

// unsaid returns what a structured result adds to the content of the result, which is nil if the content
// has all of it. Servers repeat the content as the only member ("result" of FastMCP, "content" of the
// filesystem server), or as a long one beside others, which is left out then.
func unsaid(structured json.RawMessage, blocks []mcp.Content) json.RawMessage {
	if structured == nil || repeated(structured, blocks) {
		return nil
	}
	members, left := 0, 0
	for range jsonx.Members(structured) {
		members++
	}
	rest := jsonx.Filter(nil, structured, func(_ []byte, value json.RawMessage) bool {
		if (members == 1 || len(value) > longValue) && repeated(value, blocks) {
			return false
		}
		left++
		return true
	})
	switch {
	case left == members: // nothing is repeated, or it is not an object
		return structured
	case left == 0:
		return nil
	}
	return rest
}

// repeated reports whether a value is that of a content block, or an array of those of all blocks.
func repeated(value json.RawMessage, blocks []mcp.Content) bool {
	if slices.ContainsFunc(blocks, func(b mcp.Content) bool { return repeats(b, value) }) {
		return true
	}
	n := 0
	for item := range jsonx.Elements(value) {
		if n == len(blocks) || !repeats(blocks[n], item) {
			return false
		}
		n++
	}
	return n > 0 && n == len(blocks)
}

// repeats reports whether a block is the value: a text that is the string or its JSON, or the block itself.
func repeats(b mcp.Content, value json.RawMessage) bool {
	if t, ok := b.(mcp.TextContent); ok {
		if word, err := jsonx.Unquote(value); err == nil && strings.TrimSpace(word) == strings.TrimSpace(t.Text) {
			return true
		}
		text := bytes.TrimSpace([]byte(t.Text))
		if bytes.Equal(text, value) || jsonx.KindOf(text) == jsonx.KindOf(value) && same(text, value) {
			return true
		}
	}
	return jsonx.KindOf(value) == '{' && same(blockJSON(b), value)
}

// same reports whether two texts are the same JSON.
func same(a, b []byte) bool {
	return len(a)+len(b) <= maxCompared && bytes.Equal(jsonx.Canonical(a), jsonx.Canonical(b))
}

// readResource is the tool that reads resources. A call of it counts as a call of a read-only tool
// of the server, and is approved like one.
func (c *Conversation) readResource() Tool {
	return Tool{Name: "read_resource", Tool: &mcp.Tool{
		Name:        "read_resource",
		Description: "Reads a resource of a server, for instance one that a result links to.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"server":{"type":"string","description":"the name of the server"},"uri":{"type":"string"}},"required":["server","uri"]}`),
	}, own: own{as: func(args json.RawMessage) (Tool, json.RawMessage, error) {
		var in struct{ Server, URI string }
		if err := json.Unmarshal(args, &in); err != nil {
			return Tool{}, nil, fmt.Errorf("the arguments make no sense: %w", err)
		}
		c.h.mu.Lock()
		s := c.h.find(in.Server)
		off := s != nil && s.off
		c.h.mu.Unlock()
		if s == nil || off {
			return Tool{}, nil, fmt.Errorf("there is no server %s", quoted(in.Server))
		}
		args, err := json.Marshal(map[string]string{"uri": in.URI})
		return c.reading(s, in.URI), args, err
	}}}
}

// reading presents the reading of a resource as a tool of its server. Its name contains "/", which
// names of tools cannot, so it collides with none.
func (c *Conversation) reading(s *server, uri string) Tool {
	yes := true
	return Tool{Name: "read_resource", Server: s.Name, Tool: &mcp.Tool{
		Name:        "resources/read",
		Description: "Reads a resource of the server.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`),
		Annotations: &mcp.ToolAnnotations{ReadOnly: &yes, Idempotent: &yes},
	}, own: own{do: func(ctx context.Context, _ json.RawMessage) ([]model.Part, error) { return c.read(ctx, s, uri) }}}
}

// read reads a resource for the model.
func (c *Conversation) read(ctx context.Context, s *server, uri string) ([]model.Part, error) {
	var res *mcp.ReadResult
	session, err := c.session(s)
	if err == nil {
		res, err = session.ReadResource(ctx, uri)
		err = s.orGone(err)
	}
	if err != nil {
		return nil, fmt.Errorf("resource %s of server %s: %w", quoted(uri), quoted(s.Name), err)
	}
	p := c.presenting(ctx, s.Name)
	for _, contents := range res.Contents {
		p.resource(contents)
	}
	if p.nothing() {
		p.text(fmt.Sprintf("[resource %s is empty]", quoted(uri)))
	}
	return p.done("resource " + quoted(uri)), nil
}
