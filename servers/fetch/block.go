package fetch

import (
	"slices"
	"strconv"
	"strings"
)

type containerKind int

const (
	quotation containerKind = iota
	list
	item
)

// container is an element that indents its blocks.
type container struct {
	kind    containerKind
	ordered bool
	next    int    // number of the next item of an ordered list
	marker  string // before the first line of an item, empty once it is written
	indent  string // before all other lines
}

// block ends the current paragraph. Cells of a table do not have paragraphs.
func (r *renderer) block() {
	switch {
	case r.pre != nil:
		if text := r.pre.text.String(); text != "" && !strings.HasSuffix(text, "\n") {
			r.pre.text.WriteByte('\n') // an element that holds one line
		}
		return
	case r.table != nil && r.table.inCell:
		r.line.add([]byte(" "))
		return
	}
	text := r.line.flush(r.plain, false)
	if r.heading > 0 {
		text = strings.Join(strings.Fields(text), " ")
	}
	switch {
	case text == "":
		return
	case r.plain:
	case r.heading > 0:
		text = strings.Repeat("#", r.heading) + " " + text
	default:
		text = guardLine(text)
	}
	r.para(text)
}

// para writes a block with the indentation of its containers.
func (r *renderer) para(text string) {
	if r.out.Len() > 0 {
		r.out.WriteByte('\n')
		last := len(r.containers) - 1
		if tight := last >= 0 && r.containers[last].marker != "" && r.inList; !tight {
			r.out.WriteString(strings.TrimRight(r.prefix(min(r.depth, last+1), false), " "))
			r.out.WriteByte('\n')
		}
	}
	for n := 0; ; n++ {
		first, rest, more := strings.Cut(text, "\n")
		prefix := r.prefix(len(r.containers), n == 0)
		if first == "" {
			prefix = strings.TrimRight(prefix, " ")
		}
		r.out.WriteString(prefix)
		r.out.WriteString(first)
		if !more {
			break
		}
		r.out.WriteByte('\n')
		text = rest
	}
	r.depth = len(r.containers)
	r.inList = slices.ContainsFunc(r.containers, func(c container) bool { return c.kind == list })
}

// prefix is the text before a line within the first n containers.
func (r *renderer) prefix(containers int, mark bool) string {
	if containers == 0 {
		return ""
	}
	var b strings.Builder
	for i := range r.containers[:containers] {
		c := &r.containers[i]
		if mark && c.marker != "" {
			b.WriteString(c.marker)
			c.marker = ""
		} else {
			b.WriteString(c.indent)
		}
	}
	return b.String()
}

func (r *renderer) push(c container) {
	if r.table != nil {
		return
	}
	if len(r.containers) >= 2*maxNesting {
		r.tooDeep++
		return
	}
	r.containers = append(r.containers, c)
}

// pop closes the innermost container of a kind and all within it. An item ends only
// inside its list.
func (r *renderer) pop(kind containerKind) {
	if r.table != nil {
		return
	}
	if r.tooDeep > 0 {
		r.tooDeep--
		return
	}
	for i := len(r.containers) - 1; i >= 0; i-- {
		if r.containers[i].kind == kind {
			r.containers = r.containers[:i]
			break
		}
		if kind == item && r.containers[i].kind == list {
			break
		}
	}
	if !slices.ContainsFunc(r.containers, func(c container) bool { return c.kind == list }) {
		r.inList = false
	}
}

func (r *renderer) startItem(name string) {
	r.block()
	if r.table != nil {
		if name == "li" {
			r.line.add([]byte(" • "))
		}
		return
	}
	if r.tooDeep == 0 {
		r.pop(item) // end tags of items are optional
	}
	if name == "dt" {
		return
	}
	c := container{kind: item, marker: "- ", indent: "  "}
	if name == "dd" {
		c.marker = ": "
	} else if last := len(r.containers) - 1; last >= 0 && r.containers[last].kind == list && r.containers[last].ordered {
		c.marker = strconv.Itoa(r.containers[last].next) + ". "
		c.indent = strings.Repeat(" ", len(c.marker))
		r.containers[last].next++
	}
	r.push(c)
}
