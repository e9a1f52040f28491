package fetch

import (
	"bytes"
	"context"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Limits of markup. The HTML may be hostile: nothing here grows with its nesting, and no work
// is done twice.
const (
	maxNesting = 8     // levels of lists and quotations that are indented
	maxLink    = 2_000 // bytes of a URL in a link
	spanCost   = 48    // accounted bytes of a change of style
)

// document is the result of converting HTML.
type document struct {
	title string
	text  string
	cut   bool // the limit was reached
}

// renderer converts HTML to Markdown, or plain text, as it reads it. It reads the tokens once
// and does not build a tree: with the standard's algorithm a hostile page can have a hundred
// nodes per byte.
type renderer struct {
	z     *html.Tokenizer
	base  *url.URL // the base of relative links
	based bool     // the page has set the base
	plain bool     // text without marks
	limit int      // bytes of out, and of pending text

	out        strings.Builder // finished blocks
	line       line            // the current paragraph
	containers []container     // lists, items and quotations around it
	tooDeep    int             // number of further containers
	depth      int             // len(containers) of the last block
	inList     bool            // the last block was in a list
	heading    int             // level of the current heading, 0 for none
	sign       int             // the start of a heading's link to itself in the line, -1 for none
	pre        *preformatted   // nil outside of pre
	table      *table          // nil outside of a table, and in one for layout

	title    *strings.Builder // nil outside of the first title
	titled   string
	skipped  string // name of an omitted element
	skipping int    // number of open elements of that name
	sections int    // number of open article, main and section elements

	main     mainPart
	resolved [2]string // the last reference, and its target
}

// mainPart is the position of the page's main part in the output.
type mainPart struct {
	count      int
	name       string // of the element
	open       int    // number of open elements of that name
	start, end int
}

// preformatted is the text of a pre.
type preformatted struct {
	language string
	text     strings.Builder
}

// render converts HTML to Markdown, or to text if plain. The result is cut at about limit
// bytes. The error is that of ctx.
func render(ctx context.Context, source string, base *url.URL, plain bool, limit int) (document, error) {
	r := &renderer{z: html.NewTokenizer(strings.NewReader(source)), base: base, plain: plain, limit: limit, sign: -1}
	cut := false
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return document{}, context.Cause(ctx)
		}
		kind := r.z.Next()
		if kind == html.ErrorToken { // the end: a string has no other error
			break
		}
		r.token(kind)
		if cut = r.size() > limit; cut {
			break
		}
	}
	r.finish()
	text := r.out.String()
	if m := r.main; m.count == 1 {
		if m.open > 0 { // it was never closed
			m.end = len(text)
		}
		if part := text[m.start:m.end]; strings.TrimSpace(part) != "" {
			text = part
		}
	}
	if r.title != nil {
		r.titled = r.title.String()
	}
	title := strings.Join(strings.Fields(strings.ToValidUTF8(r.titled, "")), " ")
	return document{title, strings.Trim(text, "\n"), cut}, nil
}

// size is the length of the text, finished or not.
func (r *renderer) size() int {
	n := r.out.Len() + len(r.line.text) + r.line.extra
	if r.pre != nil {
		n += r.pre.text.Len()
	}
	if r.table != nil {
		n += r.table.size
	}
	return n
}

func (r *renderer) token(kind html.TokenType) {
	switch kind {
	case html.TextToken:
		r.text(r.z.Text())
	case html.StartTagToken, html.SelfClosingTagToken:
		name, more := r.z.TagName()
		r.start(string(name), r.attributes(more), kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		name, _ := r.z.TagName()
		r.end(string(name))
	}
}

// attributes returns the attributes of the tag that this package uses.
func (r *renderer) attributes(more bool) map[string]string {
	var found map[string]string
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		switch string(key) {
		case "href", "src", "alt", "class", "role", "hidden", "aria-hidden", "style", "start":
			if found == nil {
				found = map[string]string{}
			}
			if _, twice := found[string(key)]; !twice {
				found[string(key)] = string(value)
			}
		}
	}
	return found
}

func (r *renderer) text(b []byte) {
	switch {
	case r.title != nil:
		r.title.Write(b[:min(len(b), 1000)])
	case r.skipped != "":
	case r.pre != nil:
		r.pre.text.Write(b)
	case r.table != nil && !r.table.inCell && len(bytes.TrimSpace(b)) == 0:
	default:
		r.line.add(b)
	}
}

// start handles a start tag.
func (r *renderer) start(name string, attr map[string]string, selfClosing bool) {
	if r.skipped != "" {
		switch {
		case name != r.skipped:
			return
		case !endIsOptional(name):
			r.skipping++
			return
		}
		r.skipped = "" // <p hidden>... <p>: the first has ended
	}
	if r.noise(name, attr) {
		if !isVoid(name) && !(selfClosing && name == "svg") {
			r.skipped, r.skipping = name, 1
		}
		return
	}
	switch {
	case r.main.open > 0: // it is within the main part
		if name == r.main.name {
			r.main.open++
		}
	case (name == "main" || attr["role"] == "main") && !isVoid(name):
		r.startMain(name)
	}
	if r.pre != nil && r.pre.language == "" && name == "code" {
		r.pre.language = language(attr["class"])
	}
	if s := styleOf(name); s != 0 {
		r.line.open(s)
		return
	}
	switch name {
	case "title":
		if r.titled == "" && r.title == nil {
			r.title = &strings.Builder{}
		}
	case "base":
		href, is := attr["href"]
		if !is || r.based || len(href) > maxLink {
			return
		}
		r.based = true // only the first base element counts
		if u, err := r.base.Parse(href); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			r.base, r.resolved = u, [2]string{}
		}
	case "a":
		r.line.link(r.resolve(attr["href"]))
		r.sign = -1
		if r.heading > 0 && strings.HasPrefix(attr["href"], "#") {
			r.sign = len(r.line.text)
		}
	case "img":
		r.image(attr)
	case "br":
		r.lineBreak()
	case "sup":
		r.text([]byte("^"))
	case "q":
		r.text([]byte(`"`))
	case "hr":
		r.block()
		if r.table == nil && r.pre == nil {
			r.para("---")
		}
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.spill()
		r.block()
		r.heading = int(name[1] - '0')
	case "pre":
		r.spill()
		r.block()
		if r.pre == nil {
			r.pre = &preformatted{language: language(attr["class"])}
		}
	case "ul", "ol", "menu", "dl":
		r.block()
		first, err := strconv.Atoi(attr["start"])
		if err != nil || first < 0 || first > 1e6 {
			first = 1
		}
		r.push(container{kind: list, ordered: name == "ol", next: first})
	case "li", "dd", "dt":
		r.startItem(name)
	case "blockquote":
		r.block()
		r.push(container{kind: quotation, indent: "> "})
	case "table":
		r.spill()
		r.block()
		r.table = &table{}
	case "tr", "td", "th":
		r.startCell(name)
	case "main", "article", "section":
		r.sections++
		r.block()
	default:
		if isBlock(name) {
			r.block()
		}
	}
}

// end handles an end tag.
func (r *renderer) end(name string) {
	switch {
	case r.skipped == "":
	case name == r.skipped:
		if r.skipping--; r.skipping <= 0 {
			r.skipped = ""
		}
		return
	case endIsOptional(r.skipped) && isBlock(name):
		r.skipped = ""
	default:
		return
	}
	if r.main.open > 0 && name == r.main.name {
		if r.main.open--; r.main.open == 0 {
			r.finish()
			r.main.end = r.out.Len()
		}
	}
	if s := styleOf(name); s != 0 {
		r.line.close(s)
		return
	}
	switch name {
	case "title":
		if r.title != nil {
			r.titled, r.title = r.title.String(), nil
		}
	case "a":
		r.line.link("")
		if r.sign >= 0 && r.heading > 0 {
			r.line.dropSign(r.sign)
		}
		r.sign = -1
	case "q":
		r.text([]byte(`"`))
	case "h1", "h2", "h3", "h4", "h5", "h6":
		r.block()
		r.heading = 0
	case "pre":
		r.endPre()
	case "ul", "ol", "menu", "dl":
		r.block()
		r.pop(list)
	case "li", "dd", "dt":
		r.block()
		r.pop(item)
	case "blockquote":
		r.block()
		r.pop(quotation)
	case "tr", "td", "th", "table":
		r.endCell(name)
	case "main", "article", "section":
		r.sections = max(0, r.sections-1)
		r.block()
	default:
		if isBlock(name) {
			r.block()
		}
	}
}

// finish writes all pending text.
func (r *renderer) finish() {
	if r.table != nil {
		r.finishCell()
		r.endTable()
	}
	r.endPre()
	r.block()
}

// startMain records the beginning of the main part. If there are several, none counts.
func (r *renderer) startMain(name string) {
	r.spill()
	r.block()
	if r.main.count++; r.main.count == 1 {
		r.main.name, r.main.open, r.main.start = name, 1, r.out.Len()
	}
}

func (r *renderer) lineBreak() {
	switch {
	case r.pre != nil:
		r.pre.text.WriteByte('\n')
	case r.table != nil || r.heading > 0:
		r.line.add([]byte(" "))
	default:
		r.line.lineBreak()
	}
}

// image writes the alternative text and the address of a picture.
func (r *renderer) image(attr map[string]string) {
	alt := strings.Join(strings.Fields(attr["alt"]), " ")
	if alt == "" || len(alt) > maxLink || r.pre != nil {
		return // a decorative picture
	}
	r.line.image(alt, r.resolve(attr["src"]))
}

// resolve returns the URL of a reference, escaped for a link in Markdown. It is empty for
// references within the page and for unusable ones.
func (r *renderer) resolve(ref string) string {
	if ref != r.resolved[0] {
		r.resolved = [2]string{ref, r.follow(strings.TrimSpace(ref))}
	}
	return r.resolved[1]
}

func (r *renderer) follow(ref string) string {
	if ref == "" || ref[0] == '#' || len(ref) > maxLink {
		return ""
	}
	u, err := r.base.Parse(ref)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto":
	default:
		return ""
	}
	link := linkEscaper.Replace(u.String())
	if len(link) > maxLink {
		return ""
	}
	return link
}

var linkEscaper = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", `\`, "%5C")

func (r *renderer) endPre() {
	if r.pre == nil {
		return
	}
	text := strings.Trim(strings.ReplaceAll(r.pre.text.String(), "\r\n", "\n"), "\n")
	language := r.pre.language
	r.pre = nil
	if strings.TrimSpace(text) == "" {
		return
	}
	if !r.plain {
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		text = fence + language + "\n" + text + "\n" + fence
	}
	r.para(text)
}
