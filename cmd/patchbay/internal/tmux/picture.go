package tmux

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// The colours of a picture: of text and background, and the sixteen of a terminal. All but black are readable on the background.
const foreground, background = "#d8dce3", "#16181d"

var colours = [...]string{
	"#3b4048", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#d8dce3",
	"#8b949e", "#ffa198", "#a5f3ac", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0f5", "#ffffff",
}

// pen is how a terminal writes: the attributes of SGR sequences that are in effect.
type pen struct {
	bold, dim, italic, underline, reverse bool
	text, back                            string // empty means the default
}

var sgr = pattern.Lazy(`\x1b\[([0-9;]*)m`)

// Picture draws lines with SGR sequences, as Painted returns them, as an SVG. The label is its description for people who do not see it. A
// sequence that it does not know is an error.
func Picture(lines, label string) (string, error) {
	const column, row, left, top = 7.8, 19, 16, 28
	var text, back strings.Builder
	var p pen
	width, height := 0, 0
	for line := range strings.Lines(strings.TrimRight(lines, "\n ") + "\n") {
		line, y, at := strings.TrimRight(line, "\n"), top+height*row, 0
		height++
		for line != "" {
			piece := line
			next := sgr().FindStringSubmatchIndex(line)
			if next != nil {
				piece = line[:next[0]]
			}
			if n := screen.Columns(piece); n > 0 {
				fill, behind := p.colours()
				x, long := left+float64(at)*column, float64(n)*column
				if behind != background {
					fmt.Fprintf(&back, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", x, y-14, long, row, behind)
				}
				if strings.TrimSpace(piece) != "" {
					shown := strings.ReplaceAll(html.EscapeString(piece), " ", "\u00a0") // spaces would be joined
					fmt.Fprintf(&text, "<text x=\"%.1f\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\"%s>%s</text>\n", x, y, long, p.attributes(fill), shown)
				}
				at += n
			}
			if next == nil {
				break
			}
			if err := p.change(line[next[2]:next[3]]); err != nil {
				return "", err
			}
			line = line[next[1]:]
		}
		width = max(width, at)
	}
	if i := strings.IndexFunc(text.String(), func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
		return "", fmt.Errorf("the screen has a control character: %.40q", text.String()[i:])
	}
	w, h := int(float64(width)*column)+2*left, height*row+top
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", w, h, w, h, html.EscapeString(label)) +
		fmt.Sprintf("<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"%s\"/>\n%s", background, back.String()) +
		fmt.Sprintf("<g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"%s\">\n%s</g>\n</svg>\n", foreground, text.String()), nil
}

// colours returns the colours of text and background.
func (p *pen) colours() (text, back string) {
	text, back = foreground, background
	if p.bold {
		text = "#ffffff"
	}
	if p.dim {
		text = "#9aa3ae"
	}
	if p.text != "" {
		text = p.text
	}
	if p.back != "" {
		back = p.back
	}
	if p.reverse {
		text, back = back, text
	}
	return text, back
}

func (p *pen) attributes(fill string) string {
	var s string
	if fill != foreground {
		s += ` fill="` + fill + `"`
	}
	if p.bold {
		s += ` font-weight="bold"`
	}
	if p.italic {
		s += ` font-style="italic"`
	}
	if p.underline {
		s += ` text-decoration="underline"`
	}
	return s
}

// change applies the parameters of an SGR sequence.
func (p *pen) change(parameters string) error {
	codes := strings.Split(parameters, ";")
	for len(codes) > 0 {
		n, _ := strconv.Atoi(codes[0]) // no parameter is 0
		codes = codes[1:]
		switch {
		case n == 0:
			*p = pen{}
		case n == 1:
			p.bold = true
		case n == 2:
			p.dim = true
		case n == 3:
			p.italic = true
		case n == 4:
			p.underline = true
		case n == 7:
			p.reverse = true
		case n == 22:
			p.bold, p.dim = false, false
		case n == 23:
			p.italic = false
		case n == 24:
			p.underline = false
		case n == 27:
			p.reverse = false
		case n >= 30 && n <= 37:
			p.text = colours[n-30]
		case n >= 90 && n <= 97:
			p.text = colours[n-90+8]
		case n == 39:
			p.text = ""
		case n >= 40 && n <= 47:
			p.back = colours[n-40]
		case n >= 100 && n <= 107:
			p.back = colours[n-100+8]
		case n == 49:
			p.back = ""
		default:
			return fmt.Errorf("the picture has no colour or style for SGR %q", parameters)
		}
	}
	return nil
}
