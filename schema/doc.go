// Package schema is JSON Schema for the Model Context Protocol: it infers a
// schema from a Go type, decodes JSON into that type while checking it,
// validates JSON against schemas that arrive at run time, and shows an object
// schema as a form.
package schema
