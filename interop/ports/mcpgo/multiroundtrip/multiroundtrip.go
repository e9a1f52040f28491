// Package multiroundtrip is the port of mcp-go's examples/multi_round_trip: a tool that asks before it
// acts. The question is a function call, on every revision.
package multiroundtrip

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Target struct {
	Environment string `json:"environment" doc:"the environment to deploy to"`
}

type Approval struct {
	Approve bool `json:"approve" doc:"whether to proceed"`
}

func deploy(ctx context.Context, in Target) (string, error) {
	answer, err := mcp.Elicit[Approval](ctx, fmt.Sprintf("Deploy to %s?", in.Environment))
	switch {
	case errors.Is(err, mcp.ErrDeclined), errors.Is(err, mcp.ErrDismissed):
		return "deployment cancelled", nil
	case err != nil:
		return "", err
	case !answer.Approve:
		return "deployment declined", nil
	}
	return "deployed to " + in.Environment, nil
}

func NewServer() *mcp.Server {
	srv := &mcp.Server{Name: "deploy-server", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "deploy", Description: "deploys the application, after confirming with the user"}, deploy)
	return srv
}

func approve(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	fmt.Printf("server asks: %s\nclient answers: yes\n", r.Message)
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
}

func Main() {
	ctx := context.Background()
	s, err := (&mcp.Client{Name: "mrtr-example", Version: "1.0.0", OnElicit: approve}).Open(ctx, NewServer())
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Printf("connected using protocol version %s\n\n", s.Revision())
	text, err := mcp.CallAs[string](ctx, s, "deploy", Target{"production"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
