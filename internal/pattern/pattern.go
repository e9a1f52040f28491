// Package pattern has regular expressions that are compiled at their first use. A command of the program uses few of those that
// it is linked with, and compiling all of them at the start took longer than the command.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"sync"
)

// Lazy returns a function that returns the compiled expression. It panics at its first call if the expression is not valid.
func Lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// Steps estimates how many steps an expression is compiled to: x{1000} is seven bytes and a thousand steps.
func Steps(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += Steps(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
