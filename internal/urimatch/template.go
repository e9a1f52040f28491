// Package urimatch matches URIs against URI templates, in bounded time for all input.
//
// The library's time grows with the square of the parts that a variable can be split into, so
// "a,a,a,…" in a URI of some kilobytes takes seconds, and its stack grows with the template.
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

// Template is a URI template (RFC 6570). It is safe for concurrent use.
type Template struct {
	lib         *uritemplate.Template
	expressions int
}

// New reads a template of at most 2 KiB, with at most 16 expressions and 16 commas.
func New(template string) (*Template, error) {
	if len(template) > maxTemplate {
		return nil, fmt.Errorf("a URI template has %d bytes, over the limit of %d", len(template), maxTemplate)
	}
	n := strings.Count(template, "{")
	if n > maxExpressions || strings.Count(template, ",") > maxExpressions {
		return nil, fmt.Errorf("a URI template has %d expressions; the limits are %d expressions and %d commas", n, maxExpressions, maxExpressions)
	}
	lib, err := uritemplate.New(template)
	if err != nil {
		return nil, err
	}
	return &Template{lib, n + strings.Count(template, ",")}, nil
}

// ErrTooMuch reports that matching a URI would take too long.
var ErrTooMuch = errors.New("the URI is too long, or has too many parts, for a URI template")

// Match returns the values of the variables in a URI, or nil if it does not match the template. The
// error is [ErrTooMuch].
func (t *Template) Match(uri string) (uritemplate.Values, error) {
	if len(uri) > maxURI {
		return nil, ErrTooMuch
	}
	// Comparing the literal beginning is cheap and excludes most URIs. A template without
	// variables must equal the URI.
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

// plain reports whether a literal needs no escapes in a URI.
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
