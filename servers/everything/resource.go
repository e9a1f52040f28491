package everything

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/mcp"
)

var (
	staticText = mcp.Resource{
		URI: "test://static-text", Name: "Static text", Description: "A resource of text that never changes.", MIMEType: "text/plain",
	}
	staticBinary = mcp.Resource{
		URI: "test://static-binary", Name: "Static picture", Description: "A resource of bytes that never change.", MIMEType: "image/png",
	}
)

const watchedURI = "test://watched-resource"

func addResources(srv *mcp.Server) {
	mcp.AddResource(srv, staticText, func(context.Context) (string, error) {
		return "This is the content of the static text resource.", nil
	})
	mcp.AddResource(srv, staticBinary, func(context.Context) ([]byte, error) { return picture(), nil })

	var mu sync.Mutex
	text := "Nobody has touched this yet." // guarded by mu
	mcp.AddResource(srv, mcp.Resource{
		URI: watchedURI, Name: "Watched text", Description: "A resource to subscribe to; touch_resource changes it.", MIMEType: "text/plain",
	}, func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return text, nil
	})
	type touch struct {
		Text string `json:"text" doc:"the new text" max:"10000"`
	}
	mcp.AddTool(srv, mcp.Tool{
		Name: "touch_resource", Title: "Touch a resource",
		Description: "Changes the text of " + watchedURI + "; subscribers are notified.",
		Annotations: &mcp.ToolAnnotations{Destructive: new(false), Idempotent: new(true), OpenWorld: new(false)},
	}, func(_ context.Context, in touch) (string, error) {
		mu.Lock()
		text = in.Text
		mu.Unlock()
		srv.ResourceUpdated(watchedURI)
		return "Changed.", nil
	})

	type variables struct {
		ID string `json:"id"`
	}
	type data struct {
		ID           string `json:"id"`
		TemplateTest bool   `json:"templateTest"`
		Data         string `json:"data"`
	}
	mcp.AddResourceTemplate(srv, mcp.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "Data by id", Description: "A resource for every id.", MIMEType: "application/json",
		Complete: map[string]mcp.CompleteFunc{"id": completeID},
	}, func(_ context.Context, in variables) (data, error) {
		return data{in.ID, true, fmt.Sprintf("Data for ID: %s", in.ID)}, nil
	})
}

// completeID suggests the ids 1 to 999 that begin with the prefix.
func completeID(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
	ids := []string{}
	for i := 1; i <= 999; i++ {
		if id := strconv.Itoa(i); strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
