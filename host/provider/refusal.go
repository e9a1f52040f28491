package provider

import (
	"regexp"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/providers"
)

// refusals are members that the server of a model refuses in requests, such as a temperature, or
// reasoning in messages, and forms of messages. Later requests leave them out. A maximum of tokens has
// two names in Chat Completions: if one is refused, the other is sent. The table of providers has those
// that are known from the beginning.
type refusals map[string]bool

const (
	maxRefusals = 5 // of one request

	// noThoughts is a refusal of messages that have calls and lack their thoughts, because another
	// model wrote them.
	noThoughts = "messages without reasoning_content"
)

// essential are members without which a request is another one. A member that the caller has set is
// essential, too.
var essential = []string{"model", "messages", "input", "system", "instructions", "tools", "stream", "store"}

// tokenNames are the two names for the maximum of tokens.
var tokenNames = [2]string{"max_tokens", "max_completion_tokens"}

// apply returns a request without what is refused at its top.
func (r refusals) apply(request []byte) []byte {
	for i, name := range tokenNames {
		other := tokenNames[1-i]
		if value, has := jsonx.Lookup(request, name); has && r[name] && !r[other] {
			return r.apply(jsonx.With(nil, jsonx.Without(nil, request, name), other, value))
		}
	}
	for name := range r {
		request = jsonx.Without(nil, request, name)
	}
	return request
}

// refusal returns the member of a request that an error refuses, or "".
func (x *exchange) refusal(request []byte, refused refusals, e *model.Error) string {
	says := strings.ToLower(e.Message)
	if e.Kind != model.Rejected {
		return ""
	}
	if strings.Contains(says, "reasoning_content") && containsAny(says, []string{"missing", "required", "must be"}) {
		return noThoughts
	}
	switch {
	case strings.Contains(says, "tool call id") && strings.Contains(says, "length of 9"):
		return providers.LongIDs
	case strings.Contains(says, "unexpected role 'user' after role 'tool'"):
		return providers.UserAfterResults
	}
	if name := x.refusedEffort(request, refused, says); name != "" {
		return name
	}
	if !containsAny(says, []string{"unsupported", "not support", "unrecogni", "unknown", "unexpected", "extra", "not permitted", "not allowed", "deprecated", "cannot find field", "unavailable", "not available"}) {
		return ""
	}
	first, at := "", len(says)
	consider := func(name string) {
		if name == "" {
			return
		}
		if place := wholeWord(says, name); place >= 0 && place < at {
			first, at = name, place
		}
	}
	for name := range jsonx.Members(request) {
		_, set := x.more[string(name)]
		if set || slices.Contains(essential, string(name)) || string(name) == tokenNames[0] && x.path == "messages" { // which that API requires
			continue
		}
		consider(string(name))
	}
	messages, _ := jsonx.Lookup(request, "messages")
	for m := range jsonx.Elements(messages) {
		for name := range unknown(m, "role", "content", "tool_calls", "tool_call_id") {
			consider(name)
		}
		calls, _ := jsonx.Lookup(m, "tool_calls")
		for call := range jsonx.Elements(calls) {
			for name := range unknown(call, "id", "type", "function") {
				consider(name)
			}
		}
	}
	return first
}

// wholeWord returns the place of a word in a text of lower case, or -1.
func wholeWord(says, word string) int {
	place := regexp.MustCompile(`\b` + regexp.QuoteMeta(strings.ToLower(word)) + `\b`).FindStringIndex(says)
	if place == nil {
		return -1
	}
	return place[0]
}

// inWords returns a system prompt that asks for an answer of a schema, for servers that cannot enforce it.
func inWords(system string, schema []byte) string {
	return strings.TrimSpace(system + "\n\nWhen you answer without calling a tool, your answer is JSON and nothing else, with no fence around it, and fits this JSON Schema: " + string(schema))
}
