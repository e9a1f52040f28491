package schema

import (
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// member is one member of an object, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

// members splits the JSON object in data. The values share its memory.
func members(data []byte) ([]member, error) {
	if kind := jsonx.KindOf(data); kind != '{' && kind != 0 {
		return nil, fmt.Errorf("must be an object, got %s", kindName(kind))
	}
	if err := jsonx.Valid(data, maxDepth); err != nil {
		return nil, err
	}
	var list []member
	for name, value := range jsonx.Members(data) {
		list = append(list, member{string(name), value})
	}
	return list, nil
}

// kindName names the kind of a value that begins with c.
func kindName(c byte) string {
	switch c {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// isNumber reports whether text is one JSON number and nothing else.
func isNumber(text string) bool {
	b := []byte(text)
	return len(b) > 0 && b[0] > ' ' && b[len(b)-1] > ' ' && jsonx.KindOf(b) == '0' && jsonx.Valid(b, 0) == nil
}
