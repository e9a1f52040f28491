package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// flagLine is a line of help about a flag.
var flagLine = regexp.MustCompile(`(?m)^((?:-\w, )?--\w[^ \n]*(?: [^ \n]+)*?)(?:  +(.*))?$`)

// index adds a page to the search: each heading with the text below it, each row of a table that begins with code or is in the
// glossary, and each flag of help.
func (s *site) index(p *page) {
	source := p.doc.text
	at := -1 // the entry of the heading above
	head := heading{Title: p.title}
	add := func(title, anchor, text string) {
		under := p.title
		if head.Title != p.title && title != head.Title {
			under = head.Title + " · " + p.title
		}
		s.entries = append(s.entries, entry{title, under, p.path + anchor, text})
	}
	heads := p.heads
	for n := p.doc.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			head, heads = heads[0], heads[1:]
			at = len(s.entries)
			anchor := "#" + head.ID
			if h.Level == 1 {
				anchor = ""
			}
			add(head.Title, anchor, "")
			continue
		}
		if at >= 0 {
			s.entries[at].text = strings.TrimSpace(s.entries[at].text + " " + plain(n, source))
		}
		ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering {
				return ast.WalkContinue, nil
			}
			switch n := n.(type) {
			case *extast.TableRow:
				first, ok := n.FirstChild().(*extast.TableCell)
				if _, code := first.FirstChild().(*ast.CodeSpan); ok && (code || p.source == "docs/glossary.md") {
					id, _ := n.AttributeString("id")
					add(plain(first, source), fmt.Sprintf("#%s", id), plain(n, source))
				}
			case *ast.FencedCodeBlock:
				for _, m := range flagLine.FindAllSubmatch(n.Lines().Value(source), -1) {
					add(string(m[1]), "#"+head.ID, string(m[2]))
				}
			}
			return ast.WalkContinue, nil
		})
	}
}
