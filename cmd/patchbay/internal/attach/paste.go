package attach

import (
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Bounds of what is looked at as paths.
const (
	maxPaste = 8 << 10 // bytes
	maxPaths = 20
)

// Pasted returns the mentions of the files and folders that a pasted text consists of, or "" if it is
// other text. A terminal pastes the paths of files that are dropped on it: quoted, with backslashes before
// spaces, or as file:// addresses, with spaces or line breaks between them. A path on a Windows network
// is not looked up, which would send the person's name there.
func Pasted(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxPaste {
		return ""
	}
	if m := mentionOf(text); m != "" { // a path with spaces that is not quoted
		return m
	}
	words := pathWords(text, runtime.GOOS == "windows")
	if words == nil || len(words) > maxPaths {
		return ""
	}
	for i, w := range words {
		if words[i] = mentionOf(w); words[i] == "" {
			return ""
		}
	}
	return strings.Join(words, " ")
}

// mentionOf returns the mention of an absolute or plainly relative path of an existing file or folder, or "".
func mentionOf(path string) string {
	if address, ok := strings.CutPrefix(path, "file://"); ok {
		u, err := url.Parse("file://" + address)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return ""
		}
		path = u.Path
		if runtime.GOOS == "windows" {
			path = strings.TrimPrefix(path, "/") // of /C:/…
		}
	}
	native := local(path)
	if !filepath.IsAbs(native) && !slices.ContainsFunc([]string{"./", "../", `.\`, `..\`}, func(begin string) bool { return strings.HasPrefix(path, begin) }) {
		return ""
	}
	if strings.HasPrefix(filepath.ToSlash(native), "//") || strings.ContainsAny(path, "\"\n\r") {
		return ""
	}
	is, err := os.Stat(native)
	if err != nil || !is.Mode().IsRegular() && !is.IsDir() {
		return ""
	}
	if strings.ContainsAny(path, " \t'(),;") || screen.OneLine(path) != path {
		return `@"` + path + `"`
	}
	return "@" + path
}

// pathWords splits a text into paths; nil: a quote is open. On Windows a backslash is part of a path.
func pathWords(text string, windows bool) []string {
	var words []string
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'' && !windows:
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 || escaped {
		return nil
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
