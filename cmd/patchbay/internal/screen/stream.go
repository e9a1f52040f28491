package screen

import (
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// Paper is what lines are rendered for.
type Paper struct {
	Width int // in columns
	Color bool
	Plain bool // texts are not rendered
}

// Stream renders Markdown while it arrives. It returns the text piece by piece: finished paragraphs,
// and lines of code, which later text cannot change.
type Stream struct {
	gone  int    // bytes of the text that were returned
	fence string // the open code fence at that point; empty: none
	gap   int    // blank lines before the next text
}

// maxTail bounds an unfinished paragraph, in bytes.
const maxTail = 4 << 10

var fenceLine = pattern.Lazy("^ {0,3}(`{3,}|~{3,})([^`]*)$")

// Settled returns the new lines of a text that are final. If all is set, the text is complete.
func (s *Stream) Settled(text string, all bool, p Paper) []string {
	n, fence := len(text), s.fence
	if !all {
		n, fence = s.cut(text)
	}
	if n <= s.gone {
		return nil
	}
	lines := s.rendered(text[s.gone:n], p)
	if all && len(lines) > 0 {
		lines = append(lines, "")
	}
	s.gap = gapAfter(text[:n])
	if s.fence == "" && fence == "" {
		s.gap = min(s.gap, 1)
	}
	s.gone, s.fence = n, fence
	return lines
}

// Rest returns the lines that are not final.
func (s *Stream) Rest(text string, p Paper) []string {
	if strings.TrimSpace(text[s.gone:]) == "" {
		return nil
	}
	return s.rendered(text[s.gone:], p)
}

// Begun reports whether lines were returned.
func (s *Stream) Begun() bool { return s.gone > 0 }

// cut returns how much of the text is final, and the code fence that is open there.
func (s *Stream) cut(text string) (n int, fence string) {
	n, fence = s.gone, s.fence
	inside := s.fence
	at := s.gone
	for line := range strings.Lines(text[s.gone:]) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		at += len(line)
		bare := strings.TrimRight(line, "\r\n")
		switch f := fenceLine().FindStringSubmatch(bare); {
		case inside == "" && f != nil:
			inside = f[1]
		case inside == "" && strings.TrimSpace(bare) == "":
			n, fence = at, ""
		case inside != "" && f != nil && strings.HasPrefix(f[1], inside) && strings.TrimSpace(f[2]) == "":
			inside = ""
			n, fence = at, ""
		case inside != "":
			n, fence = at, inside
		}
	}
	if n == s.gone && inside == "" && len(text)-n > maxTail {
		if space := strings.LastIndexAny(text[n:], " \n"); space > 0 {
			n += space + 1
		} else {
			for n = len(text); !utf8.ValidString(text[s.gone:n]) && n > len(text)-utf8.UTFMax; n-- {
			}
		}
	}
	return min(n, len(text)), fence
}

// rendered renders a piece of the text.
func (s *Stream) rendered(piece string, p Paper) []string {
	if p.Plain {
		out := make([]string, s.gap)
		return append(out, strings.Split(strings.TrimRight(Visible(piece), "\n"), "\n")...)
	}
	if s.fence != "" {
		piece = s.fence + "\n" + piece
	}
	out := make([]string, s.gap)
	text := strings.TrimRight(Markdown(strings.ReplaceAll(Visible(piece), "\t", "    "), p.Width, p.Color), "\n")
	if text == "" {
		return nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, Fold(line, p.Width)...)
	}
	return out
}

// gapAfter counts the blank lines at the end of a text.
func gapAfter(text string) int {
	bare := strings.TrimRight(text, "\n")
	return max(0, len(text)-len(bare)-1)
}
