package mention

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Arguments parses the arguments of a prompt from the words after its name. The error says what is
// wrong and which arguments the prompt has.
func Arguments(p *mcp.Prompt, fields []Word) (map[string]string, error) {
	args := map[string]string{}
	var rest []string
	for _, f := range fields {
		name, value, ok := strings.Cut(f.Value, "=")
		if ok && slices.ContainsFunc(p.Arguments, func(a mcp.PromptArgument) bool { return a.Name == name }) {
			args[name] = value
			continue
		}
		rest = append(rest, f.Value)
	}
	var open, missing []string
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; !ok {
			open = append(open, a.Name)
		}
	}
	switch {
	case rest == nil:
	case len(open) == 1:
		args[open[0]] = strings.Join(rest, " ")
	default:
		return nil, fmt.Errorf("prompt %s has no argument %s; %s", quoted(p.Name), quoted(rest[0]), argumentsOf(p))
	}
	for _, a := range p.Arguments {
		if _, ok := args[a.Name]; !ok && a.Required {
			missing = append(missing, a.Name)
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("prompt %s lacks %s; %s", quoted(p.Name), strings.Join(missing, ", "), argumentsOf(p))
	}
	return args, nil
}

// argumentsOf describes the arguments of a prompt.
func argumentsOf(p *mcp.Prompt) string {
	if len(p.Arguments) == 0 {
		return "it takes none"
	}
	var all []string
	for _, a := range p.Arguments {
		text := bounded(a.Name, 100) + "=…"
		if !a.Required {
			text = "[" + text + "]"
		}
		all = append(all, text)
	}
	return "it takes " + strings.Join(all, " ")
}

// Word is a word of a command line.
type Word struct {
	Value    string // without quotes
	from, to int    // position in the line
	open     bool   // a quote is not closed
}

// Split splits a command line into words. Within double quotes, a backslash escapes the next
// character.
func Split(line string) []Word {
	var all []Word
	var word strings.Builder
	from, quote, within := 0, false, false
	end := func(to int) {
		if within {
			all = append(all, Word{word.String(), from, to, quote})
		}
		word.Reset()
		within = false
	}
	for i := 0; i < len(line); i++ {
		b := line[i]
		space := b == ' ' || b == '\t' || b == '\n' || b == '\r'
		if space && !quote {
			end(i)
			continue
		}
		if !within {
			from, within = i, true
		}
		switch {
		case b == '"':
			quote = !quote
		case b == '\\' && quote && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		default:
			word.WriteByte(b)
		}
	}
	end(len(line))
	return all
}

// Quote returns word in a form that Split reads as that one word.
func Quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\r\n\"") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// bounded puts text from a peer on one line of at most that many bytes.
func bounded(s string, most int) string { return text.Clip(strings.Join(strings.Fields(s), " "), most) }

// quoted quotes text from a peer or a person for an error.
func quoted(s string) string { return strconv.Quote(bounded(s, 100)) }
