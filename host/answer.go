package host

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxOpened bounds how many brackets of an answer are tried as the beginning of its JSON.
const maxOpened = 200

// jsonIn returns the JSON of an answer for which fits returns nil: all of the answer, without a
// Markdown fence, or the only such object or array in its text.
func jsonIn(text string, fits func(answer []byte) error) (answer []byte, err error) {
	answer = bareJSON(text)
	if err = fits(answer); err == nil || jsonx.Valid(answer, 0) == nil {
		return answer, err
	}
	err = errors.New("it is not JSON")
	var found [][]byte
	all := []byte(text)
	for i, tried := 0, 0; tried < maxOpened; tried++ {
		next := bytes.IndexAny(all[i:], "{[")
		if next < 0 {
			break
		}
		i += next
		end, broken := jsonx.ScanValue(all, i, 0, 0)
		if broken != nil {
			i++
			continue
		}
		value := all[i:end]
		if misfit := fits(value); misfit != nil {
			err = fmt.Errorf("the JSON in it: %w", misfit)
		} else if !slices.ContainsFunc(found, func(f []byte) bool { return bytes.Equal(jsonx.Canonical(f), jsonx.Canonical(value)) }) {
			found = append(found, value)
		}
		i = end
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("it has %d different JSON values that fit", len(found))
}

// bareJSON returns the JSON of an answer without a Markdown fence.
func bareJSON(text string) []byte {
	b := bytes.TrimSpace([]byte(text))
	if inner, ok := bytes.CutPrefix(b, []byte("```")); ok {
		if inner, ok = bytes.CutSuffix(inner, []byte("```")); ok {
			if _, rest, ok := bytes.Cut(inner, []byte("\n")); ok {
				return bytes.TrimSpace(rest)
			}
		}
	}
	return b
}
