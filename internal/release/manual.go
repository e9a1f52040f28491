package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// manual returns the manual pages: one for each verb and one for the program, from docs/command-line.md, which is made from the
// verbs themselves.
func (r *release) manual() ([]member, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "docs", "command-line.md"))
	if err != nil {
		return nil, err
	}
	_, reference, ok := strings.Cut(string(text), "\n## Reference\n")
	if !ok {
		return nil, fmt.Errorf("docs/command-line.md has no section Reference")
	}
	sections := strings.Split("\n"+reference, "\n### ")[1:]
	var pages []member
	var all bytes.Buffer
	r.head(&all, "patchbay", summary)
	all.WriteString(".SH DESCRIPTION\n" + roff(about) + "\n.SH VERBS\n")
	for _, s := range sections {
		name, body, _ := strings.Cut(s, "\n")
		name = strings.ReplaceAll(name, " ", "-")
		short, body, _ := strings.Cut(strings.TrimSpace(body), "\n")
		var b bytes.Buffer
		r.head(&b, name, strings.TrimSuffix(short, "."))
		b.WriteString(".SH DESCRIPTION\n")
		writeRoff(&b, body)
		b.WriteString(".SH SEE ALSO\n.BR patchbay (1)\n")
		pages = append(pages, member{"man/" + name + ".1", 0o644, b.Bytes()})
		fmt.Fprintf(&all, ".TP\n.BR %s (1)\n%s\n", roff(name), roff(short))
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("docs/command-line.md has no verbs")
	}
	all.WriteString(".SH FILES\n.TP\n.I mcp.json\nServers: \\fBpatchbay config list\\fR tells where it is.\n.SH SEE ALSO\n" + roff(homepage) + "\n")
	return append(pages, member{"man/patchbay.1", 0o644, all.Bytes()}), nil
}

// head begins a manual page.
func (r *release) head(b *bytes.Buffer, name, short string) {
	fmt.Fprintf(b, ".TH %s 1 %s \"patchbay %s\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(roff(name)), r.time.Format("2006-01-02"), r.version, roff(name), roff(short))
}

// writeRoff writes Markdown of docs/command-line.md as roff: paragraphs and blocks of code.
func writeRoff(b *bytes.Buffer, markdown string) {
	code, written, gap := false, false, false // gap: empty lines, before which something is written
	paragraph := func() {
		if gap {
			b.WriteString(".PP\n")
		}
		written, gap = true, false
	}
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			if code = !code; code {
				paragraph()
				b.WriteString(".EX\n")
			} else {
				b.WriteString(".EE\n")
			}
		case code:
			b.WriteString(roff(line) + "\n")
		case strings.TrimSpace(line) == "":
			gap = written
		default:
			paragraph()
			line = link.ReplaceAllString(line, "$1")
			b.WriteString(roff(strings.ReplaceAll(line, "`", "")) + "\n")
		}
	}
}

// link matches a link of Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// roff escapes a text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
