package deploy

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/pattern"
	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

const (
	day = 24 * time.Hour

	maxValue = 64 << 10 // bytes of a file that a value names
)

// memberName returns the name of a field in the file: HTTP is http, OnFailure is onFailure.
func memberName(field string) string {
	if strings.ToUpper(field) == field {
		return strings.ToLower(field)
	}
	return strings.ToLower(field[:1]) + field[1:]
}

// literal reports whether a value stands in the file itself.
func literal(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !strings.Contains(n.Value, "${")
}

// text returns the value of a member: a scalar with its variables replaced, or the content of the file
// that {file: PATH} names. It is empty only after a fault.
func (r *reader) text(n *yaml.Node, member string) string {
	r.note(n, member)
	value := ""
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "file":
		path := r.scalar(n.Content[1], member)
		if path == "" {
			return ""
		}
		var err error
		if value, err = r.content(r.absolute(path)); err != nil {
			r.Fault(n.Content[1], "", "%s: %v", member, err)
			return ""
		}
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		r.Fault(n, "write text, or {file: PATH}", "%s must be text", member)
		return ""
	default:
		if value = r.scalar(n, member); value == "" {
			return ""
		}
	}
	switch {
	case strings.TrimSpace(value) == "":
		r.Fault(n, "write a value, or remove the member", "%s is empty", member)
		return ""
	case strings.ContainsFunc(value, unicode.IsControl):
		r.Fault(n, "", "%s must be one line of text", member)
		return ""
	}
	return value
}

// content reads the file of a value, without the newline at its end.
func (r *reader) content(path string) (string, error) {
	r.file.Files = append(r.file.Files, path)
	data, err := ownfile.ReadNow(path, maxValue)
	var of *os.PathError
	switch {
	case errors.As(err, &of):
		return "", fmt.Errorf("%s: %w", path, of.Err)
	case err != nil:
		return "", err
	case len(data) > maxValue:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxValue)
	case !utf8.Valid(data):
		return "", fmt.Errorf("%s is not text in UTF-8", path)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

var variable = pattern.Lazy(`\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}|)`)

// scalar returns a scalar with its variables replaced. It is empty after a fault, too.
func (r *reader) scalar(n *yaml.Node, member string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Fault(n, "", "%s must be text", member)
		return ""
	}
	if n.Value == "" {
		r.Fault(n, "write a value, or remove the member", "%s is empty", member)
	}
	ok := true
	text := variable().ReplaceAllStringFunc(n.Value, func(ref string) string {
		m := variable().FindStringSubmatch(ref)
		value := os.Getenv(m[1])
		switch {
		case m[1] == "":
			r.Fault(n, "write ${NAME} or ${NAME:-default}", "%s has a ${ that is not a variable", member)
			ok = false
		case value == "" && m[2] != "":
			return m[2][len(":-"):]
		case value == "":
			r.Fault(n, fmt.Sprintf("set it, or write ${%s:-default}", m[1]), "%s needs the variable %s, which is not set", member, m[1])
			ok = false
		}
		return value
	})
	if !ok {
		return ""
	}
	return text
}

func (r *reader) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.dir, path)
}

// path returns the file name of a member, absolute.
func (r *reader) path(n *yaml.Node, member string) string {
	text := r.text(n, member)
	if text == "" {
		return ""
	}
	return r.absolute(text)
}

// list returns the values of a list, or of a scalar as a list of one. The same value twice is a fault.
func (r *reader) list(n *yaml.Node, member string) (values []string) {
	r.note(n, member)
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	switch {
	case len(nodes) == 0:
		r.Fault(n, "remove it", "%s is an empty list", member)
	case len(nodes) > maxItems:
		r.Fault(n, "", "%s has %d values, over the limit of %d", member, len(nodes), maxItems)
		return nil
	}
	for i, n := range nodes {
		at := fmt.Sprintf("%s[%d]", member, i)
		if n.Kind == yaml.AliasNode || n.Anchor != "" {
			r.Fault(n, "write it out", "%s: anchors and aliases are not supported", at)
			continue
		}
		text := r.text(n, at)
		if text != "" && slices.Contains(values, text) {
			r.Fault(n, "keep one", "%s has the same value twice", member)
		}
		values = append(values, text) // faults too, so that indexes are those of the file
	}
	return values
}

// word returns a value that must be one of several.
func (r *reader) word(n *yaml.Node, member string, words ...string) string {
	text := r.text(n, member)
	if text != "" && !slices.Contains(words, text) {
		r.Fault(n, yamlfile.Nearest(text, words), "%s cannot be %s", member, r.shown(n, text))
	}
	return text
}

// shown returns a value for a fault, if it stands in the file itself.
func (r *reader) shown(n *yaml.Node, text string) string {
	if !literal(n) {
		return "the value it refers to"
	}
	return yamlfile.Quote(text)
}

// duration returns a time with a unit: s, m, h and the other units of Go, d for 24 hours.
func (r *reader) duration(n *yaml.Node, member string, least, most time.Duration) time.Duration {
	text := r.text(n, member)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var number float64
		if number, err = strconv.ParseFloat(days, 64); err == nil && !(math.Abs(number) < 1e5) { // nor NaN
			err = strconv.ErrRange
		}
		d = time.Duration(number * float64(day))
	}
	switch {
	case err != nil:
		r.Fault(n, "write it like 10s, 5m, 12h or 7d", "%s is %s, not a time", member, r.shown(n, text))
		return 0
	case d < least || d > most:
		r.Fault(n, fmt.Sprintf("use %s to %s", written(least), written(most)), "%s is %s, out of bounds", member, r.shown(n, text))
	}
	return d
}

// written writes a duration as people do.
func written(d time.Duration) string {
	switch {
	case d >= day && d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// units are the units of sizes, in bytes, from the longest suffix to the shortest.
var units = []struct {
	suffix string
	bytes  float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// size returns a number of bytes with a unit.
func (r *reader) size(n *yaml.Node, member string, least, most int64) int64 {
	text := r.text(n, member)
	if text == "" {
		return 0
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || math.IsNaN(value) {
			break
		}
		if size := value * u.bytes; size < float64(least) || size > float64(most) {
			r.Fault(n, fmt.Sprintf("use %s to %s", bytesOf(least), bytesOf(most)), "%s is %s, out of bounds", member, r.shown(n, text))
		} else {
			return int64(size)
		}
		return 0
	}
	r.Fault(n, "write it like 512MiB or 10GB", "%s is %s, not a size with a unit", member, r.shown(n, text))
	return 0
}

// bytesOf writes a size that is a power of 1024.
func bytesOf(n int64) string {
	for i := 3; i >= 0; i-- {
		if u := int64(units[i].bytes); n >= u && n%u == 0 {
			return fmt.Sprintf("%d%s", n/u, units[i].suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}
