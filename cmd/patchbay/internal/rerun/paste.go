package rerun

import (
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Gateway is a gateway that this program serves.
type Gateway struct {
	URL     string
	File    string   // the mcp.json that it reads; empty: none
	Guarded bool     // callers must authenticate
	Stdio   []string // arguments that serve the same over stdio; nil: none do

	// Callback is the redirect URI that the client at the identity provider has, if people log in at the
	// gateway. Their hosts need no credential in their configuration.
	Callback string
}

// Lines returns lines to paste into hosts, each below the name of its place. None is for the file
// that the gateway reads.
func (g *Gateway) Lines() []string {
	not := ""
	if g.File != "" {
		not = ", not " + g.File
	}
	flag, member := "", ""
	var lines []string
	if g.Callback != "" {
		lines = append(lines, "Clients log in by themselves. The identity provider must have this redirect URI:", "  "+g.Callback)
	} else if g.Guarded {
		const header = "Authorization: Bearer CREDENTIAL"
		flag, member = " --header "+screen.Shell([]string{header}), `,"headers":{"Authorization":"Bearer CREDENTIAL"}`
		lines = append(lines, "CREDENTIAL below is the key or token of the caller. With a password, write Basic",
			"instead of Bearer, and USER:PASSWORD in base64 instead of CREDENTIAL.")
	}
	lines = append(lines,
		"Claude Code, in a terminal:",
		"  claude mcp add --transport http patchbay "+g.URL+flag,
		"VS Code, in a terminal:",
		"  code --add-mcp "+screen.Shell([]string{`{"name":"patchbay","type":"http","url":"` + g.URL + `"` + member + `}`}),
		"Cursor (~/.cursor/mcp.json) and other hosts (their own file"+not+"):",
		`  {"mcpServers": {"patchbay": {"url": "`+g.URL+`"`+member+`}}}`,
	)
	// Over stdio it would be another gateway, without the credentials.
	if exe := Path(); exe != "" && g.Stdio != nil && !g.Guarded && g.Callback == "" {
		command, _ := jsonx.Marshal(struct { // no member of it can fail
			Command string   `json:"command"`
			Args    []string `json:"args"`
		}{exe, g.Stdio})
		lines = append(lines, "Hosts that only start commands (their own file"+not+"):", `  {"mcpServers": {"patchbay": `+string(command)+`}}`)
	}
	lines = append(lines, "Here, in another terminal:")
	if g.Callback != "" {
		lines = append(lines, "  "+Command()+" login "+g.URL)
	}
	return append(lines, "  "+Command()+" tools -s "+g.URL+flag)
}
