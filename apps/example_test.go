package apps_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/patchbay-dev/patchbay/apps"
	"github.com/patchbay-dev/patchbay/mcp"
)

func Example() {
	srv := &mcp.Server{Name: "dice", Version: "1"}
	ui := apps.Enable(srv)
	ui.AddView(apps.View{URI: "ui://dice/cup", Name: "cup", HTML: "<!DOCTYPE html><title>Dice</title>"})
	type result struct {
		Pips int `json:"pips"`
	}
	apps.AddTool(ui, mcp.Tool{Name: "roll", Description: "Rolls a die."}, apps.Link{ResourceURI: "ui://dice/cup"},
		func(context.Context, struct{}) (result, error) { return result{4}, nil })

	web := httptest.NewServer(srv)
	defer web.Close()
	client := mcp.Client{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	session, err := client.Dial(context.Background(), web.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	// A client that renders nothing uses the tool by its text.
	res, err := session.CallTool(context.Background(), "roll", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Text())
	// A host reads the view that the tool names, and shows the result in it.
	view, err := session.ReadResource(context.Background(), "ui://dice/cup")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(view.Contents[0].MIMEType)
	// Output:
	// {"pips":4}
	// text/html;profile=mcp-app
}
