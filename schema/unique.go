package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// uniqueItems finds items that are equal as JSON: 1 and 1.0 are, and objects
// are whatever the order of their members.
type uniqueItems struct{ seen map[string]int }

// add returns the earlier item that the item i, with the text raw, repeats.
func (u *uniqueItems) add(raw []byte, i int) (earlier int, dup bool) {
	v, err := parseAny(raw)
	if err != nil {
		return 0, false
	}
	key := string(appendCanonical(nil, v))
	if j, dup := u.seen[key]; dup {
		return j, true
	}
	if u.seen == nil {
		u.seen = map[string]int{}
	}
	u.seen[key] = i
	return 0, false
}

// appendCanonical appends a text that equal JSON values share.
func appendCanonical(dst []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for _, k := range sortedKeys(v) {
			dst = strconv.AppendQuote(dst, k)
			dst = appendCanonical(append(dst, ':'), v[k])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = append(appendCanonical(dst, e), ',')
		}
		return append(dst, ']')
	case json.Number:
		n := parseDecimal([]byte(v))
		if len(n.digits) == 0 {
			n.exp = 0
		}
		if n.neg {
			dst = append(dst, '-')
		}
		dst = append(append(dst, n.digits...), 'e')
		return strconv.AppendInt(dst, int64(n.exp), 10)
	case string:
		return strconv.AppendQuote(dst, v)
	}
	return fmt.Append(dst, v)
}
