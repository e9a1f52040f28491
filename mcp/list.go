package mcp

import (
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// List is one page of a list that a server offers, such as its tools. It marshals to the result of
// the list method, with the Items as the member tools, prompts, resources or resourceTemplates.
type List[T Tool | Prompt | Resource | ResourceTemplate] struct {
	Items      []*T
	NextCursor string // empty on the last page
	Meta       Meta

	memo *engine.Memo
}

// member returns the name of the result member that holds the entries.
func (*List[T]) member() string {
	switch any((*T)(nil)).(type) {
	case *Tool:
		return feature.Tools.Member
	case *Prompt:
		return feature.Prompts.Member
	case *Resource:
		return feature.Resources.Member
	}
	return feature.Templates.Member
}

// listRest holds the members of list results other than the entries.
type listRest struct {
	NextCursor string `json:"nextCursor,omitempty"`
	Meta       Meta   `json:"_meta,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (l *List[T]) MarshalJSON() ([]byte, error) {
	items := l.Items
	if items == nil {
		items = []*T{}
	}
	out := append(jsonx.AppendString([]byte{'{'}, l.member()), ':')
	out, err := jsonx.AppendMarshal(out, items)
	if err != nil {
		return nil, err
	}
	rest, err := jsonx.Marshal(listRest{l.NextCursor, l.Meta})
	if err != nil {
		return nil, err
	}
	if len(rest) == len("{}") {
		return append(out, '}'), nil
	}
	return append(append(out, ','), rest[1:]...), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	var rest listRest
	if err := jsonx.Unmarshal(raw, &rest); err != nil {
		return err
	}
	*l = List[T]{NextCursor: rest.NextCursor, Meta: rest.Meta}
	items, ok := jsonx.Lookup(raw, l.member())
	if !ok {
		return nil
	}
	return jsonx.Unmarshal(items, &l.Items)
}
