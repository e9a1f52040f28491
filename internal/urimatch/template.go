// Package urimatch tells which URIs are those of a URI template, in bounded time, whoever wrote
// either of them.
//
// The time that the library takes grows with the square of what a variable may be cut into, so
// "a,a,a,…" in a URI of some kilobytes takes seconds; and its stack grows with the template.
package urimatch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// Bounds of templates and URIs.
const (
	maxTemplate    = 2 << 10  // bytes
	maxExpressions = 16       // of a template, and commas in it
	maxURI         = 16 << 10 // bytes
	maxWork        = 400_000  // about a tenth of a second
)

// Template is a URI template (RFC 6570). It may be used by several goroutines.
type Template struct {
	lib         *uritemplate.Template
	expressions int
}

// New reads a template of at most 2 KiB, with 16 expressions and 16 commas.
func New(template string) (*Template, error) {
	if len(template) > maxTemplate {
		return nil, fmt.Errorf("a URI template has %d bytes, at most %d are taken", len(template), maxTemplate)
	}
	n := strings.Count(template, "{")
	if n > maxExpressions || strings.Count(template, ",") > maxExpressions {
		return nil, fmt.Errorf("a URI template has %d expressions, at most %d with %d commas are taken", n, maxExpressions, maxExpressions)
	}
	lib, err := uritemplate.New(template)
	if err != nil {
		return nil, err
	}
	return &Template{lib, n + strings.Count(template, ",")}, nil
}

// ErrTooMuch says that nobody can tell in time whether a URI is one of a template.
var ErrTooMuch = errors.New("the URI is too long, or has too many parts, for a URI template")

// Match returns the values of the variables in a URI of the template, nil if it is none. The
// error is [ErrTooMuch].
func (t *Template) Match(uri string) (uritemplate.Values, error) {
	if len(uri) > maxURI {
		return nil, ErrTooMuch
	}
	// The literal beginning costs nothing, and tells most URIs apart. One that is all there is
	// has to be the URI.
	head, _, some := strings.Cut(t.lib.Raw(), "{")
	if !some && uri != head || !strings.HasPrefix(uri, head) && plain(head) {
		return nil, nil
	}
	if len(uri)*(8+parts(uri))*max(1, t.expressions) > maxWork {
		return nil, ErrTooMuch
	}
	return t.lib.Match(uri), nil
}

// Names returns the names of the variables.
func (t *Template) Names() []string { return t.lib.Varnames() }

// plain tells whether a literal stands in URIs as it is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || strings.IndexByte(`"'<>\^`+"`{|}%", s[i]) >= 0 {
			return false
		}
	}
	return true
}

// parts counts where a URI can be cut into values.
func parts(uri string) int {
	n := 0
	for i := range len(uri) {
		switch uri[i] {
		case ',', '/', '.', ';', '&':
			n++
		}
	}
	return n
}
