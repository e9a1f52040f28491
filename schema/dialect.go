package schema

import "strings"

// dialect is a version of JSON Schema: the number of a draft, or a year.
type dialect int

const (
	draft4    dialect = 4
	draft6    dialect = 6
	draft7    dialect = 7
	draft2019 dialect = 2019
	draft2020 dialect = 2020
)

// dialectOf returns the dialect with a URI, zero if it is not one of ours. The
// scheme and an empty fragment make no difference (JSON-26-003).
func dialectOf(uri string) dialect {
	_, bare, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
	switch bare {
	case "json-schema.org/draft/2020-12/schema":
		return draft2020
	case "json-schema.org/draft/2019-09/schema":
		return draft2019
	case "json-schema.org/draft-07/schema":
		return draft7
	case "json-schema.org/draft-06/schema":
		return draft6
	case "json-schema.org/draft-04/schema":
		return draft4
	}
	return 0
}

// has reports whether a keyword belongs to the dialect, if it belongs to any.
func (d dialect) has(keyword string) bool {
	switch keyword {
	case "id":
		return d == draft4
	case "$id", "const", "contains", "propertyNames":
		return d >= draft6
	case "if", "then", "else", "$comment", "examples", "readOnly", "writeOnly", "contentEncoding", "contentMediaType":
		return d >= draft7
	case "$anchor", "$defs", "$vocabulary", "dependentSchemas", "dependentRequired", "minContains", "maxContains",
		"unevaluatedProperties", "unevaluatedItems", "contentSchema", "deprecated":
		return d >= draft2019
	case "$recursiveRef", "$recursiveAnchor":
		return d == draft2019
	case "prefixItems", "$dynamicRef", "$dynamicAnchor":
		return d >= draft2020
	case "additionalItems":
		return d < draft2020
	}
	return true
}

// id is the keyword that names a subschema.
func (d dialect) id() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// refHides reports whether the keywords beside a $ref are ignored.
func (d dialect) refHides() bool { return d <= draft7 }

// checksFormat reports whether format is more than an annotation.
func (d dialect) checksFormat() bool { return d <= draft7 }
