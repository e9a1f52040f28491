package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A document is a page of Markdown.
type document struct {
	text  []byte
	root  ast.Node
	ids   []string // the anchors that links may name
	items []item
}

// An item is a link of a list.
type item struct {
	section, link, text string
	offset              int
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 100))),
)

var notInAnchor = regexp.MustCompile(`[^\pL\pN _-]`)

// anchors makes the ids of headings as code hosts do.
type anchors map[string]int

func (a anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	id := notInAnchor.ReplaceAllString(strings.ToLower(string(value)), "")
	id = strings.ReplaceAll(strings.TrimSpace(id), " ", "-")
	n := a[id]
	a[id]++
	if n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

func (a anchors) Put([]byte) {}

// parse reads a page, and finds the faults that need no other page.
func (s *site) parse(p *page, source []byte) *document {
	source = bytes.ReplaceAll(source, []byte("\r\n"), []byte("\n"))
	d := &document{text: source}
	if !utf8.Valid(source) {
		s.fault(p.source, source, invalid(source), "this line is not UTF-8")
	}
	d.root = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	var remove []ast.Node
	rows := 0
	ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			id, _ := n.AttributeString("id")
			h := heading{n.Level, string(id.([]byte)), plain(n, source)}
			if h.Level == 1 && p.title == "" {
				p.title = h.Title
			}
			if h.ID == "" {
				s.fault(p.source, source, n.Pos(), "this heading has no text to link to")
			}
			p.heads = append(p.heads, h)
			d.ids = append(d.ids, h.ID)
		case *ast.FencedCodeBlock:
			s.fence(p, source, n)
		case *ast.CodeBlock:
			s.fault(p.source, source, n.Lines().At(0).Start, "an indented code block has no language: use ``` with one")
		case *ast.HTMLBlock:
			remove = append(remove, n)
			if !bytes.HasPrefix(bytes.TrimSpace(n.Lines().Value(source)), []byte("<!--")) {
				s.fault(p.source, source, n.Pos(), "HTML is not shown: write Markdown, or put it into backquotes")
			}
		case *ast.RawHTML:
			s.fault(p.source, source, n.Segments.At(0).Start, "HTML is not shown: write Markdown, or put it into backquotes")
		case *extast.Table:
			if words(n, source) {
				n.SetAttributeString("class", "words")
			}
		case *extast.TableRow:
			if _, code := n.FirstChild().FirstChild().(*ast.CodeSpan); code || p.source == "docs/glossary.md" { // the search finds it
				rows++
				n.SetAttributeString("id", fmt.Appendf(nil, "row-%d", rows))
			}
		case *ast.Link:
			if in(n, ast.KindListItem) {
				i := item{link: string(n.Destination), text: plain(n, source), offset: n.Pos()}
				if len(p.heads) > 0 {
					i.section = p.heads[len(p.heads)-1].Title
				}
				d.items = append(d.items, i)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range remove {
		n.Parent().RemoveChild(n.Parent(), n)
	}
	if p.title == "" {
		s.fault(p.source, source, -1, "the page does not begin with a heading (# TITLE)")
	}
	return d
}

// fence sees that a code block has a language and an end.
func (s *site) fence(p *page, source []byte, n *ast.FencedCodeBlock) {
	if n.Info == nil || len(n.Language(source)) == 0 {
		s.fault(p.source, source, n.Pos(), "a code block without a language; for output use ```text")
	}
	after := n.Pos()
	if l := n.Lines(); l.Len() > 0 {
		after = l.At(l.Len() - 1).Stop
	} else if end := bytes.IndexByte(source[after:], '\n'); end >= 0 {
		after += end + 1
	}
	if rest := bytes.TrimLeft(source[min(after, len(source)):], " \t>"); !bytes.HasPrefix(rest, []byte("```")) && !bytes.HasPrefix(rest, []byte("~~~")) {
		s.fault(p.source, source, n.Pos(), "this code block has no end")
	}
}

// resolve checks the links of a page, and points them at files of the site.
func (s *site) resolve(p *page) {
	d := p.doc
	ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, err := s.follow(p, string(n.Destination))
			if err != nil {
				s.fault(p.source, d.text, n.Pos(), "link %s: %v", n.Destination, err)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			to, err := s.follow(p, string(n.Destination))
			if err == nil && strings.TrimSpace(plain(n, d.text)) == "" {
				err = fmt.Errorf("the image needs a text for people who do not see it")
			}
			if err != nil {
				s.fault(p.source, d.text, n.Pos(), "image %s: %v", n.Destination, err)
			}
			n.Destination = []byte(to)
		}
		return ast.WalkContinue, nil
	})
}

// follow returns the link of the site for a link of a page.
func (s *site) follow(p *page, link string) (string, error) {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return "", err
	case u.Scheme == "https" || u.Scheme == "http" || u.Scheme == "mailto":
		return link, nil
	case u.Scheme != "" || u.Host != "" || strings.HasPrefix(link, "/"):
		return "", fmt.Errorf("only https, http, mailto and files of the repository can be linked to")
	}
	to := p
	link = "/" + p.path
	if u.Path != "" {
		if link, to, err = s.find(path.Join(path.Dir(p.source), u.Path)); err != nil {
			return "", err
		}
	}
	if u.Fragment == "" {
		return link, nil
	}
	if to == nil || !slices.Contains(to.doc.ids, u.Fragment) {
		return "", fmt.Errorf("the heading #%s does not exist", u.Fragment)
	}
	return link + "#" + u.Fragment, nil
}

// find returns the link to a file of the repository, and its page if it is Markdown. Programs of examples have a page. Tests and other
// sources are linked in the repository, since they are as long as the rest of the site. What else pages link to is copied.
func (s *site) find(name string) (string, *page, error) {
	if p := s.pages[name]; p != nil {
		return "/" + p.path, p, nil
	}
	for _, p := range s.packages {
		if p.dir == name {
			return "/" + p.page.path, nil, nil
		}
	}
	if !fs.ValidPath(name) {
		return "", nil, fmt.Errorf("it leads out of the repository")
	}
	info, err := fs.Stat(s.repo, name)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("the file %s does not exist", name)
	case info.IsDir():
		return "", nil, fmt.Errorf("%s is a folder: link to a file of it", name)
	case path.Ext(name) == ".md":
		return "", nil, fmt.Errorf("%s is not a page of the site", name)
	case path.Ext(name) == ".go" && strings.HasPrefix(name, "examples/") && !strings.HasSuffix(name, "_test.go"):
		s.examples[path.Dir(name)] = true
		return "/" + programs + "#" + dashes(name), nil, nil
	case path.Ext(name) == ".go":
		return "https://" + module + "/blob/main/" + name, nil, nil
	}
	s.files[name], err = fs.ReadFile(s.repo, name)
	return "/" + name, nil, err
}

// readPrograms makes the page with the sources of the examples that pages link to, without their tests.
func (s *site) readPrograms() error {
	if len(s.examples) == 0 {
		return nil
	}
	p := &page{path: programs, title: "Programs of the examples", label: "Programs", section: s.sections[len(s.sections)-1].Title}
	if list := s.pages["examples/README.md"]; list != nil {
		p.section = list.section
	}
	i := slices.IndexFunc(s.sections, func(sec section) bool { return sec.Title == p.section })
	s.sections[i].Pages = append(s.sections[i].Pages, p)
	p.begin(heading{Level: 1, Title: p.title})
	fmt.Fprintf(&p.out, "<h1>%s</h1>\n<p>Their tests are beside them <a href=\"https://%s/tree/main/examples\">in the repository</a>.\n", p.title, module)
	for _, dir := range slices.Sorted(maps.Keys(s.examples)) {
		names, err := fs.Glob(s.repo, dir+"/*.go")
		if err != nil {
			return err
		}
		p.begin(heading{2, dashes(dir), dir})
		p.out.WriteString(head(2, dashes(dir), dir))
		s.entries = append(s.entries, entry{title: dir, page: p, anchor: dashes(dir)})
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := fs.ReadFile(s.repo, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&p.out, "<p id=\"%s\">%s\n<pre>%s</pre>\n", dashes(name), path.Base(name), highlight(text))
		}
	}
	p.end()
	return nil
}

// dashes returns the anchor of a file or folder of the examples.
func dashes(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "examples/"), "/", "-")
}

var emptyHead = regexp.MustCompile(`<th[^>]*></th>`)

// render makes the HTML of a page, and what the search finds of it.
func (s *site) render(p *page) error {
	heads := p.heads
	for n := p.doc.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			if h.Level <= 3 || len(p.chunks) == 0 {
				p.begin(heads[0])
			}
			heads = heads[1:]
		}
		if _, ok := n.(*extast.Table); ok {
			var table strings.Builder
			if err := markdown.Renderer().Render(&table, p.doc.text, n); err != nil {
				return err
			}
			p.out.WriteString(emptyHead.ReplaceAllString(table.String(), "<td></td>")) // a corner without a text heads nothing
		} else if err := markdown.Renderer().Render(&p.out, p.doc.text, n); err != nil {
			return err
		}
	}
	p.end()
	s.index(p)
	return nil
}

func head(level int, id, title string) string {
	return fmt.Sprintf("<h%d id=\"%s\">%s</h%[1]d>\n", level, id, title)
}

// blocks renders what must be different from goldmark's HTML: code with marks, and tables in a box that scrolls.
type blocks struct{}

func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			block := n.(*ast.FencedCodeBlock)
			w.WriteString(colored(string(block.Language(source)), block.Lines().Value(source)))
		}
		return ast.WalkContinue, nil
	})
	r.Register(extast.KindTable, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			if _, words := n.AttributeString("class"); words {
				w.WriteString("<div class=\"table words\">\n<table>\n")
			} else {
				w.WriteString("<div class=\"table\">\n<table>\n")
			}
		} else {
			w.WriteString("</tbody>\n</table>\n</div>\n")
		}
		return ast.WalkContinue, nil
	})
}

// words reports whether each row of a table begins with one word, such as the name of a rule.
func words(table *extast.Table, source []byte) bool {
	for row := table.FirstChild(); row != nil; row = row.NextSibling() {
		if strings.Contains(plain(row.FirstChild(), source), " ") {
			return false
		}
	}
	return true
}

// plain returns the text of a node.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(util.UnescapePunctuations(n.Segment.Value(source)))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				out.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock:
			if entering {
				out.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// in reports whether a node is inside of one of a kind.
func in(n ast.Node, kind ast.NodeKind) bool {
	for n = n.Parent(); n != nil; n = n.Parent() {
		if n.Kind() == kind {
			return true
		}
	}
	return false
}

// invalid returns the offset of the first byte that is not UTF-8.
func invalid(source []byte) int {
	for i := 0; i < len(source); {
		r, n := utf8.DecodeRune(source[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
