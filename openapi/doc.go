// Package openapi makes a server of an OpenAPI document: each operation of the HTTP API that it describes is a tool.
//
//	doc, err := openapi.Parse(data) // OpenAPI 3.0, 3.1 and 3.2, Swagger 2.0; JSON or YAML
//	srv, err := openapi.New(doc, openapi.Options{Credentials: map[string]string{"api_key": key}})
//
// # What becomes what
//
//	operationId                 the name of the tool; without one, the method and the path
//	summary, description        title and description
//	parameters                  arguments of their names; _ stands for characters that models refuse in names
//	requestBody, body, formData the argument "body": JSON, a form as an object, text, or base64 for other content
//	format: binary, type: file  base64 of the content
//	schemas                     JSON Schema 2020-12; those that are referred to are in $defs
//	readOnly                    left out of arguments
//	GET, HEAD                   readOnlyHint; PUT and DELETE are destructive and idempotent
//	security                    a credential of Options for the scheme; never an argument
//
// A document that contradicts itself is read as far as it can be: Document.Unmapped names every operation and every
// part that is left out, with its line and the reason.
//
// # Answers
//
// Text is returned as it came, up to Options.MaxBytes; images and sounds as such; other content as an embedded resource.
// An answer of 400 or more is a tool error with the words of the API. An answer that is not JSON although
// the document has nothing else is one, too. A Link header to the next page becomes the arguments to call with.
//
// # Guarantees
//
//   - An argument changes neither the host nor the path: it is escaped, and values that lead elsewhere when a server
//     or a proxy decodes them up to three times are refused. No argument sets a header that frames a message, names the
//     host or carries credentials, or a member of the query or a cookie that is a credential, and none has a line break in it.
//   - Requests go only to public addresses, unless Options.Base or Options.Private permit others. Addresses are checked
//     as they are dialled.
//   - Credentials and headers go only to the host of the base, are not in errors, and are replaced where an answer
//     repeats them.
//   - A redirect is followed for a GET to the same host, and otherwise named in the error.
//   - Documents are bounded: 32 MiB, 4 million values or, in YAML, 2 million lines, commas and colons, 128 levels, 1 MiB for
//     the schema of one tool and 256 MiB for those of all. References to other documents are not followed.
package openapi
