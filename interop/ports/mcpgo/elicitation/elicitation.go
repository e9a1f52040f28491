// Package elicitation is the port of mcp-go's examples/elicitation: forms and pages for the user. The
// forms are structs, so that answers need no checks by hand.
package elicitation

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Project struct {
	Name      string `json:"projectName" doc:"Name of the project" min:"1"`
	Framework string `json:"framework,omitempty" doc:"Frontend framework to use" enum:"react,vue,angular,none" default:"none"`
	Tests     bool   `json:"includeTests,omitempty" doc:"Include test setup" default:"true"`
}

func create(ctx context.Context, _ struct{}) (string, error) {
	p, err := mcp.Elicit[Project](ctx, "I need some information to set up your project. Please provide the project details.")
	if errors.Is(err, mcp.ErrDeclined) {
		return "Project creation cancelled - user declined to provide information", nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Created project '%s' with framework: %s, tests: %v", p.Name, p.Framework, p.Tests), nil
}

type Data struct {
	Data string `json:"data" doc:"Data to process"`
}

type Consent struct {
	Proceed bool   `json:"proceed" doc:"Whether to proceed with processing"`
	Reason  string `json:"reason,omitempty" doc:"Optional reason for your decision" default:"No reason provided"`
}

var requests atomic.Int32

func process(ctx context.Context, in Data) (string, error) {
	if len(in.Data) > 100 {
		c, err := mcp.Elicit[Consent](ctx, fmt.Sprintf("The data is %d characters long. Do you want to proceed with processing?", len(in.Data)))
		switch {
		case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed):
			return "Processing cancelled by user", nil
		case err != nil:
			return "", err
		case !c.Proceed:
			return "Processing declined: " + c.Reason, nil
		}
	}
	return fmt.Sprintf("Processed %d characters of data (request #%d)", len(in.Data), requests.Add(1)), nil
}

// page returns an address with a random id, the same one in each run of a handler.
func page(ctx context.Context, url string) (string, error) {
	return mcp.Once(ctx, "page", func(context.Context) (string, error) { return url + rand.Text(), nil })
}

func authenticate(ctx context.Context, _ struct{}) (string, error) {
	url, err := page(ctx, "https://myserver.com/set-api-key?elicitationId=")
	if err == nil {
		err = mcp.ElicitURL(ctx, "Please authenticate in your browser to continue.", url)
	}
	if errors.Is(err, mcp.ErrDeclined) || errors.Is(err, mcp.ErrDismissed) {
		return "User declined authentication", nil
	}
	return "Authentication flow initiated. User accepted URL open request.", err
}

func protected(ctx context.Context, _ struct{}) (string, error) {
	url, err := page(ctx, "https://myserver.com/authorize?id=")
	if err != nil {
		return "", err
	}
	return "", mcp.RequireURL(ctx, "Authorization is required to access this resource.", url)
}

func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	srv := &mcp.Server{Name: "elicitation-demo-server", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "create_project", Description: "Creates a new project with user-specified configuration"}, create)
	mcp.AddTool(srv, mcp.Tool{Name: "process_data", Description: "Processes data with optional user confirmation"}, process)
	mcp.AddTool(srv, mcp.Tool{Name: "auth_via_url", Description: "Demonstrates out-of-band authentication via URL"}, authenticate)
	mcp.AddTool(srv, mcp.Tool{Name: "protected_action", Description: "A protected action that requires prior authorization"}, protected)
	if err := srv.ServeStdio(ctx); err != nil {
		log.Fatal(err)
	}
}
