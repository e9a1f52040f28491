package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on schemas that come from peers (JSON-26-012).
const (
	maxSchemaBytes = 1 << 20
	maxSubschemas  = 5000 // JSON objects in the schema
)

// Bounds on the work of one validation, in subschemas looked at: a schema of
// a few lines can ask for 2^128 of them.
const (
	workBase    = 100_000
	workPerByte = 8
	workMost    = 10_000_000
)

// dialects are the values of $schema that Compile knows, without scheme and
// without a trailing # (JSON-26-003).
var dialects = map[string]bool{
	"json-schema.org/draft/2020-12/schema": true,
	"json-schema.org/draft/2019-09/schema": true,
	"json-schema.org/draft-07/schema":      true,
	"json-schema.org/draft-06/schema":      true,
	"json-schema.org/draft-04/schema":      true,
}

// Validator checks JSON against a schema that came as JSON. It is immutable
// and may be used by several goroutines at once.
type Validator struct {
	raw    json.RawMessage
	strict bool // format and contentEncoding are checked in every dialect

	// Compiled copies of the schema that are not in use. Each counts the work
	// of the one validation that holds it. Another is made when all are taken,
	// up to as many as can run at once; of a plain schema so is the first.
	idle chan *compiled
	made atomic.Int32
}

// Compile reads a JSON Schema.
//
// A schema without $schema is read as 2020-12. Known besides are 2019-09 and
// the drafts 7, 6 and 4; any other dialect is an error that names it
// (2026-07-28, basic/index, JSON Schema Usage).
//
// Compile never opens a network connection or a file. A $ref that leads out of
// the schema, other than to the published meta-schemas, is an error that names
// the reference. So is a schema that is not valid in its dialect, one of more
// than 1 MiB, 5000 subschemas or 128 levels, and a pattern that Go's regexp
// cannot express, such as one with a lookahead.
//
// In 2019-09 and 2020-12 format is an annotation and is not checked; drafts 7
// and older check it. contentEncoding and contentMediaType are never checked.
func Compile(raw json.RawMessage) (*Validator, error) { return newValidator(raw, false) }

func newValidator(raw json.RawMessage, strict bool) (*Validator, error) {
	v := &Validator{
		raw:    append(json.RawMessage(nil), raw...),
		strict: strict,
		idle:   make(chan *compiled, runtime.GOMAXPROCS(0)),
	}
	if plain(v.raw) {
		return v, nil
	}
	c, err := v.compile()
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	v.made.Add(1)
	v.idle <- c
	return v, nil
}

// compiled is a schema whose parts report to work when they are evaluated.
type compiled struct {
	schema *jsonschema.Schema
	work   int // left of the validation that is running
}

// errWork is panicked with, and recovered in run, when a validation costs too
// much: the library has no other way to be stopped.
var errWork = errors.New("takes too long to validate against this schema")

// Validate checks the JSON value in data. If it does not fit the error is a
// [*ValidationError] with its faults in the order of their paths. Numbers are
// compared exactly. Alternatives (anyOf, oneOf) of which none fits are one
// fault, unless it is clear which was meant.
//
// The text must be strict JSON, as in [Type.Decode]. A validation is given up,
// with a fault that says so, when its work is out of proportion to the size of
// data.
func (v *Validator) Validate(data []byte) error {
	faults, err := v.faults(data)
	if err != nil {
		return err
	}
	return faultError(faults)
}

// faults returns everything that is wrong with data.
func (v *Validator) faults(data []byte) ([]Fault, error) {
	value, err := parseAny(data)
	if err != nil {
		return []Fault{{Problem: err.Error()}}, nil
	}
	if path, ok := hugeNumber(value); ok {
		return []Fault{{Path: path, Problem: tooLarge}}, nil
	}
	c, err := v.take()
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	c.work = min(workBase+workPerByte*len(data), workMost)
	faults, err := c.run(value)
	v.idle <- c // never blocks: there are no more copies than places
	return faults, err
}

// take returns a copy of the schema to validate with. When all are in use and
// there are enough it waits for one: a validation is bounded work.
func (v *Validator) take() (*compiled, error) {
	select {
	case c := <-v.idle:
		return c, nil
	default:
	}
	if int(v.made.Add(1)) > cap(v.idle) {
		v.made.Add(-1)
		return <-v.idle, nil
	}
	c, err := v.compile()
	if err != nil { // not to be: it compiled before, or it is plain
		v.made.Add(-1)
	}
	return c, err
}

func (c *compiled) run(value any) (faults []Fault, err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case errWork, errPatternInput:
			faults = []Fault{{Problem: p.(error).Error()}}
		default:
			// The library met something in a peer's schema or value that its
			// authors did not think of. That is no reason to end the process.
			err = fmt.Errorf("schema: validating failed inside the library: %v", p)
		}
	}()
	err = c.schema.Validate(value)
	var failed *jsonschema.ValidationError
	if errors.As(err, &failed) {
		return explain(failed, value), nil
	}
	return nil, err
}

// spend is called for every subschema that is evaluated.
func (c *compiled) spend(n int) {
	if c.work -= n; c.work < 0 {
		panic(errWork)
	}
}

// base is where schemas live while they are compiled. It leads nowhere.
const base = "schema://local/"

func (v *Validator) compile() (_ *compiled, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("compiling failed inside the library: %v", p)
		}
	}()
	doc, err := readSchema(v.raw)
	if err != nil {
		return nil, err
	}
	jc := jsonschema.NewCompiler()
	jc.DefaultDraft(jsonschema.Draft2020)
	jc.UseLoader(noLoader{})
	jc.UseRegexpEngine(compilePattern)
	if v.strict {
		jc.AssertFormat()
		jc.AssertContent()
		jc.RegisterContentEncoding(&jsonschema.Decoder{Name: "base64", Decode: decodeBase64})
	}
	for _, f := range formats {
		jc.RegisterFormat(&jsonschema.Format{Name: f.name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !f.check(s) {
				return errors.New("must be " + f.want)
			}
			return nil
		}})
	}
	if err := jc.AddResource(base, doc); err != nil {
		return nil, explainCompile(err)
	}
	schema, err := jc.Compile(base)
	if err != nil {
		return nil, explainCompile(err)
	}
	c := &compiled{schema: schema}
	m := meter{spend: c.spend, chains: map[*jsonschema.Schema]int{}}
	m.attach(schema)
	for _, pointer := range dynamicAnchors(doc, "") {
		// A $dynamicRef may lead here by ways the compiled schema does not
		// show. What is no schema at all does not compile, and is not needed.
		if s, err := jc.Compile(base + "#" + pointer); err == nil {
			m.attach(s)
		}
	}
	return c, m.err
}

// readSchema checks the bounds and the dialect of a schema.
func readSchema(raw json.RawMessage) (any, error) {
	if len(raw) > maxSchemaBytes {
		return nil, fmt.Errorf("%d bytes of schema, at most %d are read", len(raw), maxSchemaBytes)
	}
	doc, err := parseAny(raw)
	if err != nil {
		return nil, err
	}
	if _, huge := hugeNumber(doc); huge {
		return nil, errors.New("a number in the schema is too large")
	}
	switch doc := doc.(type) {
	case bool:
		return doc, nil
	case map[string]any:
		if n := countObjects(doc); n > maxSubschemas {
			return nil, fmt.Errorf("%d subschemas, at most %d are read", n, maxSubschemas)
		}
		return doc, checkDialect(doc["$schema"])
	}
	return nil, errors.New("a schema must be an object or a boolean")
}

func checkDialect(dialect any) error {
	if dialect == nil {
		return nil
	}
	name, ok := dialect.(string)
	if !ok {
		return errors.New("$schema must be a string")
	}
	_, bare, _ := strings.Cut(strings.TrimSuffix(name, "#"), "://")
	if !dialects[bare] {
		return fmt.Errorf("the dialect %s is not supported; use https://json-schema.org/draft/2020-12/schema", quote(name))
	}
	return nil
}

func countObjects(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		n = 1
		for _, e := range v {
			n += countObjects(e)
		}
	case []any:
		for _, e := range v {
			n += countObjects(e)
		}
	}
	return n
}

// hugeNumber finds a number that is too large to be worked out exactly.
func hugeNumber(v any) (path string, found bool) {
	switch v := v.(type) {
	case json.Number:
		return "", len(v) > 20 && !parseDecimal([]byte(v)).bounded() || len(v) <= 20 && strings.ContainsAny(string(v), "eE") && !parseDecimal([]byte(v)).bounded()
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if path, found = hugeNumber(v[k]); found {
				return joinPath(pathName(k), path), true
			}
		}
	case []any:
		for i, e := range v {
			if path, found = hugeNumber(e); found {
				return joinPath(fmt.Sprintf("[%d]", i), path), true
			}
		}
	}
	return "", false
}

// noLoader refuses to fetch anything (JSON-26-008, JSON-26-011).
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, &externalRef{strings.TrimPrefix(url, base)}
}

type externalRef struct{ url string }

func (e *externalRef) Error() string {
	return fmt.Sprintf("the reference %s leads out of the schema and is not followed; put what it names into $defs", quote(e.url))
}

// explainCompile words an error of the library for people who did not write it.
func explainCompile(err error) error {
	var ext *externalRef
	if errors.As(err, &ext) {
		return ext
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) && errors.As(load.Err, &ext) {
		return ext
	}
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		var failed *jsonschema.ValidationError
		if errors.As(invalid.Err, &failed) {
			return fmt.Errorf("not a valid schema: %w", faultError(explain(failed, nil)))
		}
	}
	return errors.New(strings.ReplaceAll(cutText(err.Error()), base, ""))
}

func cutText(s string) string {
	const most = 500
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
