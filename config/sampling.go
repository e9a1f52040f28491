package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/providers"
)

// samplingMember is a member of a model that chooses how it samples.
type samplingMember struct {
	name, other string            // other is the spelling of the APIs, which is accepted too
	from, to    float64           // the range of a number; both 0: texts
	whole       bool              // it is a whole number
	sent        map[string]string // by API: the name in it; missing: the API does not have it
}

// chats returns the name of a member in Chat Completions, and in the Messages API if that has it.
func chats(name, messages string) map[string]string {
	sent := map[string]string{"chat": name, "text": name}
	if messages != "" {
		sent["messages"] = messages
	}
	return sent
}

// every returns the name of a member that all APIs have.
func every(name string) map[string]string {
	sent := chats(name, name)
	sent["responses"] = name
	return sent
}

var samplingMembers = []samplingMember{
	{name: "temperature", to: 2, sent: every("temperature")},
	{name: "topP", other: "top_p", to: 1, sent: every("top_p")},
	{name: "topK", other: "top_k", from: 1, to: 1e6, whole: true, sent: chats("top_k", "top_k")},
	{name: "seed", from: -1 << 53, to: 1 << 53, whole: true, sent: chats("seed", "")},
	{name: "presencePenalty", other: "presence_penalty", from: -2, to: 2, sent: chats("presence_penalty", "")},
	{name: "frequencyPenalty", other: "frequency_penalty", from: -2, to: 2, sent: chats("frequency_penalty", "")},
	{name: "stop", other: "stop_sequences", sent: chats("stop", "stop_sequences")},
}

// samplingNames returns the names of the members, and their other spellings.
func samplingNames() (names, others []string) {
	for _, s := range samplingMembers {
		names = append(names, s.name)
		if s.other != "" {
			others = append(others, s.other)
		}
	}
	return append(names, "parameters"), others
}

// sampling reads the members of a model that choose how it samples, and "parameters".
func (l *loader) sampling(members map[string]*node, m *Model) {
	p := providers.Named(m.Provider)
	if p == nil {
		return // which is another fault
	}
	set := make(map[string]string) // the member that set a name of the API
	add := func(pos int, member, sent string, value []byte) {
		if before, there := set[sent]; there {
			l.fail(pos, fmt.Sprintf("%q and %q set the same", before, member), "keep one of them")
			return
		}
		if m.Parameters == nil {
			m.Parameters = make(map[string]json.RawMessage)
		}
		set[sent], m.Parameters[sent] = member, value
	}
	for _, s := range samplingMembers {
		for _, name := range []string{s.name, s.other} {
			n := members[name]
			if n == nil || name == "" {
				continue
			}
			value, fix := s.read(n, p.API)
			switch sent := s.sent[p.API]; {
			case value == nil:
				l.fail(n.pos, quote(name)+" of a model has a wrong value", fix)
			case sent != "":
				add(n.pos, name, cmp.Or(p.Members[sent], sent), value)
			default:
				l.fail(n.pos, "the API of "+quote(m.Provider)+" has no "+quote(name), "remove it")
			}
		}
	}
	n := members["parameters"]
	if n == nil {
		return
	}
	if n.kind != '{' {
		l.fail(n.pos, `"parameters" is not an object`, `write members of the API's request, such as {"reasoning_effort": "low"}`)
		return
	}
	seen, text := make(map[string]int), strip(l.data)
	for _, p := range n.members {
		if !l.twice(seen, p, "parameter") {
			add(p.pos, "parameters."+p.name, p.name, compact(text[p.value.pos:p.value.end]))
		}
	}
}

// read returns the value of the member as JSON; nil and how to write it, if it is wrong.
func (s samplingMember) read(n *node, api string) (value []byte, fix string) {
	if s.from == 0 && s.to == 0 {
		items := n.items
		if n.kind != '[' {
			items = []*node{n}
		}
		var texts []string
		for _, item := range items {
			if item.kind != '"' || item.text == "" {
				return nil, `write the texts at which an answer ends, such as ["END"]`
			}
			texts = append(texts, item.text)
		}
		value, err := json.Marshal(texts)
		if err != nil || len(texts) == 0 {
			return nil, `write a text, such as "END"`
		}
		return value, ""
	}
	to := s.to
	if s.name == "temperature" && api == "messages" {
		to = 1
	}
	number, err := strconv.ParseFloat(n.text, 64)
	if n.kind != '0' || err != nil || number < s.from || number > to || s.whole && strings.ContainsAny(n.text, ".eE") {
		kind := "number"
		if s.whole {
			kind = "whole number"
		}
		return nil, fmt.Sprintf("write a %s from %s to %s without quotes", kind, strconv.FormatFloat(s.from, 'f', -1, 64), strconv.FormatFloat(to, 'f', -1, 64))
	}
	return []byte(n.text), ""
}
