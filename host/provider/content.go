package provider

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/pdftext"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// form is the form in which a medium is sent to a model.
type form int

const (
	asText form = iota // a text in place of the medium
	asImage
	asAudio
	asFile
)

// formOf returns the form in which the model accepts a medium.
func (c *client) formOf(m *model.Media) form {
	switch {
	case c.info.Images && slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, m.MIME):
		return asImage
	case c.info.Audio && audioFormat(m.MIME) != "":
		return asAudio
	case c.info.Files && m.MIME == "application/pdf":
		return asFile
	}
	return asText
}

func audioFormat(mime string) string {
	switch mime {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

// maxPDFText is the text of a PDF, in bytes, that a model gets that does not take the file.
const maxPDFText = 256 << 10

// texts are those of the last PDFs, since each request of a conversation has them again.
var texts struct {
	sync.Mutex
	last [8]struct {
		sum  [sha256.Size]byte
		text string
	}
	next int
}

// pdfText returns the text of a PDF for a model, or why there is none.
func pdfText(m *model.Media) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", m.Name)
	h.Write(m.Data)
	sum := [sha256.Size]byte(h.Sum(nil))
	texts.Lock()
	defer texts.Unlock()
	for _, t := range texts.last {
		if t.sum == sum {
			return t.text
		}
	}
	text, _, err := pdftext.ForModel(context.Background(), m.Name, m.Data, maxPDFText)
	if err != nil {
		text = fmt.Sprintf("[%s is left out here: the model does not take it, and its text cannot be read: %v]", pdftext.Title(m.Name), err)
	}
	texts.last[texts.next].sum, texts.last[texts.next].text = sum, text
	texts.next = (texts.next + 1) % len(texts.last)
	return text
}

// mediaText returns the text that replaces a medium that the model does not accept. Text files
// are included unchanged.
func mediaText(m *model.Media) string {
	if m.MIME == "application/pdf" {
		return pdfText(m)
	}
	name := m.Name
	if name != "" {
		name = " " + fmt.Sprintf("%q", name)
	}
	if strings.HasPrefix(m.MIME, "text/") || m.MIME == "application/json" {
		return fmt.Sprintf("[file%s of type %s]\n%s", name, m.MIME, strings.ToValidUTF8(string(m.Data), "\uFFFD"))
	}
	return fmt.Sprintf("[a file%s of type %s and %d bytes is left out here: the model does not take it]", name, m.MIME, len(m.Data))
}

func dataURL(m *model.Media) string {
	return "data:" + m.MIME + ";base64," + base64.StdEncoding.EncodeToString(m.Data)
}

func fileName(m *model.Media) string {
	if m.Name != "" {
		return m.Name
	}
	return "file.pdf"
}

// partition splits a user message into results, in order, and all other parts.
func partition(parts []model.Part) (results []*model.Result, others []model.Part) {
	for _, p := range parts {
		if p.Result != nil {
			results = append(results, p.Result)
		} else {
			others = append(others, p)
		}
	}
	return results, others
}

// resultText returns the text of a result for APIs that accept only text there, and the media to
// send after it.
func (c *client) resultText(r *model.Result) (text string, media []model.Part) {
	var b strings.Builder
	for i, p := range r.Parts {
		if i > 0 && b.Len() > 0 {
			b.WriteByte('\n')
		}
		switch {
		case p.Media == nil:
			b.WriteString(p.Text)
		case c.formOf(p.Media) == asText:
			b.WriteString(mediaText(p.Media))
		default:
			fmt.Fprintf(&b, "[%s: it follows the results]", p.Media.MIME)
			media = append(media, model.Part{Text: fmt.Sprintf("From the result of %s:", toolName(r.Name))}, p)
		}
	}
	if b.Len() == 0 {
		return "(empty)", media
	}
	return b.String(), media
}

// callID returns the id of a call in a form that every API accepts. The conversation may come
// from another API.
func callID(id string) string {
	if id != "" && len(id) <= 40 && plain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// callID returns the id of a call in the form that the server accepts.
func (r refusals) callID(id string) string {
	if !r[providers.LongIDs] || len(id) == 9 && plain(id) && !strings.ContainsAny(id, "_-") {
		return callID(id)
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:9]
}

// toolName returns a name in a form that every API accepts, because models call tools that do not
// exist.
func toolName(name string) string {
	if name != "" && len(name) <= 64 && plain(name) {
		return name
	}
	clean := strings.Map(func(r rune) rune {
		if plain(string(r)) {
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), 64)]
}

func plain(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-' {
			return false
		}
	}
	return true
}

// object returns the arguments of a call as the object that every API requires.
func object(arguments json.RawMessage) json.RawMessage {
	if isObject(arguments) {
		return arguments
	}
	if !json.Valid(arguments) {
		arguments = model.Arguments(string(arguments))
	}
	wrapped, _ := json.Marshal(map[string]json.RawMessage{"malformed": arguments})
	return wrapped
}

// isObject reports whether some JSON is an object.
func isObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil
}

// written is the text of a call's arguments. The APIs send a string of JSON; some servers send
// the object itself.
type written string

func (w *written) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*w = written(text)
	return nil
}

// settle converts the arguments of the calls of an answer. From an answer that was too long it
// removes incomplete calls: those whose arguments are missing or not an object.
func settle(resp *model.Response) {
	resp.Message.Parts = slices.DeleteFunc(resp.Message.Parts, func(p model.Part) bool {
		if p.Call == nil {
			return false
		}
		written := p.Call.Arguments
		p.Call.Arguments = model.Arguments(string(written))
		return resp.Stop == model.StopLength && !isObject(written)
	})
}
