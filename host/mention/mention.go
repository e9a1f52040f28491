// Package mention is the language in which a person mentions what servers have, in a message to a model:
//
//   - @server:uri attaches a resource. A URI with spaces stands in double quotes.
//   - /server:prompt name=value ... at the beginning stands for the messages of a prompt. Values
//     with spaces stand in double quotes. A word that is not name=value is the value of the one
//     argument that is not given.
//   - #tool has the model begin with a tool: by the name that the model knows it by, as
//     server/tool, or by its own name if no other server has one of that name.
//
// A mention begins a word, and "@" and "/" are followed by the name of a server. All else is text.
//
// The package reads such texts ([Server], [Resources], [Words], [Tools], [Arguments]) and helps to write
// them ([Complete]). It asks no server by itself: a [Source] says what there is.
package mention

import (
	"slices"
	"strings"
)

// Server returns the server that a mention at the beginning of a text names, and what follows its colon;
// an empty name if there is none. Sign is '@' or '/'. Names may have colons and spaces: the longest
// counts.
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

// beginsWord tells whether a mention can begin at i.
func beginsWord(text string, i int) bool {
	return i == 0 || strings.IndexByte(" \t\r\n([{<\"'", text[i-1]) >= 0
}

// trailing is what ends a sentence and not a mention.
const trailing = ".,;:!?)]}>'\""

// Resource is a resource that a text mentions.
type Resource struct{ Server, URI string }

// Resources returns the resources that a text mentions, each once. Listed tells whether a server lists a
// URI: then a mention keeps the punctuation at its end.
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

// Words returns the words of a text that begin with "#", without that sign: the tools that it insists on,
// or just words.
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
