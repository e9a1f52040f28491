// Package typedtools is the port of mcp-go's examples/typed_tools: a tool with nested arguments. The
// struct is the schema, and arguments that do not fit never reach the function.
package typedtools

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/patchbay-dev/patchbay/mcp"
)

type Greeting struct {
	Name      string   `json:"name" doc:"Name of the person to greet" min:"1"`
	Age       int      `json:"age,omitempty" doc:"Age of the person" min:"0" max:"150"`
	IsVIP     bool     `json:"is_vip,omitempty" doc:"Whether the person is a VIP"`
	Languages []string `json:"languages,omitempty" doc:"Languages the person speaks"`
	Metadata  struct {
		Location string `json:"location,omitempty" doc:"Current location"`
		Timezone string `json:"timezone,omitempty" doc:"Timezone"`
	} `json:"metadata,omitzero" doc:"Additional information about the person"`
	AnyData any `json:"any_data,omitempty" doc:"Any kind of data, e.g., an integer"`
}

func greet(_ context.Context, in Greeting) (string, error) {
	var out strings.Builder
	say := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&out, format, args...)
		}
	}
	say(true, "Hello, %s!", in.Name)
	say(in.Age > 0, " You are %d years old.", in.Age)
	say(in.IsVIP, " Welcome back, valued VIP customer!")
	say(len(in.Languages) > 0, " You speak %d languages: %v.", len(in.Languages), in.Languages)
	say(in.Metadata.Location != "", " I see you're from %s.", in.Metadata.Location)
	say(in.Metadata.Location != "" && in.Metadata.Timezone != "", " Your timezone is %s.", in.Metadata.Timezone)
	say(in.AnyData != nil, " I also received some other data: %v.", in.AnyData)
	return out.String(), nil
}

func Main() {
	srv := &mcp.Server{Name: "Typed Tools Demo 🚀", Version: "1.0.0"}
	mcp.AddTool(srv, mcp.Tool{Name: "greeting", Description: "Generate a personalized greeting"}, greet)
	if err := srv.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
