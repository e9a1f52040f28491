package openapi_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
)

func Example() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"path": %q, "key": %t}`, r.URL.Path, r.Header.Get("X-Key") == "secret-key")
	}))
	defer api.Close()

	doc, err := openapi.Parse([]byte(`
openapi: 3.1.0
info: {title: Pets, version: "1"}
paths:
  /pets/{id}: {get: {operationId: getPet, parameters: [{name: id, in: path, required: true, schema: {type: integer}}]}}
security: [{key: []}]
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
`))
	if err != nil {
		log.Fatal(err)
	}
	srv, err := openapi.New(doc, openapi.Options{Base: api.URL, Credentials: map[string]string{"key": "secret-key"}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer srv.Shutdown(ctx)

	session, err := (&mcp.Client{}).Open(ctx, srv)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	res, err := session.CallTool(ctx, "getPet", map[string]any{"id": 7})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
	// Output: {"path": "/pets/7", "key": true}
}
