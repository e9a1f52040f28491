// Package schema is JSON Schema for the Model Context Protocol: it infers a
// schema from a Go type, decodes JSON into that type while checking it, encodes
// results so that they fit their schema, validates JSON against schemas that
// arrive at run time, and shows an object schema as a form that people can fill
// in.
//
//	type Trip struct {
//		City string `json:"city" doc:"where to"`
//		Days int    `json:"days,omitempty" default:"3" min:"1" max:"14"`
//	}
//
//	trip, err := schema.Decode[Trip](data)
//
// # From Go types to schemas
//
// Schemas are JSON Schema 2020-12 and valid in it. A struct is an object with
// "properties" in the order of its fields, and no other properties, unless a
// field with the tag json:",embed" takes them: a map such as
// map[string]json.RawMessage, whose values they are. Nested
// types are written where they are used; types that contain themselves go to
// $defs, and so do repeated types once a schema would pass 64 KiB.
//
//	Go                              JSON Schema
//	bool                            boolean
//	string                          string
//	string type with Enum() []string  string with that enum
//	int, int64                      integer; out of 64 bits is a fault
//	int8, int16, int32              integer with minimum and maximum
//	uint, uint64                    integer, minimum 0
//	uint8, uint16, uint32           integer with minimum and maximum
//	float32, float64                number; out of range is a fault
//	json.Number                     number, kept as text
//	[]byte                          string, contentEncoding base64 (standard, padded)
//	[N]byte                         the same, of exactly N bytes
//	[]T                             array; decoded as empty, never nil
//	[N]T                            array of exactly N items
//	map[string]T                    object with additionalProperties
//	struct                          object; embedded structs are flattened
//	time.Time                       string, format date-time (RFC 3339)
//	time.Duration                   string as in time.Duration.String: 1m30s, 250ms
//	any                             any value; numbers decode as json.Number
//	json.RawMessage any value, byte for byte
//	JSONSchema() json.RawMessage the schema that the method returns
//	UnmarshalJSON                   any value
//	UnmarshalText                   string
//
// A type with a JSONSchema method is checked against what the method returns and then decoded by
// encoding/json/v2; as part of another type its schema must not have $ref, $id or $schema.
// Channels, functions, complex numbers, interfaces with methods and maps with other keys have no
// schema.
//
// # Required, optional, nullable
//
// Optional means the property may be absent, nullable that null is one of its values.
//
//	field                           absent    null
//	T                               fault     fault
//	T with omitempty or omitzero    zero      as absent
//	T with a default                default   as absent
//	*T                              nil       as absent
//	T or *T with nullable:"true"    as above  zero value, nil
//	any, json.RawMessage            as T      a value like any other
//
// Fields that are reached through an embedded pointer are optional. The schema does not mention
// that null means absence, but models send null for properties that they mean to omit. A type
// with UnmarshalJSON or JSONSchema gets null if it accepts it; otherwise an optional field of the
// type is absent.
//
// These rules are for input. For output, [ForOutput] makes a schema in which fields that are
// always written are required; see [Output] for the differences.
//
// # Struct tags
//
//	json:"name,omitempty"     name; "-" leaves the field out
//	doc:"text"                description
//	title:"text"              title
//	enum:"a,b,c"              allowed values; on a list, of its items
//	enumTitles:"One,Two,Six"  how people see them, in elicitation forms
//	min:"1" max:"9"           numbers: minimum, maximum; strings: minLength,
//	                          maxLength in characters; lists: minItems,
//	                          maxItems; maps: minProperties, maxProperties
//	exclusiveMin exclusiveMax multipleOf   numbers
//	pattern:"^[a-z]+$"        strings: a Go regexp; on a list, of its items
//	format:"email"            strings, and checked: email, uri, date, date-time,
//	                          time, hostname, ipv4, ipv6, uuid
//	default:"3"               what an absent property becomes; JSON unless the
//	                          property is a string
//	examples:"a,b"            examples, or a JSON array of them
//	unique:"true"             lists: uniqueItems
//	nullable:"true"           null is allowed
//	header:"Region"           x-mcp-header (2026-07-28, transports); strings,
//	                          integers within 2^53 and booleans only
//
// The names of JSON Schema (description, minimum, minLength, maxItems and so on) work too, each in place
// of the short one. A comma inside a list is written \,. A tag that does not apply to its field, an enum without
// values or with one that the other tags exclude, and bounds that no value is within are errors of [For]. The tag jsonschema is read as other packages write it: a plain description, or
// "required,minimum=1,enum=a,enum=b" and the like.
//
// [Type.With] changes tags at run time.
//
// # Foreign schemas
//
// [Compile] reads 2020-12 when a schema has no $schema, and 2019-09 and drafts 7, 6 and 4 when it
// says so, and passes the required tests of the JSON-Schema-Test-Suite for them. Any other
// dialect is an error, including one that the schema itself describes ($vocabulary). Nothing is
// ever fetched: a reference that leads out of the schema is an error. [Validator.Validate] reads
// null as null; [Validator.Fit] reads it as absence where the schema does not accept null.
//
// # Guarantees
//
//   - No input makes a function of this package panic, loop or recurse without
//     bound. Values and schemas nest at most 128 levels, patterns see at most
//     64 KiB, validation against a foreign schema has a budget of work.
//   - [Type.Decode] accepts the values that a validator accepts that knows only [Type.JSON], with
//     two exceptions. It reads null for an optional property as absence. And it refuses values
//     that a schema cannot exclude: integers over 64 bits, numbers over the range of the Go type,
//     durations over 292 years, and values that UnmarshalText and UnmarshalJSON refuse.
//   - JSON is read strictly: exact case, unique names in an object, valid UTF-8, nothing after
//     the value. Numbers are compared exactly and never rounded on the way to an integer.
//   - The result of [Output.Encode] is accepted by a validator that knows only [Output.JSON].
//   - Errors quote at most 60 bytes of a value and list at most 20 faults.
package schema
