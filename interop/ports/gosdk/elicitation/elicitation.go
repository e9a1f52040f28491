// Package elicitation is the port of go-sdk's examples/server/elicitation: the server asks the user for
// settings. The question belongs to a call, so that it works on 2026-07-28 too.
package elicitation

import (
	"context"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Settings struct {
	Endpoint string  `json:"serverEndpoint" doc:"Server endpoint URL"`
	Retries  float64 `json:"maxRetries,omitempty" min:"1" max:"10"`
	Logs     bool    `json:"enableLogs,omitempty" doc:"Enable debug logging"`
}

func configure(ctx context.Context, _ struct{}) (string, error) {
	s, err := mcp.Elicit[Settings](ctx, "Please provide your configuration settings")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Configuration received: Endpoint: %s, Max Retries: %.0f, Logs: %v", s.Endpoint, s.Retries, s.Logs), nil
}

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "config-server", Version: "v1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "configure"}, configure)
	return srv
}

func answer(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	fmt.Println("Server requests:", r.Message)
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"serverEndpoint": "https://api.example.com", "maxRetries": 3, "enableLogs": true}}, nil
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "config-client", Version: "v1.0.0", OnElicit: answer}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	text, err := mcp.CallAs[string](ctx, s, "configure", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
