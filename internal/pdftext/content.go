package pdftext

import (
	"bytes"
	"math"
	"strings"
	"unicode"
)

// matrix is [a b c d e f] of the specification.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

// mul returns the matrix that does m first and then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3], m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// state is the part of the graphics state that matters to text.
type state struct {
	ctm                                      matrix
	font                                     *font
	size, chars, words, scale, leading, rise float64
}

// reader reads the content of a page.
type reader struct {
	f        *file
	out      strings.Builder
	state    state
	saved    []state
	tm, line matrix
	unknown  int

	// The end of the last string on the page, and where it began.
	last           string
	begun, x, y, h float64
	said           string // by ActualText, in place of what is drawn
	marks          []bool // of the marked content that is open, whether it has said something
	silent         int
}

// text returns the text of a page, and how many of its characters are not known.
func (f *file) text(p page) (string, int) {
	var content []byte
	for _, v := range f.list(p.contents) {
		if s, ok := f.resolve(v).(*stream); ok && len(content) < maxDecoded {
			content = append(append(content, f.decode(s)...), '\n')
		}
	}
	r := &reader{f: f, state: state{ctm: identity, scale: 1}, tm: identity, line: identity}
	r.run(content, f.dict(p.resources), 8)
	text := strings.Map(func(c rune) rune {
		if c != '\n' && c != '\t' && unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, r.out.String())
	return strings.TrimRight(plain.Replace(text), " \t\n"), r.unknown
}

var plain = strings.NewReplacer("\u00ad", "-", "ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl")

// run reads a content stream. Forms in forms are read so deep.
func (r *reader) run(content []byte, resources dict, deep int) {
	p := &parser{data: content}
	var args array
	for at := 0; r.f.spend(p.at - at); {
		at = p.at
		v := p.next()
		word, is := v.(keyword)
		if !is {
			if len(args) < 64 {
				args = append(args, v)
			}
			continue
		}
		switch word {
		case "":
			return
		case "BI":
			skipImage(p)
		case "Do":
			r.form(r.f.dict(resources["XObject"])[nameAt(args, 0)], resources, deep)
		case "Tf":
			r.state.font = r.f.font(r.f.dict(resources["Font"])[nameAt(args, 0)])
			r.state.size = num(args, 1)
		case "BDC":
			r.mark(args, resources)
		default:
			r.operator(word, args)
		}
		args = args[:0]
	}
}

func (r *reader) operator(word keyword, args array) {
	s := &r.state
	switch word {
	case "q":
		if len(r.saved) < 1000 {
			r.saved = append(r.saved, *s)
		}
	case "Q":
		if n := len(r.saved); n > 0 {
			*s, r.saved = r.saved[n-1], r.saved[:n-1]
		}
	case "cm":
		s.ctm = matrixOf(args).mul(s.ctm)
	case "BT":
		r.tm, r.line = identity, identity
	case "Tc":
		s.chars = num(args, 0)
	case "Tw":
		s.words = num(args, 0)
	case "Tz":
		s.scale = num(args, 0) / 100
	case "TL":
		s.leading = num(args, 0)
	case "Ts":
		s.rise = num(args, 0)
	case "Td":
		r.move(num(args, 0), num(args, 1))
	case "TD":
		s.leading = -num(args, 1)
		r.move(num(args, 0), num(args, 1))
	case "Tm":
		r.line = matrixOf(args)
		r.tm = r.line
	case "T*":
		r.move(0, -s.leading)
	case "Tj":
		r.show(args)
	case "TJ":
		if len(args) > 0 {
			all, _ := args[0].(array)
			r.show(all)
		}
	case "'", `"`:
		if word == `"` && len(args) == 3 {
			s.words, s.chars, args = num(args, 0), num(args, 1), args[2:]
		}
		r.move(0, -s.leading)
		r.show(args)
	case "BMC":
		r.mark(nil, nil)
	case "EMC":
		if n := len(r.marks); n > 0 {
			if r.marks[n-1] {
				r.silent--
			}
			r.marks = r.marks[:n-1]
		}
	}
}

// mark begins marked content, which may have a text of its own.
func (r *reader) mark(args array, resources dict) {
	var about dict
	if len(args) > 1 {
		if n, ok := args[1].(name); ok {
			about = r.f.dict(r.f.dict(resources["Properties"])[n])
		} else {
			about = r.f.dict(args[1])
		}
	}
	text, has := r.f.resolve(about["ActualText"]).(string)
	if len(r.marks) == 1000 {
		r.marks = r.marks[:0]
		r.silent = 0
	}
	r.marks = append(r.marks, has)
	if !has {
		return
	}
	if r.silent++; r.silent == 1 {
		if utf, ok := strings.CutPrefix(text, "\xfe\xff"); ok {
			text = utf16Text(utf)
		}
		r.said = text
	}
}

func (r *reader) move(x, y float64) {
	r.line = matrix{1, 0, 0, 1, x, y}.mul(r.line)
	r.tm = r.line
}

// form reads a form, which is content of its own.
func (r *reader) form(v any, resources dict, deep int) {
	s, ok := r.f.resolve(v).(*stream)
	if !ok || deep == 0 || r.f.resolve(s.dict["Subtype"]) != name("Form") {
		return
	}
	before, saved := r.state, r.saved
	if m := r.f.list(s.dict["Matrix"]); len(m) == 6 {
		r.state.ctm = matrixOf(m).mul(r.state.ctm)
	}
	if own := r.f.dict(s.dict["Resources"]); own != nil {
		resources = own
	}
	r.saved = nil
	r.run(r.f.decode(s), resources, deep-1)
	r.state, r.saved = before, saved
}

// show writes strings, and moves by the numbers between them.
func (r *reader) show(all array) {
	s := &r.state
	for _, v := range all {
		switch v := v.(type) {
		case float64:
			r.tm = matrix{1, 0, 0, 1, -v / 1000 * s.size * s.scale, 0}.mul(r.tm)
		case string:
			if s.font == nil {
				continue
			}
			var text strings.Builder
			width := 0.0
			apart := s.chars > 0.2*s.size && len(v) <= 4 // Ghostscript writes "a b" so
			for v != "" {
				c, n, w := s.font.next(v)
				w = w*s.size + s.chars
				if n == 1 && v[0] == ' ' {
					w += s.words
				}
				if c == "" || c == "\x00" {
					c = "\uFFFD"
					r.unknown++
				}
				if apart && text.Len() > 0 {
					c = " " + c
				}
				text.WriteString(c)
				width += w * s.scale
				v = v[n:]
			}
			from := matrix{s.size * s.scale, 0, 0, s.size, 0, s.rise}.mul(r.tm).mul(s.ctm)
			r.tm = matrix{1, 0, 0, 1, width, 0}.mul(r.tm)
			to := matrix{s.size * s.scale, 0, 0, s.size, 0, s.rise}.mul(r.tm).mul(s.ctm)
			r.write(text.String(), from, to)
		}
	}
}

// write writes a string that goes from one point of the page to another, and the space or line break before it.
func (r *reader) write(text string, from, to matrix) {
	r.f.spend(len(text))
	if r.silent > 0 {
		text, r.said = r.said, ""
		if text == "" {
			r.x, r.y = to[4], to[5]
			return
		}
	}
	size := math.Hypot(from[2], from[3])
	wide := math.Hypot(from[0], from[1])
	if wide == 0 || size == 0 {
		return
	}
	ux, uy := from[0]/wide, from[1]/wide
	dx, dy := from[4]-r.x, from[5]-r.y
	along, across := dx*ux+dy*uy, math.Abs(dy*ux-dx*uy)
	high := max(size, r.h)
	switch start := from[4]*ux + from[5]*uy; {
	case r.out.Len() == 0:
	case text == r.last && across < size/10 && math.Abs(start-r.begun) < size/10:
		return // bold, or with a shadow: drawn twice
	case across > 2.2*high:
		r.out.WriteString("\n\n")
	case across > high/2 || along < -size:
		r.out.WriteByte('\n')
	case along > 2*size:
		r.out.WriteByte('\t')
	case along > 0.1*size && !strings.HasPrefix(text, " ") && !strings.HasSuffix(r.last, " "):
		r.out.WriteByte(' ')
	}
	r.out.WriteString(text)
	r.last, r.begun = text, from[4]*ux+from[5]*uy
	r.x, r.y, r.h = to[4], to[5], size
}

// skipImage skips a picture in the content, which ends in EI.
func skipImage(p *parser) {
	rest := p.data[p.at:]
	i := max(bytes.Index(rest, []byte("ID")), 0)
	for {
		n := bytes.Index(rest[i:], []byte("EI"))
		if n < 0 {
			p.at = len(p.data)
			return
		}
		i += n + 2
		if i > 2 && isSpace(rest[i-3]) && (i == len(rest) || isSpace(rest[i])) {
			p.at += i
			return
		}
	}
}

func num(args array, i int) float64 {
	if i >= len(args) {
		return 0
	}
	n, _ := args[i].(float64)
	return n
}

func nameAt(args array, i int) name {
	if i >= len(args) {
		return ""
	}
	n, _ := args[i].(name)
	return n
}

func matrixOf(args array) (m matrix) {
	for i := range m {
		m[i] = num(args, i)
	}
	return m
}
