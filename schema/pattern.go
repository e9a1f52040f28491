package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	expression "github.com/patchbay-dev/patchbay/internal/pattern"
)

// maxPatternSize bounds all patterns of a foreign schema together, in steps of the compiled
// regexp: x{1000} is seven bytes and a thousand steps.
const maxPatternSize = 100_000

// pattern is a regular expression of a foreign schema.
type pattern struct {
	re   *regexp.Regexp
	text string // as in the schema
	size int
}

// patternSet holds the patterns of one schema.
type patternSet struct {
	known map[string]*pattern
	size  int
}

var errPatterns = errors.New("the patterns in the schema are too large")

// pattern compiles the text of the pattern at a place.
func (c *compiler) pattern(at int32, text string) *pattern {
	if p := c.patterns.known[text]; p != nil {
		return p
	}
	if len(text) > maxPatternInput {
		c.fail(errPatterns)
		return nil
	}
	parsed, err := syntax.Parse(goPattern(text), syntax.Perl)
	if err != nil {
		c.fault(at, "must be of the format \"regex\", got "+quote(text))
		return nil
	}
	p := &pattern{text: text, size: expression.Steps(parsed)}
	if c.patterns.size += p.size; c.patterns.size > maxPatternSize {
		c.fail(errPatterns)
		return nil
	}
	if !c.onlyCheck {
		if p.re, err = regexp.Compile(goPattern(text)); err != nil {
			c.fault(at, "must be of the format \"regex\", got "+quote(text))
			return nil
		}
	}
	if c.patterns.known == nil {
		c.patterns.known = map[string]*pattern{}
	}
	c.patterns.known[text] = p
	return p
}

// errPatternInput ends a validation in which a text is too long for a pattern.
var errPatternInput = fmt.Errorf("has a text of more than %d bytes where a pattern is to be matched", maxPatternInput)

// match reports whether s contains a match of the pattern.
func (p *pattern) match(r *run, s string) bool {
	if len(s) > maxPatternInput {
		r.giveUp(errPatternInput)
		return false
	}
	return r.spend(2+len(s)/8+len(s)*p.size/128) && p.re.MatchString(s)
}

// goPattern rewrites a pattern of ECMAScript for regexp: \u00e9 becomes \x{00e9}.
func goPattern(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == 'u' && i+6 <= len(text) {
				if _, err := strconv.ParseUint(text[i+2:i+6], 16, 16); err == nil {
					b.WriteString(`\x{` + text[i+2:i+6] + `}`)
					i += 5
					continue
				}
			}
			b.WriteByte(text[i])
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
