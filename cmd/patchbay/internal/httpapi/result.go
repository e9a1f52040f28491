package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// result answers with the result of a tool.
func result(w http.ResponseWriter, raw json.RawMessage, asked http.Header) {
	content, _ := jsonx.Lookup(raw, "content")
	var blocks []json.RawMessage
	var words []string
	for b := range jsonx.Elements(content) {
		blocks = append(blocks, b)
		kind, _ := jsonx.Lookup(b, "type")
		said, _ := jsonx.Lookup(b, "text")
		if s, err := jsonx.Unquote(said); err == nil && string(kind) == `"text"` {
			words = append(words, s)
		}
	}
	structured, _ := jsonx.Lookup(raw, "structuredContent")
	failed, _ := jsonx.Lookup(raw, "isError")
	switch {
	case string(failed) == "true":
		p := &problem{Title: "The tool has failed", Status: http.StatusUnprocessableEntity, Detail: text.Clip(strings.Join(words, "\n"), maxWords)}
		if len(words) < len(blocks) {
			p.Content = blocks
		}
		p.write(w)
	case structured != nil && string(structured) != "null":
		write(w, http.StatusOK, "application/json", structured)
	case len(blocks) == 1 && len(words) == 1 && prefersText(asked):
		write(w, http.StatusOK, "text/plain; charset=utf-8", []byte(words[0]))
	default:
		if jsonx.KindOf(content) != '[' {
			content = []byte("[]")
		}
		write(w, http.StatusOK, "application/json", append(append([]byte(`{"content":`), content...), '}'))
	}
}

// prefersText reports whether a caller accepts plain text at least as well as JSON (RFC 9110, section 12.5.1).
func prefersText(asked http.Header) bool {
	plain, isJSON := quality(asked, "text", "plain"), quality(asked, "application", "json")
	return plain > 0 && plain >= isJSON
}

// quality returns how well a caller accepts a media type, from 0 to 1.
func quality(asked http.Header, kind, sub string) float64 {
	values := asked["Accept"]
	if len(values) == 0 {
		return 1
	}
	best, q := 0, 0.0 // the most specific range counts
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(part, ";")
			exact := 0
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "*/*":
				exact = 1
			case kind + "/*":
				exact = 2
			case kind + "/" + sub:
				exact = 3
			}
			if exact <= best {
				continue
			}
			best, q = exact, 1
			for p := range strings.SplitSeq(params, ";") {
				if name, v, ok := strings.Cut(strings.TrimSpace(p), "="); ok && strings.EqualFold(name, "q") {
					q, _ = strconv.ParseFloat(v, 64) // an invalid one counts as 0
				}
			}
		}
	}
	return q
}
