package files_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/servers/files"
)

// textOf is the text of a prompt's first message.
func textOf(r *mcp.PromptResult) string {
	if r == nil || len(r.Messages) == 0 {
		return ""
	}
	c, _ := r.Messages[0].Content.(mcp.TextContent)
	return c.Text
}

func TestCodeReview(t *testing.T) {
	dir := example(t)
	put(t, dir, map[string]string{"long.py": strings.Repeat("x = 1\n", 60_000), ".env": "KEY=1\n"})
	s := connect(t, files.Options{Roots: []string{dir}})
	for _, tt := range []struct {
		name string
		in   map[string]string
		want []string
	}{
		{"code", map[string]string{"code": "print(1)"}, []string{"Review the code. ", "\n\n```\nprint(1)\n```"}},
		{"language", map[string]string{"code": "print(1)", "language": "Python 3"}, []string{"Review the code, which is Python 3. "}},
		{"fences in the code", map[string]string{"code": "````go\nx\n````\n"}, []string{"\n\n`````\n````go\nx\n````\n`````"}},
		{"file", map[string]string{"path": "src/main.go", "language": "Go"}, []string{`Review the code of "src/main.go", which is Go. `, "func main() {}\n```"}},
		{"long file", map[string]string{"path": "long.py"}, []string{"x = 1\n```\n(lines 1 to 43690; the file goes on at offset 43691)"}},
	} {
		got, err := s.GetPrompt(t.Context(), "code_review", tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, want := range tt.want {
			if text := textOf(got); !strings.Contains(text, want) {
				t.Errorf("%s: %.200q … %q lacks %q", tt.name, text, text[max(0, len(text)-100):], want)
			}
		}
	}
	for _, tt := range []struct {
		name string
		in   map[string]string
		want string
	}{
		{"neither", nil, "either code or path"},
		{"both", map[string]string{"code": "x", "path": "src/main.go"}, "either code or path"},
		{"missing", map[string]string{"path": "nosuch.go"}, `"nosuch.go" does not exist`},
		{"outside", map[string]string{"path": "../x.go"}, "outside of the roots"},
		{"secret", map[string]string{"path": ".env"}, "path:"},
		{"picture", map[string]string{"path": "logo.png"}, `"logo.png" is not text`},
		{"language of several lines", map[string]string{"code": "x", "language": "Go.\nIgnore"}, "language"},
		{"long code", map[string]string{"code": strings.Repeat("x", 262145)}, "code"},
	} {
		got, err := s.GetPrompt(t.Context(), "code_review", tt.in)
		var e *mcp.Error
		if !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, tt.want) {
			t.Errorf("%s = %v, %v; want invalid params with %q", tt.name, textOf(got), err, tt.want)
		}
	}
}

func TestCodeReviewCompletes(t *testing.T) {
	dir, other := example(t), t.TempDir()
	put(t, other, map[string]string{"x.go": ""})
	one := connect(t, files.Options{Roots: []string{dir}})
	two := connect(t, files.Options{Roots: []string{dir + "/src", other}})
	name := other[strings.LastIndexAny(other, `/\`)+1:]
	for _, tt := range []struct {
		s     *mcp.Session
		typed string
		want  []string
	}{
		{one, "s", []string{"src/"}},
		{one, "src/", []string{"src/deep/", "src/main.go"}},
		{one, "src/m", []string{"src/main.go"}},
		{one, "../", []string{}},
		{two, "", []string{"src/", name + "/"}},
		{two, "s", []string{"src/"}},
		{two, "src/m", []string{"src/main.go"}},
	} {
		got, err := tt.s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "code_review"}, "path", tt.typed, nil)
		if err != nil || !slices.Equal(got.Values, tt.want) {
			t.Errorf("complete %q = %v, %v; want %q", tt.typed, got, err, tt.want)
		}
	}
}
