package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	texts "github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/trace"
)

// maxPaste is the largest call in bytes that is written as text: quotes in it take several bytes.
const maxPaste = 64 << 10

// call is a call of a tool, as the page gives it to be written elsewhere.
type call struct {
	Server    string            `json:"server"`
	Tool      string            `json:"tool"`
	Arguments json.RawMessage   `json:"arguments"`
	Headers   map[string]string `json:"headers"` // of the request
	Meta      json.RawMessage   `json:"meta"`    // the _meta of its params
}

// pasted is a call as text.
type pasted struct {
	CLI  string `json:"cli,omitempty"`  // empty if a name must not stand in a command
	Curl string `json:"curl,omitempty"` // empty too if the program has no endpoint
	Test string `json:"test"`           // a test of Go
}

// paste answers POST /ui/paste: a call as text for other programs.
func (p *Page) paste(_ context.Context, body []byte) (any, error) {
	var c call
	if err := decode(body, &c); err != nil {
		return nil, err
	}
	if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	c.Arguments, c.Meta = plainJSON(c.Arguments), plainJSON(c.Meta)
	if c.Arguments[0] != '{' || len(c.Meta) > 0 && c.Meta[0] != '{' {
		return nil, fail(http.StatusBadRequest, "the arguments or the meta are not an object")
	}
	return &pasted{CLI: c.cli(p.Words...), Curl: c.curl(p.Report().URL), Test: c.test()}, nil
}

// cli is the command that makes the call; words name the server, without words its own name does.
func (c *call) cli(words ...string) string {
	if len(words) == 0 {
		if !typable(c.Server) {
			return ""
		}
		words = []string{"-s", c.Server}
	}
	return commandLine(c.Tool, c.Arguments, words)
}

// commandLine is the command that calls a tool, with words of the owner behind it that name the server. It is empty if a
// name must not stand in a command, or if the words have a secret.
func commandLine(tool string, arguments json.RawMessage, words []string) string {
	if !typable(tool) || !slices.Equal(new(trace.Redactor).Frame(trace.Frame{Args: words}).Args, words) {
		return ""
	}
	line := "patchbay call " + shellWord(tool) + " " + shellWord(string(arguments))
	for _, word := range words {
		if !printable(word) {
			return ""
		}
		if plainWord().MatchString(word) { // also an option
			line += " " + word
		} else {
			line += " " + shellWord(word)
		}
	}
	return line
}

// curl is the request to an endpoint that makes the call.
func (c *call) curl(endpoint string) string {
	if endpoint == "" || !typable(c.Server, c.Tool) {
		return ""
	}
	for name, value := range c.Headers {
		if strings.Trim(name, headerLetters) != "" || !typable(name) || !printable(value) {
			return ""
		}
	}
	meta := c.Meta
	if len(meta) == 0 {
		meta = json.RawMessage("{}")
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":%s}}`, jsonString(c.Tool), c.Arguments, meta)
	lines := []string{"curl " + shellWord(strings.TrimSuffix(endpoint, "/")+"/s/"+url.PathEscape(c.Server))}
	header := func(name, value string) { lines = append(lines, "-H "+shellWord(name+": "+value)) }
	names := make([]string, 0, len(c.Headers))
	for name := range c.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		header(name, c.Headers[name])
	}
	lines = append(lines, "-d "+shellWord(body))
	return strings.Join(lines, " \\\n  ")
}

// test is a Go test that makes the call, and keeps its exchange as a golden trace.
func (c *call) test() string {
	return fmt.Sprintf(`func Test%s(t *testing.T) {
	// newServer returns the server under test. The first run, with -mcptest.update, records the trace.
	mcptest.Golden(t, %s, newServer(), &mcp.Client{Name: "test"}, mcp.V2026_07_28, func(s *mcp.Session) {
		if _, err := s.CallTool(t.Context(), %s, json.RawMessage(%s)); err != nil {
			t.Error(err)
		}
	})
}
`, testName(c.Tool), goString("testdata/"+fileName(c.Tool)+".txt"), goString(c.Tool), goString(string(c.Arguments)))
}

const headerLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// typable reports whether names may stand in a command that people paste into a terminal. Servers choose the names of
// their tools: a control character would be typed, even between quotes; a name that begins with - would be an option, and
// one that is a URL another server.
func typable(names ...string) bool {
	for _, name := range names {
		if name == "" || strings.HasPrefix(name, "-") || strings.Contains(name, "://") || !printable(name) {
			return false
		}
	}
	return true
}

// printable reports whether a text has neither control characters nor characters that hide or turn it.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || texts.Obeyed(r) })
}

// plainJSON returns JSON on one line, without characters that a terminal obeys.
func plainJSON(raw json.RawMessage) json.RawMessage {
	return texts.Escape(nil, strings.ToValidUTF8(string(jsonx.Compact(nil, raw)), "\uFFFD"))
}

var plainWord = pattern.Lazy(`^[\w@%+=:,./-]+$`)

// shellWord quotes a text for a POSIX shell.
func shellWord(s string) string {
	if plainWord().MatchString(s) && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func jsonString(s string) string {
	out, _ := json.Marshal(s) // a string is always valid
	return string(out)
}

// goString is a string of Go, without quotes inside where that is possible.
func goString(s string) string {
	if strings.ContainsAny(s, `"\`) && strconv.CanBackquote(s) && printable(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}

var separators = pattern.Lazy(`[^\pL\pN]+`)

// testName makes the name of a test of that of a tool.
func testName(tool string) string {
	var b strings.Builder
	for _, part := range separators().Split(tool, -1) {
		for i, r := range part {
			if i == 0 {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
		}
	}
	if b.Len() == 0 {
		return "Call"
	}
	return b.String()
}

func fileName(tool string) string {
	name := strings.Trim(separators().ReplaceAllString(strings.ToLower(tool), "-"), "-")
	if name == "" {
		return "call"
	}
	return name
}
