// Package mention defines how a person mentions resources, prompts and tools of servers in a
// message to a model:
//
//   - @server:uri attaches a resource. A URI with spaces is written in double quotes.
//   - /server:prompt name=value ... at the beginning stands for the messages of a prompt. Values
//     with spaces are written in double quotes. Words that are not name=value are together the
//     value of the only argument that is not given.
//   - #tool makes the model begin with a tool. The tool is named as the model knows it, as
//     server/tool, or by its own name if only one server has a tool of that name.
//
// A mention begins a word, and "@" and "/" are followed by the name of a server. Everything else is
// plain text.
//
// The package parses such texts ([Server], [Resources], [Words], [Arguments]) and completes them
// ([Complete]). It does not contact servers: a [Source] provides what can be mentioned.
package mention

import (
	"slices"
	"strings"
)

// Server returns the server that a mention at the beginning of text names, and the text after its
// colon. The argument sign is '@' or '/'. Names may contain colons and spaces; the longest match
// counts. If the text does not begin with a mention, found is empty.
func Server(servers []string, text string, sign byte) (found, rest string) {
	if text == "" || text[0] != sign {
		return "", ""
	}
	for _, s := range servers {
		after, ok := strings.CutPrefix(text[1:], s+":")
		if ok && after != "" && len(s) > len(found) {
			found, rest = s, after
		}
	}
	return found, rest
}

// beginsWord reports whether a mention can begin at i.
func beginsWord(text string, i int) bool {
	return i == 0 || strings.IndexByte(" \t\r\n([{<\"'", text[i-1]) >= 0
}

// trailing is punctuation that ends a sentence rather than a mention.
const trailing = ".,;:!?)]}>'\""

// Resource is a resource that a text mentions.
type Resource struct{ Server, URI string }

// Resources returns the resources that a text mentions, each once. Punctuation at the end of a
// mention is part of the URI only if listed reports that the server lists a URI with it.
func Resources(servers []string, text string, listed func(server, uri string) bool) []Resource {
	var all []Resource
	for i := range len(text) {
		if text[i] != '@' || !beginsWord(text, i) {
			continue
		}
		s, rest := Server(servers, text[i:], '@')
		if s == "" {
			continue
		}
		uri := rest
		if rest[0] == '"' {
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				continue
			}
			uri = rest[1 : 1+end]
		} else {
			if end := strings.IndexAny(rest, " \t\r\n"); end >= 0 {
				uri = rest[:end]
			}
			if bare := strings.TrimRight(uri, trailing); bare != uri && !listed(s, uri) {
				uri = bare
			}
		}
		if m := (Resource{s, uri}); uri != "" && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all
}

// Words returns the words of a text that begin with "#", without that sign. A word may be a tool or
// just text.
func Words(text string) []string {
	var all []string
	for i := range len(text) {
		if text[i] != '#' || !beginsWord(text, i) {
			continue
		}
		word := text[i+1:]
		if end := strings.IndexAny(word, " \t\r\n"); end >= 0 {
			word = word[:end]
		}
		if word = strings.TrimRight(word, trailing); word != "" && word[0] != '#' {
			all = append(all, word)
		}
	}
	return all
}
