package main

import (
	"fmt"
	"html/template"
	"iter"
	"regexp"
	"slices"
	"strings"
)

const (
	largest = 60_000 // bytes of a page
	planned = 52_000 // bytes of text and headings in a part, which leaves room for the frame
)

// A chunk is a part of a page that stays together: a heading of level 1 to 3 and all that is below it, before the next.
type chunk struct {
	head heading
	html string
}

// begin ends the chunk being written and begins the next.
func (p *page) begin(h heading) {
	p.end()
	p.chunks = append(p.chunks, chunk{head: h})
}

func (p *page) end() {
	if n := len(p.chunks); n > 0 {
		p.chunks[n-1].html = lean(p.out.String())
	}
	p.out.Reset()
}

// weight returns the bytes of a chunk with its line in a list of headings.
func (c chunk) weight() int { return len(c.html) + c.listed() }

func (c chunk) listed() int { return len(c.head.ID) + len(c.head.Title) + 60 }

// split divides a page that is too large into parts, and records the anchors that are not in the first. The first begins with a
// list of all headings, which have these anchors, so that a link to the first part leads on.
func (s *site) split(p *page) []*page {
	total, list := 0, 0
	for _, c := range p.chunks {
		total += c.weight()
		list += c.listed()
	}
	if total <= planned {
		return []*page{p}
	}
	groups := together(p.chunks)
	var cuts [][]chunk
	for n := (total + list) / planned; len(cuts) == 0 && n <= len(groups); n++ {
		cuts = divide(groups, list, (total+list)/(n+1))
	}
	if len(cuts) < 2 {
		return []*page{p} // frame says that it is too large
	}
	parts := []*page{p}
	section := ""
	for i, chunks := range cuts {
		part := p
		if i > 0 {
			part = &page{path: fmt.Sprintf("%s-%d.html", strings.TrimSuffix(p.path, ".html"), i+1), title: p.title, section: p.section, dir: p.dir, main: p}
			parts = append(parts, part)
			if chunks[0].head.Level > 2 && section != "" {
				chunks = append([]chunk{{html: fmt.Sprintf("<h2>%s, continued</h2>\n", template.HTMLEscapeString(section))}}, chunks...)
			}
			for _, c := range chunks {
				for _, id := range ids(c.html) {
					s.moved[p.path+"#"+id] = part.path
				}
			}
		}
		part.chunks = chunks
		for _, c := range chunks {
			if c.head.Level == 2 {
				section = c.head.Title
			}
		}
	}
	for i, part := range parts {
		part.part, part.parts = i+1, parts
	}
	p.chunks = slices.Insert(slices.Clip(p.chunks), 1, chunk{html: listing(parts)})
	return parts
}

// listing returns the list of the headings of all parts.
func listing(parts []*page) string {
	var out strings.Builder
	out.WriteString("<ul class=\"all\">\n")
	for i, part := range parts {
		for _, c := range part.chunks {
			if c.head.Level != 2 && c.head.Level != 3 {
				continue
			}
			id, class := "", ""
			if i > 0 {
				id = fmt.Sprintf(` id="%s"`, c.head.ID)
			}
			if c.head.Level == 3 {
				class = ` class="sub"`
			}
			fmt.Fprintf(&out, `<li%s%s><a href="/%s#%s">%s</a>`+"\n", id, class, part.path, c.head.ID, template.HTMLEscapeString(c.head.Title))
		}
	}
	out.WriteString("</ul>\n")
	return out.String()
}

// together joins the chunks of each section of level 2 that is not too large to be left whole.
func together(chunks []chunk) (groups [][]chunk) {
	for len(chunks) > 0 {
		n, size := 1, chunks[0].weight()
		for n < len(chunks) && chunks[0].head.Level == 2 && chunks[n].head.Level == 3 {
			size += chunks[n].weight()
			n++
		}
		if size <= planned/2 {
			groups = append(groups, chunks[:n])
		} else {
			for i := range n {
				groups = append(groups, chunks[i:i+1])
			}
		}
		chunks = chunks[n:]
	}
	return groups
}

// divide makes parts of about a size, the first with a list. It returns none if one is too large.
func divide(groups [][]chunk, list, size int) (parts [][]chunk) {
	var part []chunk
	n := list
	for _, g := range groups {
		weight := 0
		for _, c := range g {
			weight += c.weight()
		}
		if len(part) > 0 && (n+weight/2 > size || n+weight > planned) {
			parts, part, n = append(parts, part), nil, 0
		}
		if part, n = append(part, g...), n+weight; n > planned {
			return nil
		}
	}
	return append(parts, part)
}

// ids returns the ids of elements.
func ids(html string) (found []string) {
	for _, tag := range tags(html) {
		if _, after, ok := strings.Cut(tag, ` id="`); ok {
			id, _, _ := strings.Cut(after, `"`)
			found = append(found, id)
		}
	}
	return found
}

var simple = regexp.MustCompile(` ([a-z-]+)="([^\s"'=<>` + "`" + `]+)"`)

// linked makes the links of a page relative. While the site is made, a link within it is a path from its root, such as
// /docs/auth.html#keys, of the page before it is split. Values of attributes that need no quotation marks lose them.
func (s *site) linked(html, from string) string {
	var out strings.Builder
	for text, tag := range tags(html) {
		out.WriteString(text)
		for _, attribute := range []string{` href="`, ` src="`} {
			if before, after, ok := strings.Cut(tag, attribute+"/"); ok {
				link, rest, _ := strings.Cut(after, `"`)
				tag = before + attribute + s.relative(from, link) + `"` + rest
			}
		}
		out.WriteString(simple.ReplaceAllString(tag, " $1=$2"))
	}
	return out.String()
}

// relative returns the link from one page of the site to another.
func (s *site) relative(from, link string) string {
	to, anchor, _ := strings.Cut(link, "#")
	if anchor != "" {
		anchor = "#" + anchor
		if part := s.moved[link]; part != "" {
			to = part
		}
		if to == from {
			return anchor
		}
	}
	for {
		dir, rest, ok := strings.Cut(from, "/")
		if !ok || !strings.HasPrefix(to, dir+"/") {
			return strings.Repeat("../", strings.Count(from, "/")) + to + anchor
		}
		from, to = rest, to[len(dir)+1:]
	}
}

var (
	quotes   = strings.NewReplacer("&quot;", `"`, "&#34;", `"`, "&apos;", "'", "&#39;", "'")
	optional = map[string]bool{"</td>": true, "</th>": true, "</tr>": true, "</thead>": true, "</tbody>": true, "</li>": true, "</p>": true}
)

// lean makes HTML shorter: text needs no escapes for quotation marks, and some elements no end tag.
func lean(html string) string {
	var out strings.Builder
	for text, tag := range tags(html) {
		if strings.Contains(text, "&") {
			text = quotes.Replace(text)
		}
		out.WriteString(text)
		if !optional[tag] {
			out.WriteString(strings.Replace(tag, ` style="text-align:right"`, ` class="right"`, 1))
		}
	}
	return out.String()
}

// tags yields each text of HTML with the tag after it.
func tags(html string) iter.Seq2[string, string] {
	return func(yield func(text, tag string) bool) {
		for html != "" {
			text, rest, ok := strings.Cut(html, "<")
			tag := ""
			if ok {
				tag, rest, _ = strings.Cut(rest, ">") // attributes have it escaped
				tag = "<" + tag + ">"
			}
			if html = rest; !yield(text, tag) {
				return
			}
		}
	}
}
