// Package shell writes command lines that a person can paste.
package shell

import (
	"runtime"
	"strings"
)

// Join joins words so that the person's shell splits them again: a POSIX shell, or on Windows
// PowerShell and cmd. The variable $TOKEN is left for the shell to expand.
func Join(words []string) string {
	word := posixWord
	if runtime.GOOS == "windows" {
		word = windowsWord
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = word(w)
	}
	return strings.Join(out, " ")
}

func posixWord(w string) string {
	switch {
	case expandsToken(w):
		return `"` + w + `"`
	case w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;<>()*?[]{}!#~\\"):
		return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return w
}

func expandsToken(w string) bool {
	return strings.Contains(w, "$TOKEN") && !strings.ContainsAny(strings.ReplaceAll(w, "$TOKEN", ""), "\"`$\\!")
}

// windowsWord uses double quotes, because cmd does not know others, except for what PowerShell
// would expand in them.
func windowsWord(w string) string {
	switch {
	case expandsToken(w):
		return `"` + w + `"`
	case w != "" && !strings.ContainsAny(w, " \t\n\"'`$&|;<>(){},^%") && !strings.ContainsAny(w[:1], "@#"):
		return w
	case strings.ContainsAny(w, "`$") && !strings.Contains(w, `"`):
		return "'" + strings.ReplaceAll(w, "'", "''") + "'"
	}
	end := w[len(strings.TrimRight(w, `\`)):] // programs read a backslash before a quote as part of it
	return `"` + strings.ReplaceAll(w, `"`, `\"`) + end + `"`
}
