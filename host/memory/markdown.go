package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/patchbay-dev/patchbay/host/model"
)

// WriteMarkdown writes a conversation for people: messages with their speakers, and tool calls as
// blocks with their arguments and results, but not thoughts. Pictures, sounds and files appear as
// names and sizes. Times are in UTC.
func WriteMarkdown(w io.Writer, c Conversation, entries []Entry) error {
	m := &markdown{}
	title := c.Title
	if title == "" {
		title = "Conversation " + c.ID
	}
	m.paragraph("# " + inline(title))
	facts := []string{c.Created.UTC().Format("2006-01-02 15:04") + " UTC"}
	if c.Model != "" {
		facts = append(facts, inline(c.Model))
	}
	if u := c.Usage; u.Input+u.Output > 0 {
		facts = append(facts, fmt.Sprintf("%d tokens in, %d out", u.Input, u.Output))
	}
	if c.Cost > 0 {
		facts = append(facts, fmt.Sprintf("cost %.4f", c.Cost))
	}
	if c.ID != "" {
		facts = append(facts, "id "+c.ID)
	}
	m.paragraph(strings.Join(facts, " · "))
	before := ""
	for _, e := range entries {
		if who := speaker(&e); who != before && who != "" {
			m.paragraph("## " + who)
			before = who
		}
		for _, p := range e.Message.Parts {
			m.part(&p)
		}
	}
	_, err := w.Write(m.out.Bytes())
	return err
}

// speaker returns the speaker of a message, "" for results, which belong to the calls before.
func speaker(e *Entry) string {
	switch e.Message.Role {
	case model.Assistant:
		if e.Model != "" {
			return "Assistant (" + inline(e.Model) + ")"
		}
		return "Assistant"
	case model.User:
		for _, p := range e.Message.Parts {
			if p.Result == nil {
				return "User"
			}
		}
		return ""
	}
	return inline(string(e.Message.Role))
}

// markdown is a text that is being written.
type markdown struct{ out bytes.Buffer }

func (m *markdown) paragraph(text string) {
	if m.out.Len() > 0 {
		m.out.WriteByte('\n')
	}
	m.out.WriteString(strings.TrimRight(text, "\n"))
	m.out.WriteByte('\n')
}

func (m *markdown) part(p *model.Part) {
	switch {
	case p.Text != "":
		m.paragraph(p.Text)
	case p.Media != nil:
		m.paragraph(media(p.Media))
	case p.Call != nil:
		m.paragraph("**Call** " + code(p.Call.Name))
		m.block(pretty(p.Call.Arguments))
	case p.Result != nil:
		what := "**Result** of "
		if p.Result.Error {
			what = "**Error** of "
		}
		m.paragraph(what + code(p.Result.Name))
		for _, part := range p.Result.Parts {
			switch {
			case part.Media != nil:
				m.paragraph(media(part.Media))
			case part.Text != "":
				m.block(pretty([]byte(part.Text)))
			}
		}
	}
}

// block writes text in a fence longer than any fence in it.
func (m *markdown) block(language, text string) {
	fence := strings.Repeat("`", max(3, 1+longest(text)))
	m.paragraph(fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence)
}

// longest is the length of the longest run of backquotes.
func longest(text string) int {
	most, run := 0, 0
	for i := range len(text) {
		if run++; text[i] != '`' {
			run = 0
		}
		most = max(most, run)
	}
	return most
}

// pretty indents JSON, and returns the language of a text.
func pretty(raw []byte) (language, text string) {
	if t := bytes.TrimSpace(raw); len(t) > 0 && (t[0] == '{' || t[0] == '[') {
		var b bytes.Buffer
		if json.Indent(&b, t, "", "  ") == nil {
			return "json", b.String()
		}
	}
	return "", string(raw)
}

func media(v *model.Media) string {
	name := v.Name
	if name == "" {
		name = kind(v.MIME)
	}
	return "[" + inline(name) + "] (" + inline(v.MIME) + ", " + size(len(v.Data)) + ")"
}

// kind returns the first part of a MIME type.
func kind(mime string) string {
	k, _, _ := strings.Cut(mime, "/")
	if k == "" || k == "application" {
		return "file"
	}
	return k
}

func size(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// code returns a name as inline code.
func code(name string) string {
	name = oneLine(name)
	fence := strings.Repeat("`", 1+longest(name))
	if strings.HasPrefix(name, "`") || strings.HasSuffix(name, "`") {
		name = " " + name + " "
	}
	return fence + name + fence
}

// inline is text in a line that means nothing in Markdown.
func inline(s string) string { return marks.Replace(oneLine(s)) }

var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`, "#", `\#`)
