package mention_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/host/mention"
	"github.com/patchbay-dev/patchbay/mcp"
)

func ExampleComplete() {
	from := &mention.Source{Servers: []string{"lib"}, Prompts: func(context.Context, string) []*mcp.Prompt {
		return []*mcp.Prompt{{Name: "review", Arguments: []mcp.PromptArgument{{Name: "file", Required: true}}}}
	}}
	for _, text := range []string{"/lib:re", "/lib:review f"} {
		c := mention.Complete(context.Background(), from, text, len(text))
		fmt.Printf("%s + %s\n", text[:c.From], c.Items[0].Text)
	}
	// Output:
	//  + /lib:review
	// /lib:review  + file=
}
