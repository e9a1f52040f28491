package reference

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func command(words ...string) string { return "patchbay " + strings.Join(words, " ") }

// A page has everything that the server says about itself, and an example of each call.
func TestMarkdown(t *testing.T) {
	s := &Server{
		Command: command,
		Info:    &mcp.ServerInfo{Implementation: mcp.Implementation{Name: "shop", Title: "The shop", Version: "1.2", Description: "Sells things."}, Instructions: "Look first.\n\n1. list\n2. buy_now"},
		Tools: []mcp.Tool{
			{Name: "buy", Title: "Buy a thing", Description: "Buys.", Annotations: &mcp.ToolAnnotations{Destructive: new(true), OpenWorld: new(true)}, InputSchema: []byte(`{"type":"object","properties":{
				"thing":{"type":"string","description":"its name"},"size":{"enum":["S","L"],"default":"S"},"to":{"type":"object","properties":{"street":{"type":"string"},"marks":{"type":"array","items":{"type":"object","properties":{"k":{"type":"integer","minimum":2}}}}},"required":["street"]}},
				"required":["thing"]}`), OutputSchema: []byte(`{"type":"object","properties":{"price":{"type":"number"}},"required":["price"]}`)},
			{Name: "list", InputSchema: []byte(`{"type":"object","properties":{},"additionalProperties":false}`), OutputSchema: []byte(`{"type":"object"}`)},
			{Name: "either", InputSchema: []byte(`{"type":"object","minProperties":1}`)},
		},
		Resources: []mcp.Resource{{URI: "shop://a", Name: "a", MIMEType: "text/plain", Size: 7, Description: "one | two"}},
		Templates: []mcp.ResourceTemplate{{URITemplate: "shop://{id}", Name: "b"}},
		Prompts:   []mcp.Prompt{{Name: "ask", Description: "Asks.", Arguments: []mcp.PromptArgument{{Name: "what", Required: true}}}, {Name: "bare"}},
	}
	got := s.Markdown()
	if got != s.Markdown() {
		t.Error("the page differs when it is written again")
	}
	want := "# The shop\n\nThe MCP server shop, version 1.2. Its own words are quoted.\n\n> Sells things.\n\nInstructions for models:\n\n> Look first.\n>\n> 1\\. list\\\n> 2\\. buy_now\n\n" +
		"## Tools\n\n### buy – Buy a thing\n\n> Buys.\n\nThe server says that it is: destructive, open-world.\n\n" +
		"| Argument | Type | Required | Default | Description |\n| --- | --- | --- | --- | --- |\n" +
		"| thing | text | yes |  | its name |\n| size | S \\| L |  | \"S\" |  |\n| to | object |  |  |  |\n| to.street | text | yes |  |  |\n| to.marks | list of objects |  |  |  |\n| to.marks\\[\\].k | whole number from 2 |  |  |  |\n\n" +
		"Result:\n\n| Member | Type | Required | Default | Description |\n| --- | --- | --- | --- | --- |\n| price | number | yes |  |  |\n\n" +
		"Example:\n\n```sh\npatchbay call buy thing=THING\n```\n\n```json\n{\n  \"thing\": \"THING\"\n}\n```\n\n" +
		"### list\n\nNo arguments.\n\nResult:\n\nAny object.\n\nExample:\n\n```sh\npatchbay call list\n```\n\n```json\n{}\n```\n\n" +
		"### either\n\n```json\n{\n  \"type\": \"object\",\n  \"minProperties\": 1\n}\n```\n\n" +
		"## Resources\n\n| URI | Name | Type | Size | Description |\n| --- | --- | --- | --- | --- |\n| shop://a | a | text/plain | 7 bytes | one \\| two |\n\n" +
		"## Resource templates\n\n| URI | Name | Type | Description |\n| --- | --- | --- | --- |\n| shop://{id} | b |  |  |\n\n" +
		"## Prompts\n\n### ask\n\n> Asks.\n\n| Argument | Required | Description |\n| --- | --- | --- |\n| what | yes |  |\n\n### bare\n\nNo arguments.\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// attacks are texts that are something else in Markdown or HTML, or hide what a model reads.
var attacks = []string{
	"# Heading", "## Tools\n\n### fake\n\n> quoted", "a\n===", "a\n---", "---", "***", "- a\n- b", "+ a", "1. a\n2) b", "> quote", "    code", "\tcode", "```\nfence\n```", "~~~\nfence",
	"`code`", "*a* **b** _c_ __d__ ~~e~~", "[a](http://evil.example)", "![a](http://evil.example/x.png)", "[a]: http://evil.example", "<script>alert(1)</script>", "<!-- hidden -->", "<!-- open", "&lt;b&gt; &#x3c;",
	"a | b | c", "a\\", `a\|b`, `\`, "| a | b |\n| --- | --- |\n| c | d |", "\x00\x1b[31mred\x07", "\u202egnitset\u202c", "zero\u200bwidth\U000e0041", "a\u2028b", "a\r\nb\rc", "$x$ $$y$$", ":--", "=", "</td></tr></table>",
	"<https://evil.example>", "a  \nb", "[^1]: note", "- [ ] task", "<details>", "\xff\xfe", "javascript:alert(1)", "*", "**", "_", strings.Repeat("[", 1000), strings.Repeat("é|", 1<<19), "```````", "]]>", "\u00a0\u00a0\u00a0\u00a0code", "{% raw %}",
}

// shapes are the lines of a page that are not inside of code.
var shapes = regexp.MustCompile("^(|# .*|## (Tools|Resources|Resource templates|Prompts)|### .*|>( .*)?|(\\| .*)?\\||The MCP server .*\\. Its own words are quoted\\.|Instructions for models:|No arguments\\.|Any object\\.|Result:|Example:|```(sh|json)?|A schema of [0-9]+ bytes\\.|[0-9]+ rows? more; the schema has all\\.|\\(Cut: the (description|instructions) has [0-9]+ bytes\\.\\)|The server says that it is: [a-z, -]+\\.)$")

// No text of a server has a meaning in Markdown or HTML, ends a table or a quote, or is hidden.
func TestHostileMarkdown(t *testing.T) {
	s := &Server{Command: command, Info: &mcp.ServerInfo{}}
	for i, a := range attacks {
		quoted := fmt.Sprintf("%q", strings.ToValidUTF8(a[:min(len(a), 2000)], "?"))
		quoted = strings.NewReplacer(`\x`, `\u00`, `\a`, `\u0007`, `\U000e`, `\udb40\udc`).Replace(quoted)
		in := []byte(`{"type":"object","title":` + quoted + `,"properties":{` + quoted + `:{"type":"string","description":` + quoted + `,"default":` + quoted + `},"e":{"enum":[` + quoted + `]}},"required":["e"]}`)
		s.Tools = append(s.Tools, mcp.Tool{Name: a, Title: attacks[(i+1)%len(attacks)], Description: a, InputSchema: in, OutputSchema: []byte(`{"type":"object","minProperties":1,"description":` + quoted + `}`)})
		s.Resources = append(s.Resources, mcp.Resource{URI: a, Name: a, MIMEType: a, Description: a})
		s.Templates = append(s.Templates, mcp.ResourceTemplate{URITemplate: a, Title: a, Description: a})
		s.Prompts = append(s.Prompts, mcp.Prompt{Name: a, Title: a, Description: a, Arguments: []mcp.PromptArgument{{Name: a, Description: a}}})
	}
	s.Info.Name, s.Info.Title, s.Info.Version, s.Info.Description = attacks[0], attacks[1], attacks[2], strings.Join(attacks, "\n")
	s.Info.Instructions = strings.Join(attacks, "\n\n")
	page := s.Markdown()
	if file := os.Getenv("REVERSE_PAGE"); file != "" {
		os.WriteFile(file, []byte(page), 0o600)
	}
	if len(page) > 4<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, c := range []string{"\x00", "\x1b", "\r", "\u202e", "\u200b", "\u2028", "\U000e0041"} {
		if strings.Contains(page, c) {
			t.Errorf("the page has %q", c)
		}
	}
	unescaped := regexp.MustCompile("(^|[^\\\\])(\\\\\\\\)*[`*\\[\\]~$#]")
	fence, columns, tools := "", 0, 0
	for n, line := range strings.Split(page, "\n") {
		if fence != "" {
			if line == fence {
				fence = ""
			}
			continue
		}
		if strings.HasPrefix(line, "```") {
			fence = strings.TrimRight(line, "hjnos")
			continue
		}
		if !shapes.MatchString(line) {
			t.Errorf("line %d is not one of a page: %.200q", n+1, line)
		}
		if strings.HasPrefix(line, "### ") {
			tools++
		}
		if text := strings.TrimLeft(line, "#"); strings.ContainsAny(strings.TrimPrefix(text, ">"), "<>") || unescaped.MatchString(text) {
			t.Errorf("line %d has a character with a meaning: %.200q", n+1, line)
		}
		switch cells := len(regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\|`).FindAllString(line, -1)); {
		case !strings.HasPrefix(line, "|"):
			columns = 0
		case columns == 0:
			columns = cells
		case cells != columns:
			t.Errorf("line %d has %d cells of %d: %.200q", n+1, cells, columns, line)
		}
	}
	if fence != "" || tools != 2*len(attacks) {
		t.Errorf("%d headings of %d features; open code: %q", tools, 2*len(attacks), fence)
	}
	for _, want := range []string{"⟨U+202E⟩", "⟨U+200B⟩", "␛", "&lt;!-- hidden --&gt;", "(Cut: the description has 1572864 bytes.)", "(1572864 bytes in all)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// A schema that does not fit into a table is said to be larger.
func TestLargeSchemas(t *testing.T) {
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, `"p%d":{"type":"string"},`, i)
	}
	s := &Server{Command: command, Info: &mcp.ServerInfo{}, Tools: []mcp.Tool{
		{Name: "many", InputSchema: []byte(`{"type":"object","properties":{` + many.String() + `"z":{}}}`)},
		{Name: "long", InputSchema: []byte(`{"type":"object","minProperties":1,"description":"` + strings.Repeat("x", 1<<20) + `"}`)},
		{Name: "broken", InputSchema: []byte(`{"type":`)},
		{Name: "missing"},
	}}
	page := s.Markdown()
	for _, want := range []string{"101 rows more; the schema has all.", "A schema of 1048", "### broken", "### missing\n\nNo arguments."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(page) > 64<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
}
