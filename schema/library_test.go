package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Property: for a schema that both accept, a Validator and an independent library agree on every
// value. JSON-26-001 to JSON-26-005.

// library compiles a schema with the library, which loads nothing.
func library(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) { return regexp.Compile(goPattern(text)) })
	for _, list := range []map[string]*format{formats, moreFormats} {
		for name, f := range list {
			c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
				if s, ok := v.(string); ok && !f.check(s) {
					return errors.New(f.want)
				}
				return nil
			}})
		}
	}
	if err := c.AddResource(base, doc); err != nil {
		return nil, err
	}
	return c.Compile(base)
}

type nowhere struct{}

func (nowhere) Load(url string) (any, error) { return nil, errors.New("not loaded") }

// checkLibrary compares the verdicts of both on values, and counts them.
func checkLibrary(t *testing.T, schema []byte, values ...[]byte) (fit, refused int) {
	t.Helper()
	ours, err := Compile(schema)
	if err != nil {
		return 0, 0
	}
	theirs, err := library(schema)
	if err != nil {
		return 0, 0
	}
	for _, data := range values {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			continue
		}
		ourErr, theirErr := ours.Validate(data), theirs.Validate(value)
		switch {
		case ourErr != nil && beyondLibrary(ourErr):
		case (ourErr == nil) != (theirErr == nil):
			t.Fatalf("schema %s\nvalue %s\nwe say %v\nthey say %v", schema, data, ourErr, theirErr)
		case ourErr == nil:
			fit++
		default:
			refused++
		}
	}
	return fit, refused
}

// beyondLibrary reports whether err is about a bound that the library does not have.
func beyondLibrary(err error) bool {
	for _, bound := range []string{errForever.Error(), errWork.Error(), errPatternInput.Error(), tooLarge, "invalid JSON"} {
		if strings.Contains(err.Error(), bound) {
			return true
		}
	}
	return false
}

// TestAgreesWithLibrary checks random values against random schemas.
func TestAgreesWithLibrary(t *testing.T) {
	fit, refused := 0, 0
	for seed := range uint64(400) {
		g := schemaGenerator{rng: rand.New(rand.NewPCG(seed, 7))}
		schema := g.document()
		values := make([][]byte, 20)
		for i := range values {
			values[i], _ = json.Marshal(g.value(3))
		}
		n, m := checkLibrary(t, schema, values...)
		fit, refused = fit+n, refused+m
	}
	t.Logf("%d values fit, %d do not", fit, refused)
	if fit < 1000 || refused < 1000 {
		t.Errorf("the generator is lopsided: %d values fit, %d do not", fit, refused)
	}
}

// TestCompileAgreesWithLibrary gives every keyword values of every kind, in every dialect: both
// must accept the same schemas.
func TestCompileAgreesWithLibrary(t *testing.T) {
	keywords := strings.Fields(`$id id $schema $anchor $dynamicAnchor $recursiveAnchor $ref $dynamicRef $recursiveRef $defs $comment
		title description default examples readOnly writeOnly deprecated contentMediaType contentEncoding contentSchema definitions
		type const enum minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format
		minProperties maxProperties required properties patternProperties additionalProperties propertyNames
		dependencies dependentRequired dependentSchemas unevaluatedProperties minItems maxItems uniqueItems items additionalItems
		prefixItems contains minContains maxContains unevaluatedItems allOf anyOf oneOf not if then else`)
	values := strings.Fields(`1 -1 1.5 "a" "#a" "[" "string" true null {} [{}] [1] ["a","b"] ["string","string"] {"a":1} {"a":{}} {"[":true} {"a":["b"]}`)
	for _, uri := range []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#",
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"} {
		for _, keyword := range keywords {
			for _, value := range values {
				switch dialect := dialectOf(uri); {
				case dialect == draft2020 && strings.HasPrefix(keyword, "$recursive"):
					continue // of 2019-09; the library and the schema of schemas look at it yet
				case dialect == draft7 && keyword == "enum" && value == `["string","string"]`:
					continue // the published schema of schemas became milder there
				}
				schema := fmt.Appendf(nil, `{"$schema":%q,"items":{%q:%s}}`, uri, keyword, value)
				_, err := Compile(schema)
				if _, theirs := library(schema); (err == nil) != (theirs == nil) {
					t.Errorf("schema %s\nwe say %v\nthey say %.300v", schema, err, theirs)
				}
			}
		}
	}
}

// FuzzAgreesWithLibrary does as TestAgreesWithLibrary with other seeds, and with
// values that the fuzzer finds.
func FuzzAgreesWithLibrary(f *testing.F) {
	for seed := range uint64(20) {
		g := schemaGenerator{rng: rand.New(rand.NewPCG(seed, 8))}
		data, _ := json.Marshal(g.value(3))
		f.Add(seed, data)
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		g := schemaGenerator{rng: rand.New(rand.NewPCG(seed, 9))}
		schema := g.document()
		value, _ := json.Marshal(g.value(3))
		checkLibrary(t, schema, value, data)
	})
}

// schemaGenerator makes random schemas and values, of few names and numbers so that they meet.
type schemaGenerator struct {
	rng     *rand.Rand
	dialect dialect
}

func (g *schemaGenerator) document() []byte {
	uri := "http://json-schema.org/draft-04/schema#"
	switch g.rng.IntN(8) {
	case 0:
		g.dialect = draft4
	case 1:
		g.dialect, uri = draft6, "http://json-schema.org/draft-06/schema#"
	case 2:
		g.dialect, uri = draft7, "http://json-schema.org/draft-07/schema#"
	case 3, 4:
		g.dialect, uri = draft2019, "https://json-schema.org/draft/2019-09/schema"
	default:
		g.dialect, uri = draft2020, "https://json-schema.org/draft/2020-12/schema"
	}
	defs := map[string]any{}
	for _, name := range []string{"x", "y", "z"} {
		defs[name] = g.object(2)
	}
	z := defs["z"].(map[string]any)
	z[g.dialect.id()] = "http://x.example/z"
	delete(z, "$ref")
	if g.dialect >= draft2020 {
		z["$dynamicAnchor"] = "d"
		defs["y"].(map[string]any)["$dynamicAnchor"] = "d"
	}
	root := g.object(3)
	root["definitions"] = defs
	root["$schema"] = uri
	if g.dialect == draft2019 && g.chance(0.5) {
		root["$recursiveAnchor"] = true
		z["$recursiveAnchor"] = g.chance(0.5)
	}
	raw, err := json.Marshal(root)
	if err != nil {
		panic(err)
	}
	return raw
}

func (g *schemaGenerator) chance(p float64) bool { return g.rng.Float64() < p }

func (g *schemaGenerator) name() string { return []string{"a", "b", "c", "ab"}[g.rng.IntN(4)] }

func (g *schemaGenerator) schema(depth int) any {
	if g.dialect != draft4 && g.chance(0.12) {
		return g.chance(0.6)
	}
	return g.object(depth)
}

func (g *schemaGenerator) some(n, depth int) []any {
	list := []any{}
	for range 1 + g.rng.IntN(n) {
		list = append(list, g.schema(depth))
	}
	return list
}

func (g *schemaGenerator) named(depth int) map[string]any {
	m := map[string]any{}
	for range 1 + g.rng.IntN(3) {
		m[g.name()] = g.schema(depth)
	}
	return m
}

func (g *schemaGenerator) names() []string {
	list := []string{"a", "b", "c", "ab"}
	g.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+g.rng.IntN(2)]
}

// object makes a schema of a few keywords of the dialect.
func (g *schemaGenerator) object(depth int) map[string]any {
	s := map[string]any{}
	for range 1 + g.rng.IntN(3) {
		g.keyword(s, depth)
	}
	if s["$ref"] != nil && g.dialect.refHides() {
		delete(s, "const") // the library looks at it all the same
	}
	return s
}

func (g *schemaGenerator) keyword(s map[string]any, depth int) {
	flat := []string{"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "minLength", "maxLength", "pattern",
		"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "dependentRequired", "format"}
	deep := []string{"$ref", "$ref", "$dynamicRef", "$recursiveRef", "properties", "properties", "patternProperties", "additionalProperties",
		"propertyNames", "dependencies", "dependentSchemas", "items", "items", "additionalItems", "prefixItems", "contains", "minContains",
		"maxContains", "allOf", "anyOf", "oneOf", "not", "if", "unevaluatedProperties", "unevaluatedProperties", "unevaluatedItems", "unevaluatedItems"}
	name := flat[g.rng.IntN(len(flat))]
	if depth > 0 && g.chance(0.7) {
		name = deep[g.rng.IntN(len(deep))]
	}
	if !g.dialect.has(name) {
		return
	}
	depth--
	numbers := []json.Number{"0", "1", "2", "1.0", "1.5", "-1", "3", "2e0"}
	switch name {
	case "type":
		types := []string{"string", "integer", "number", "boolean", "array", "object", "null"}
		s[name] = types[g.rng.IntN(7)]
		if i := g.rng.IntN(6); g.chance(0.5) {
			s[name] = types[i : i+1+g.rng.IntN(7-i)]
		}
	case "enum":
		s[name] = []any{g.value(1), "a", map[string]any{"a": json.Number("1.0")}}
		if g.dialect <= draft6 {
			s[name] = []any{"ab", 1, nil, []any{1}}
		}
	case "const":
		s[name] = g.value(1)
	case "minimum", "maximum":
		s[name] = numbers[g.rng.IntN(len(numbers))]
		if g.dialect == draft4 && g.chance(0.5) {
			s["exclusiveM"+name[1:]] = g.chance(0.5)
		}
	case "exclusiveMinimum":
		if g.dialect != draft4 {
			s[name] = numbers[g.rng.IntN(len(numbers))]
		}
	case "multipleOf":
		s[name] = []json.Number{"1", "2", "0.5", "1.50"}[g.rng.IntN(4)]
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		s[name] = []json.Number{"0", "1", "2", "2.0"}[g.rng.IntN(4)]
	case "pattern":
		s[name] = []string{"^a", "b$", "^$", "."}[g.rng.IntN(4)]
	case "format":
		s[name] = []string{"date", "regex", "json-pointer", "none"}[g.rng.IntN(4)]
	case "uniqueItems":
		s[name] = g.chance(0.8)
	case "required":
		s[name] = g.names()
	case "dependentRequired":
		s[name] = map[string]any{g.name(): g.names()}
	case "$ref":
		s[name] = []string{"#", "#/definitions/x", "#/definitions/y", "http://x.example/z", "http://json-schema.org/draft-07/schema#",
			"https://json-schema.org/draft/2020-12/schema", "#/definitions/x"}[g.rng.IntN(7)]
	case "$dynamicRef":
		s[name] = []string{"#d", "http://x.example/z#d", "#/definitions/x"}[g.rng.IntN(3)]
	case "$recursiveRef":
		s[name] = "#"
	case "properties", "dependentSchemas":
		s[name] = g.named(depth)
	case "patternProperties":
		s[name] = map[string]any{[]string{"^a", "b", "^[bc]$"}[g.rng.IntN(3)]: g.schema(depth)}
	case "dependencies":
		s[name] = map[string]any{g.name(): g.names(), "ab": g.schema(depth)}
	case "items":
		s[name] = g.schema(depth)
		if g.dialect < draft2020 && g.chance(0.5) {
			s[name] = g.some(2, depth)
		}
	case "prefixItems", "allOf", "anyOf", "oneOf":
		s[name] = g.some(3, depth)
	case "if":
		s[name] = g.schema(depth)
		for _, branch := range []string{"then", "else"} {
			if g.chance(0.7) {
				s[branch] = g.schema(depth)
			}
		}
	default: // one subschema
		s[name] = g.schema(depth)
	}
}

func (g *schemaGenerator) value(depth int) any {
	scalars := []any{nil, true, false, json.Number("0"), json.Number("1"), json.Number("2"), json.Number("1.0"), json.Number("1.5"),
		json.Number("-1"), json.Number("3e0"), "", "a", "ab", "abc", "/a~1", "2026-07-28"}
	if depth == 0 || g.chance(0.25) {
		return scalars[g.rng.IntN(len(scalars))]
	}
	if g.chance(0.4) {
		list := []any{}
		for range g.rng.IntN(4) {
			list = append(list, g.value(depth-1))
		}
		return list
	}
	m := map[string]any{}
	for range g.rng.IntN(4) {
		m[g.name()] = g.value(depth - 1)
	}
	if g.chance(0.1) {
		m["type"] = fmt.Sprint(g.value(0)) // a schema, or nearly
	}
	return m
}
