package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	says "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// explain turns the library's tree of errors about value into faults in the
// words of Type.Decode.
func explain(failed *jsonschema.ValidationError, value any) []Fault {
	x := explainer{root: value}
	x.walk(failed)
	slices.SortStableFunc(x.faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem))
	})
	return slices.Compact(x.faults)
}

type explainer struct {
	root   any
	faults []Fault
}

// locate writes an instance location as a path, and finds the value there.
func (x *explainer) locate(tokens []string) (path string, value any) {
	value = x.root
	for _, token := range tokens {
		switch v := value.(type) {
		case []any:
			path += "[" + token + "]"
			value = nil
			if i, err := strconv.Atoi(token); err == nil && 0 <= i && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			path = joinPath(path, pathName(token))
			value = v[token]
		default:
			path, value = joinPath(path, pathName(token)), nil
		}
	}
	return path, value
}

func (x *explainer) fault(path, problem string) {
	x.faults = append(x.faults, Fault{path, problem})
}

func (x *explainer) walk(e *jsonschema.ValidationError) {
	path, value := x.locate(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *says.Schema, *says.Group, *says.Reference, *says.AllOf:
		// When a part of a schema fails, all that it covers counts as
		// unevaluated. Those errors say nothing: the part's own do.
		failed := slices.ContainsFunc(e.Causes, composed)
		for _, cause := range e.Causes {
			if !failed || !unevaluated(cause) {
				x.walk(cause)
			}
		}
	case *says.AnyOf:
		x.alternatives(e, path, value)
	case *says.OneOf:
		if k.Subschemas != nil {
			x.fault(path, "fits more than one of the alternatives, must fit exactly one")
			return
		}
		x.alternatives(e, path, value)
	case *says.Type:
		x.fault(path, wantTypes(k.Want)+", got "+gotType(k, value))
	case *says.Enum:
		x.fault(path, "must be "+oneOf(texts(k.Want))+", got "+brief(k.Got))
	case *says.Const:
		x.fault(path, "must be "+excerpt(string(jsonText(k.Want)))+", got "+brief(k.Got))
	case *says.Required:
		x.missing(path, k.Missing, "")
	case *says.Dependency:
		x.missing(path, k.Missing, k.Prop)
	case *says.DependentRequired:
		x.missing(path, k.Missing, k.Prop)
	case *says.AdditionalProperties:
		for _, name := range k.Properties {
			x.fault(path, "unknown property "+quote(name))
		}
	case *says.FalseSchema:
		n := len(e.InstanceLocation)
		if n > 0 && unevaluated(e) {
			parent, _ := x.locate(e.InstanceLocation[:n-1])
			x.fault(parent, "unknown property "+quote(e.InstanceLocation[n-1]))
			return
		}
		x.fault(path, "is not allowed here")
	case *says.PropertyNames:
		// The library shares the location of this one with its neighbours, so
		// it may be wrong. Say it only if the property is really there.
		if m, ok := value.(map[string]any); ok {
			if _, there := m[k.Property]; !there {
				path = ""
			}
		}
		x.fault(path, "property name "+quote(k.Property)+" is not allowed"+x.first(e.Causes, ": "))
	case *says.MinLength:
		x.size(path, k.Got, k.Want, "at least", "character")
	case *says.MaxLength:
		x.size(path, k.Got, k.Want, "at most", "character")
	case *says.MinItems:
		x.size(path, k.Got, k.Want, "at least", "item")
	case *says.MaxItems:
		x.size(path, k.Got, k.Want, "at most", "item")
	case *says.MinProperties:
		x.size(path, k.Got, k.Want, "at least", "property")
	case *says.MaxProperties:
		x.size(path, k.Got, k.Want, "at most", "property")
	case *says.Minimum:
		x.bound(path, "at least", k.Got, k.Want)
	case *says.Maximum:
		x.bound(path, "at most", k.Got, k.Want)
	case *says.ExclusiveMinimum:
		x.bound(path, "more than", k.Got, k.Want)
	case *says.ExclusiveMaximum:
		x.bound(path, "less than", k.Got, k.Want)
	case *says.MultipleOf:
		x.bound(path, "a multiple of", k.Got, k.Want)
	case *says.Pattern:
		x.fault(path, "must match the pattern "+quote(k.Want)+", got "+quote(k.Got))
	case *says.Format:
		want := "must be of the format " + quote(k.Want)
		if f := formats[k.Want]; f != nil {
			want = "must be " + f.want
		}
		x.fault(path, want+", got "+brief(k.Got))
	case *says.UniqueItems:
		x.fault(path, fmt.Sprintf("items must differ, but item %d repeats item %d", k.Duplicates[1], k.Duplicates[0]))
	case *says.AdditionalItems:
		x.fault(path, fmt.Sprintf("has %d items too many", k.Count))
	case *says.Contains:
		x.fault(path, "has no item of the kind that must be there"+x.first(e.Causes, ": "))
	case *says.MinContains:
		x.fault(path, fmt.Sprintf("must have at least %d items of a kind, got %d", k.Want, len(k.Got)))
	case *says.MaxContains:
		x.fault(path, fmt.Sprintf("must have at most %d items of a kind, got %d", k.Want, len(k.Got)))
	case *says.Not:
		x.fault(path, "is what the schema excludes")
	case *says.RefCycle:
		x.fault(path, "cannot be checked: the schema refers to itself for ever")
	default:
		problem := "does not fit the schema"
		if k != nil {
			problem += " at " + strings.Join(k.KeywordPath(), "/")
		}
		x.fault(path, problem)
	}
}

// composed reports whether e comes from a keyword that applies other schemas
// to the same value.
func composed(e *jsonschema.ValidationError) bool {
	switch e.ErrorKind.(type) {
	case *says.Reference, *says.AllOf, *says.AnyOf, *says.OneOf:
		return true
	}
	return false
}

// unevaluated reports whether e is about a property that unevaluatedProperties
// refuses.
func unevaluated(e *jsonschema.ValidationError) bool {
	_, refused := e.ErrorKind.(*says.FalseSchema)
	return refused && strings.HasSuffix(e.SchemaURL, "/unevaluatedProperties")
}

// alternatives explains an anyOf or oneOf none of which fits. Alternatives
// that are for another type of value, or that another tag stands in, were not
// meant; if one is left its faults are the faults.
func (x *explainer) alternatives(e *jsonschema.ValidationError, path string, value any) {
	var meant []*jsonschema.ValidationError
	var types []string
	depth := len(e.InstanceLocation)
	for _, cause := range e.Causes {
		if k := typeAt(cause, depth); k != nil {
			types = append(types, k.Want...)
			continue
		}
		meant = append(meant, cause)
	}
	if len(meant) == 0 && len(types) > 0 {
		x.fault(path, wantTypes(types)+", got "+gotType(&says.Type{Got: typeName(value), Want: types}, value))
		return
	}
	if len(meant) > 1 {
		tagged := slices.DeleteFunc(slices.Clone(meant), func(c *jsonschema.ValidationError) bool { return otherTag(c, depth) })
		if len(tagged) == 1 {
			meant = tagged
		}
	}
	if len(meant) == 1 {
		x.walk(meant[0])
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "fits none of %d alternatives", len(e.Causes))
	for i, cause := range meant {
		if i == 3 {
			b.WriteString("; ...")
			break
		}
		sep := "; or "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(x.first([]*jsonschema.ValidationError{cause}, sep))
	}
	x.fault(path, b.String())
}

// first words the first fault among causes, after sep.
func (x *explainer) first(causes []*jsonschema.ValidationError, sep string) string {
	sub := explainer{root: x.root}
	for _, c := range causes {
		if sub.walk(c); len(sub.faults) > 0 {
			return sep + cutText(sub.faults[0].String())
		}
	}
	return ""
}

// through returns the errors that stand for e itself, without the wrappers.
func through(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *says.Group, *says.Reference, *says.AllOf:
		var list []*jsonschema.ValidationError
		for _, cause := range e.Causes {
			list = append(list, through(cause)...)
		}
		return list
	}
	return []*jsonschema.ValidationError{e}
}

// typeAt returns the type error of an alternative about the value itself.
func typeAt(e *jsonschema.ValidationError, depth int) *says.Type {
	for _, leaf := range through(e) {
		if k, ok := leaf.ErrorKind.(*says.Type); ok && len(leaf.InstanceLocation) == depth {
			return k
		}
	}
	return nil
}

// otherTag reports whether an alternative fails at a fixed value in one of
// the value's members, such as "kind": "circle".
func otherTag(e *jsonschema.ValidationError, depth int) bool {
	for _, leaf := range through(e) {
		switch leaf.ErrorKind.(type) {
		case *says.Const, *says.Enum:
			if len(leaf.InstanceLocation) == depth+1 {
				return true
			}
		}
	}
	return false
}

func (x *explainer) missing(path string, names []string, because string) {
	for _, name := range names {
		problem := "missing " + quote(name)
		if because != "" {
			problem += ", which " + quote(because) + " needs"
		}
		x.fault(path, problem)
	}
}

func (x *explainer) size(path string, got, want int, how, unit string) {
	if want != 1 {
		unit = strings.TrimSuffix(unit, "y") + map[bool]string{true: "ies", false: "s"}[strings.HasSuffix(unit, "y")]
	}
	x.fault(path, fmt.Sprintf("must have %s %d %s, got %d", how, want, unit, got))
}

func (x *explainer) bound(path, how string, got, want *big.Rat) {
	x.fault(path, "must be "+how+" "+decimalText(want)+", got "+decimalText(got))
}

func decimalText(r *big.Rat) string {
	if r.IsInt() {
		return excerpt(r.Num().String())
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// typeOrder is the order in which types are named.
var typeOrder = []string{"string", "integer", "number", "boolean", "array", "object", "null"}

// wantTypes words a list of JSON Schema types.
func wantTypes(types []string) string {
	rank := func(t string) int { return slices.Index(typeOrder, t) }
	types = slices.SortedFunc(slices.Values(types), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var b strings.Builder
	b.WriteString("must be ")
	for i, t := range slices.Compact(types) {
		if i > 0 {
			b.WriteString(" or ")
		}
		switch t {
		case "integer", "object", "array":
			b.WriteString("an " + t)
		case "boolean":
			b.WriteString("true or false")
		case "null":
			b.WriteString(t)
		default:
			b.WriteString("a " + t)
		}
	}
	return b.String()
}

// gotType names what stands where another type should. For a number that is
// not an integer it is the number.
func gotType(k *says.Type, value any) string {
	if n, ok := value.(json.Number); ok && k.Got == "number" && slices.Contains(k.Want, "integer") {
		return excerpt(string(n))
	}
	return k.Got
}

func typeName(value any) string {
	switch value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return "null"
}

func texts(values []any) []json.RawMessage {
	list := make([]json.RawMessage, len(values))
	for i, v := range values {
		list[i] = jsonText(v)
	}
	return list
}

func jsonText(v any) json.RawMessage {
	if s, ok := v.(string); ok {
		return quoteJSON(s)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("?")
	}
	return raw
}

// brief shows a value that was refused.
func brief(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	return excerpt(string(jsonText(v)))
}
