package verdict

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// Feature has the flags that describe a feature.
type Feature struct {
	Tool     string `placeholder:"NAME" help:"Check this tool, by its name at the server."`
	Prompt   string `placeholder:"NAME" help:"Check this prompt."`
	Resource string `placeholder:"URI" help:"Check this resource."`
	Template string `placeholder:"URI" help:"Check this URI template, in lists."`
	Method   string `placeholder:"NAME" help:"Check this method, such as tasks/cancel."`
}

// Access returns the access to the feature of a server by the rules in file, without arguments and a caller; nil: the
// flags describe none. The argument args has the words that are arguments of a call.
func (c *Feature) Access(server, file string, args []string) (*policy.Access, error) {
	out := &policy.Access{Server: server}
	given := 0
	for _, f := range []struct {
		name, value, method string
		kind                mcp.Kind
	}{
		{"--tool", c.Tool, callMethod, mcp.KindTool}, {"--prompt", c.Prompt, "prompts/get", mcp.KindPrompt},
		{"--resource", c.Resource, "resources/read", mcp.KindResource}, {"--template", c.Template, "resources/read", mcp.KindResource},
	} {
		if f.value == "" {
			continue
		}
		given++
		out.Kind, out.Name, out.Method = f.kind, f.value, f.method
	}
	switch {
	case given > 1:
		return nil, advice.Usagef("--tool, --prompt, --resource and --template exclude each other")
	case given == 0 && c.Method == "":
		if len(args) > 0 {
			return nil, advice.Usagef("%q is an argument, but no feature is given", args[0]).Hint("patchbay policy check " + screen.Shell([]string{file}) + " --tool NAME " + screen.Shell(args))
		}
		return nil, nil
	case given == 0:
		out.Name = c.Method
	case c.Template != "":
		out.Name, out.Template, out.Partial = "", c.Template, true
	}
	if c.Method != "" {
		out.Method = c.Method
		out.Partial = out.Partial || given > 0 && (strings.HasPrefix(c.Method, "tasks/") || c.Method == "completion/complete")
	}
	return out, nil
}
