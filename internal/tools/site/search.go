package main

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	var head heading
	heads := p.heads
	for n := p.doc.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			head, heads = heads[0], heads[1:]
			at = len(s.entries)
			e := entry{title: head.Title, page: p, anchor: head.ID}
			if h.Level == 1 {
				e.title, e.anchor = p.Label(), ""
			}
			s.entries = append(s.entries, e)
			continue
		}
		if at >= 0 {
			s.entries[at].text = strings.TrimSpace(s.entries[at].text + " " + unlisted(n, source))
		}
		ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering {
				return ast.WalkContinue, nil
			}
			switch n := n.(type) {
			case *extast.TableRow:
				if id, ok := n.AttributeString("id"); ok {
					first := n.FirstChild()
					var rest []string
					for cell := first.NextSibling(); cell != nil; cell = cell.NextSibling() {
						rest = append(rest, plain(cell, source))
					}
					s.entries = append(s.entries, entry{plain(first, source), p, string(id.([]byte)), strings.Join(rest, " "), true})
				}
			case *ast.FencedCodeBlock:
				for _, m := range flagLine.FindAllSubmatch(n.Lines().Value(source), -1) {
					s.entries = append(s.entries, entry{string(m[1]), p, head.ID, string(m[2]), true})
				}
			}
			return ast.WalkContinue, nil
		})
	}
}

// unlisted returns the text of a block, without the rows of a table that are entries of their own.
func unlisted(n ast.Node, source []byte) string {
	if n.Kind() != extast.KindTable {
		return plain(n, source)
	}
	var rows []string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		if _, own := row.AttributeString("id"); !own {
			rows = append(rows, plain(row, source))
		}
	}
	return strings.Join(rows, " ")
}

// searchIndex returns the script with what the search can find, as JSON that is compressed and in base 64. Of the text of an entry it has the beginning, for the results, and in
// pages of Markdown all words:
//
//	pages  [path, title, prefix, entries] each; an entry is [title, anchor, beginning], with a 1 if it is below the last without
//	words  a line each: the word, a space, and the entries that have it, each as its distance from the one before: D/26 in base 36
//	       if it is not 0, and a capital letter for the rest
//
// The anchor 0 is the title, which then has the prefix.
func (s *site) searchIndex() ([]byte, error) {
	var index struct {
		Pages [][4]any `json:"pages"`
		Words string   `json:"words"`
	}
	var rows [][]any
	path := ""
	lines, last := map[string][]byte{}, map[string]int{}
	for i, e := range s.entries {
		at := e.page.path
		if part := s.moved[at+"#"+e.anchor]; part != "" {
			at = part
		}
		if at != path {
			path, rows = at, nil
			index.Pages = append(index.Pages, [4]any{path, cmp.Or(e.page.under, e.page.title), e.page.prefix})
		}
		row := []any{e.title, e.anchor, beginning(e.text)}
		if e.anchor == e.title {
			row[1] = 0
		}
		if e.inside {
			row = append(row, 1)
		}
		rows = append(rows, row)
		index.Pages[len(index.Pages)-1][3] = rows
		if e.page.doc == nil {
			continue
		}
		found := strings.FieldsFunc(strings.ToLower(e.text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		slices.Sort(found)
		for _, w := range slices.Compact(found) {
			d := i - last[w]
			if d >= 26 {
				lines[w] = strconv.AppendInt(lines[w], int64(d/26), 36)
			}
			lines[w] = append(lines[w], 'A'+byte(d%26))
			last[w] = i
		}
	}
	var words strings.Builder
	for _, w := range slices.Sorted(maps.Keys(lines)) {
		words.WriteString(w + " " + string(lines[w]) + "\n")
	}
	index.Words = words.String()
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.NewEncoder(w).Encode(index), w.Close()); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "const index = %q;\n", base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}

// beginning returns the first words of a text.
func beginning(text string) string {
	const most = 70
	if len(text) <= most {
		return text
	}
	end := strings.LastIndexByte(text[:most], ' ')
	if end < 0 {
		return ""
	}
	return text[:end] + " …"
}
