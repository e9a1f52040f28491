package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
)

// maxLongTexts bounds the cut texts that a conversation keeps, in bytes. Only the beginning of a
// longer text is kept; older texts make room for new ones.
const maxLongTexts = 16 << 20

// longTexts keeps texts that the model received only in part, for read_more. The zero value is
// empty.
type longTexts struct {
	mu    sync.Mutex
	last  int // number of texts so far
	bytes int
	texts []longText // the oldest first
}

type longText struct {
	id, about, text string
	size            int // in bytes, of the whole text
}

func (s *longTexts) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last == 0
}

// put keeps a text, and returns its id.
func (s *longTexts) put(about, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	t := longText{fmt.Sprintf("t%d", s.last), about, strings.Clone(head(text, maxLongTexts)), len(text)}
	s.texts = append(s.texts, t)
	for s.bytes += len(t.text); s.bytes > maxLongTexts; s.texts = s.texts[1:] {
		s.bytes -= len(s.texts[0].text)
	}
	return t.id
}

func (s *longTexts) get(id string) (longText, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.texts {
		if t.id == id {
			return t, nil
		}
	}
	var n int
	if _, err := fmt.Sscanf(id, "t%d", &n); err == nil && 0 < n && n <= s.last {
		return longText{}, fmt.Errorf("text %s was dropped to make room for newer ones; make the call again", quoted(id))
	}
	return longText{}, fmt.Errorf("unknown text %s; a cut text names its id", quoted(id))
}

// cut returns a text, or its beginning and a note on how to read the rest.
func (c *Conversation) cut(text, about string, most int) string {
	if len(text) <= most {
		return text
	}
	shown := head(text, most)
	id := c.long.put(about, text)
	return fmt.Sprintf("%s\n[cut: this was bytes 0 to %d of %d; read_more with id %q and offset %d goes on]", shown, len(shown), len(text), id, len(shown))
}

// head returns the beginning of a text, at most that many bytes. It ends after a line if that costs
// less than a quarter of it, and never within a rune.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	text = text[:most]
	if line := strings.LastIndexByte(text, '\n'); line >= most*3/4 {
		text = text[:line+1]
	}
	return text
}

// readMore is the tool that reads the rest of a text that was cut.
func (c *Conversation) readMore() Tool {
	return Tool{Name: "read_more", Tool: &mcp.Tool{
		Name:        "read_more",
		Description: "Continues a text that was cut because it was too long. The cut text names its id and the offset.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"},"offset":{"type":"integer","minimum":0,"description":"in bytes"}},"required":["id"]}`),
	}, own: own{do: func(_ context.Context, args json.RawMessage) ([]model.Part, error) {
		var in struct {
			ID     string
			Offset int
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		t, err := c.long.get(in.ID)
		switch {
		case err != nil:
			return nil, err
		case in.Offset < 0:
			return nil, errors.New("the offset is negative; it counts bytes from the beginning, which is 0")
		case in.Offset >= len(t.text) && len(t.text) < t.size:
			return nil, fmt.Errorf("only the first %d of %d bytes are kept; make the call again, for less", len(t.text), t.size)
		case in.Offset >= len(t.text):
			return words(fmt.Sprintf("[the end: it has %d bytes]", t.size)), nil
		}
		from := in.Offset
		for from < len(t.text) && !utf8.RuneStart(t.text[from]) {
			from++
		}
		text := head(t.text[from:], c.resultBytes())
		to := from + len(text)
		after := fmt.Sprintf("offset %d goes on", to)
		if to == t.size {
			after = "that was the end"
		}
		return words(fmt.Sprintf("%s\n[bytes %d to %d of %d of %s; %s]", text, from, to, t.size, t.about, after)), nil
	}}}
}
