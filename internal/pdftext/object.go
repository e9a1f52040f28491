package pdftext

import (
	"bytes"
	"strconv"
	"strings"
)

// Values of a PDF are nil, bool, float64, string, name, array, dict, ref, *stream and, where an operator stands, keyword.
type (
	name    string
	keyword string // "" at the end
	array   []any
	dict    map[name]any
	ref     int // the number of an object
	stream  struct {
		dict dict
		raw  []byte
	}
)

// parser reads values. It never fails: what makes no sense is a keyword, or left out.
type parser struct {
	data []byte
	at   int
	left int // values that the current one may still have
}

// next returns the next value.
func (p *parser) next() any {
	p.left = maxValues
	return p.value(maxNested)
}

func (p *parser) value(deep int) any {
	if p.left--; p.left < 0 || deep == 0 {
		p.at = len(p.data)
		return keyword("")
	}
	p.space()
	if p.at >= len(p.data) {
		return keyword("")
	}
	c := p.data[p.at]
	switch {
	case c == '/':
		p.at++
		return p.name()
	case c == '(':
		return p.text()
	case bytes.HasPrefix(p.data[p.at:], []byte("<<")):
		p.at += 2
		return pairs(p.list(deep, ">>"))
	case c == '<':
		return p.hex()
	case c == '[':
		p.at++
		return p.list(deep, "]")
	case strings.IndexByte("{})]", c) >= 0:
		p.at++
		return keyword(c)
	case c == '>':
		n := 1
		if bytes.HasPrefix(p.data[p.at:], []byte(">>")) {
			n = 2
		}
		p.at += n
		return keyword(">>"[:n])
	}
	word := string(p.run())
	if n, ok := number(word); ok {
		return n
	}
	switch word {
	case "true", "false":
		return word == "true"
	case "null":
		return nil
	}
	return keyword(word)
}

// list returns the values up to an end. Of references it makes one value.
func (p *parser) list(deep int, end keyword) array {
	var all array
	for {
		switch v := p.value(deep - 1); v {
		case keyword(""), end, keyword("endobj"), keyword("stream"): // the end may be missing
			return all
		case keyword("R"):
			if n := len(all); n >= 2 {
				num, _ := all[n-2].(float64)
				all = append(all[:n-2], ref(num))
			}
		default:
			if _, is := v.(keyword); !is {
				all = append(all, v)
			}
		}
	}
}

func pairs(all array) dict {
	d := dict{}
	for i := 0; i+1 < len(all); i++ {
		if key, ok := all[i].(name); ok {
			i++
			d[key] = all[i]
		}
	}
	return d
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

// space skips white space and comments.
func (p *parser) space() {
	for ; p.at < len(p.data); p.at++ {
		if c := p.data[p.at]; c == '%' {
			for p.at < len(p.data) && p.data[p.at] != '\n' && p.data[p.at] != '\r' {
				p.at++
			}
		} else if !isSpace(c) {
			return
		}
	}
}

// run returns the regular characters that follow.
func (p *parser) run() []byte {
	begin := p.at
	for p.at < len(p.data) && !isSpace(p.data[p.at]) && strings.IndexByte("()<>[]{}/%", p.data[p.at]) < 0 {
		p.at++
	}
	return p.data[begin:p.at]
}

func (p *parser) name() name {
	word := p.run()
	if bytes.IndexByte(word, '#') < 0 {
		return name(word)
	}
	var out []byte
	for i := 0; i < len(word); i++ {
		if word[i] == '#' && i+2 < len(word) {
			if n, err := strconv.ParseUint(string(word[i+1:i+3]), 16, 8); err == nil {
				out = append(out, byte(n))
				i += 2
				continue
			}
		}
		out = append(out, word[i])
	}
	return name(out)
}

// text reads a string in parentheses.
func (p *parser) text() string {
	var out []byte
	open := 1
	for p.at++; p.at < len(p.data); p.at++ {
		switch c := p.data[p.at]; c {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.at++
				return string(out)
			}
		case '\\':
			out = p.escaped(out)
			continue
		}
		out = append(out, p.data[p.at])
	}
	return string(out)
}

// escaped appends what a backslash stands for, and moves to its last character.
func (p *parser) escaped(out []byte) []byte {
	if p.at++; p.at >= len(p.data) {
		return out
	}
	c := p.data[p.at]
	if i := strings.IndexByte("nrtbf", c); i >= 0 {
		return append(out, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\r' && p.at+1 < len(p.data) && p.data[p.at+1] == '\n':
		p.at++
		return out
	case c == '\r', c == '\n':
		return out
	case c < '0' || c > '7':
		return append(out, c)
	}
	n := 0
	for i := 0; i < 3 && p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '7'; i++ {
		n = n*8 + int(p.data[p.at]-'0')
		p.at++
	}
	p.at--
	return append(out, byte(n))
}

// hex reads a string of hexadecimal digits.
func (p *parser) hex() string {
	var out []byte
	high, has := byte(0), false
	for p.at++; p.at < len(p.data); p.at++ {
		c := p.data[p.at]
		if c == '>' {
			p.at++
			break
		}
		i := strings.IndexByte("0123456789abcdefABCDEF", c)
		if i < 0 {
			continue
		}
		if i > 15 {
			i -= 6
		}
		if has = !has; has {
			high = byte(i) << 4
		} else {
			out = append(out, high|byte(i))
		}
	}
	if has {
		out = append(out, high)
	}
	return string(out)
}

// number reads a number. Some programs write "--5", and "1.2-3" for 1.2.
func number(word string) (float64, bool) {
	if word == "" || strings.IndexByte("0123456789+-.", word[0]) < 0 {
		return 0, false
	}
	digits := strings.TrimLeft(word, "+-")
	if i := strings.IndexByte(digits, '-'); i > 0 {
		digits = digits[:i]
	}
	for _, c := range []byte(digits) {
		if c != '.' && (c < '0' || c > '9') {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil && digits != "" && digits != "." {
		return 0, false
	}
	if word[0] == '-' {
		n = -n
	}
	return n, true
}
