package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// members are members of a message or a call that the API does not have. They go back to the server that
// sent them, which may refuse the conversation without them: signatures of calls (extra_content of
// Gemini) and thoughts (reasoning_content of DeepSeek, reasoning_details of OpenRouter).
type members map[string]json.RawMessage

// unknown returns the members of an object besides the known ones and those that are null.
func unknown(object []byte, known ...string) members {
	var found members
	for name, value := range jsonx.Members(object) {
		if string(value) == "null" || slices.Contains(known, string(name)) {
			continue
		}
		if found == nil {
			found = members{}
		}
		found[string(name)] = slices.Clone(value)
	}
	return found
}

// opaque returns members in the form that a conversation stores, or nil if there are none. The
// providers' own servers have nothing to send back there, and refuse members that are unknown to them.
func (c *client) opaque(m members, text string) *model.Opaque {
	if len(m) == 0 || c.official {
		return nil
	}
	data, err := encode(m)
	if err != nil {
		return nil
	}
	return &model.Opaque{Provider: c.provider, Text: text, Data: data}
}

// kept returns the members in o, or nil if they are from another server.
func (c *client) kept(o *model.Opaque) (m members) {
	if o != nil && o.Provider == c.provider {
		_ = decode(o.Data, &m) // a conversation that was edited may have anything there
	}
	return m
}

// addTo returns an object with the members that it does not have yet.
func (m members) addTo(object []byte) []byte {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if _, there := jsonx.Lookup(object, name); !there {
			object = jsonx.With(nil, object, name, m[name])
		}
	}
	return object
}

// thoughts are the members in which servers send thoughts as text: DeepSeek, Kimi, Qwen and vLLM; and
// OpenRouter and Ollama.
var thoughts = []string{"reasoning_content", "reasoning"}

// pieces joins the members of the pieces of a message: texts and lists of objects grow, other values
// are replaced.
type pieces struct {
	texts map[string]*strings.Builder
	lists map[string][]*detail
	last  members
}

// detail is an item of a list. Its pieces have the same type and index; those of thinking_blocks (LiteLLM)
// have no index, and a signature in the last one.
type detail struct {
	members members
	text    map[string]*strings.Builder // of the members that come in pieces
}

// add adds the members of a piece and returns the thought in them. Some servers send the same thought
// in two members; the first one is kept.
func (p *pieces) add(piece members) (thought string) {
	if p.last == nil && len(piece) > 0 {
		*p = pieces{map[string]*strings.Builder{}, map[string][]*detail{}, members{}}
	}
	for _, name := range thoughts {
		var text string
		switch {
		case json.Unmarshal(piece[name], &text) != nil:
		case thought == "":
			thought = text
		default:
			delete(piece, name)
		}
	}
	for name, value := range piece {
		var items []members
		switch {
		case value[0] == '"':
			write(p.texts, name, value)
		case value[0] == '[' && json.Unmarshal(value, &items) == nil:
			for _, item := range items {
				p.item(name, item)
			}
		default:
			p.last[name] = value
		}
	}
	return thought
}

// write appends a JSON string to the text of a name.
func write(texts map[string]*strings.Builder, name string, value json.RawMessage) {
	var text string
	_ = json.Unmarshal(value, &text)
	if texts[name] == nil {
		texts[name] = &strings.Builder{}
	}
	texts[name].WriteString(text)
}

func (p *pieces) item(list string, piece members) {
	same := func(d *detail, member string) bool { return string(d.members[member]) == string(piece[member]) }
	var d *detail
	all := p.lists[list]
	goesOn := func(d *detail) bool {
		return piece["index"] != nil || list == "thinking_blocks" && slices.Contains([]string{"", "null", `""`}, string(d.members["signature"]))
	}
	if n := len(all); n > 0 && goesOn(all[n-1]) && same(all[n-1], "index") && same(all[n-1], "type") {
		d = all[n-1]
	} else {
		d = &detail{members{}, map[string]*strings.Builder{}}
		p.lists[list] = append(all, d)
	}
	for name, value := range piece {
		switch {
		case string(value) == "null" && d.members[name] != nil:
		case slices.Contains([]string{"text", "thinking", "summary", "data"}, name) && value[0] == '"':
			write(d.text, name, value)
		default:
			d.members[name] = value
		}
	}
}

// whole returns the members of the whole message, and the thoughts in them.
func (p *pieces) whole() (m members, thought string) {
	m = maps.Clone(p.last)
	for name, text := range p.texts {
		if text.Len() > 0 {
			m[name], _ = encode(text.String())
		}
	}
	for name, list := range p.lists {
		var items []members
		for _, d := range list {
			for member, text := range d.text {
				d.members[member], _ = encode(text.String())
			}
			items = append(items, d.members)
		}
		m[name], _ = encode(items)
	}
	for _, name := range thoughts {
		if text := p.texts[name]; text != nil {
			thought += text.String()
		}
	}
	return m, thought
}
