// Package pattern has regular expressions that are compiled at their first use. A command of the program uses few of those that
// it is linked with, and compiling all of them at the start took longer than the command.
package pattern

import (
	"regexp"
	"sync"
)

// Lazy returns a function that returns the compiled expression. It panics at its first call if the expression is not valid.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
