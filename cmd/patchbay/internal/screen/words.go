package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/shell"
	"github.com/patchbay-dev/patchbay/internal/spelling"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Shell joins words so that the person's shell splits them again, see [shell.Join].
func Shell(words []string) string { return shell.Join(words) }

// Quantity returns a number of things: "1 tool", "2 tools".
func Quantity(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Clip shortens text from a peer to 2000 bytes.
func Clip(s string) string { return text.Clip(s, 2000) }

// LastLines returns the last n lines of s.
func LastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// DidYouMean proposes the name nearest to a word: `; did you mean "echo"?`. It returns "" if none
// is near, and ignores names that begin with "__".
func DidYouMean(word string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if strings.HasPrefix(n, "__") {
			continue
		}
		d := spelling.Distance(strings.ToLower(word), strings.ToLower(n))
		if d < least && d < max(len(n), len(word)) {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// ShortTime formats a duration with about three digits.
func ShortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// Age formats the time since t: "5s", "3h20m", "4d".
func Age(t, now time.Time) string {
	d := now.Sub(t).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// About combines a title and a description into the text beside a name.
func About(name, title, description string) string {
	title, description = strings.TrimSpace(title), strings.TrimSpace(description)
	switch {
	case title == "" || SameWords(title, name), strings.HasPrefix(description, title):
		return description
	case description == "":
		return title
	}
	return title + ": " + description
}

// SameWords reports whether a title only repeats a name.
func SameWords(title, name string) bool {
	fold := strings.NewReplacer("_", " ", "-", " ", ".", " ")
	return strings.EqualFold(fold.Replace(title), fold.Replace(name))
}
