// Package feature is the table of the lists that servers have: the method of each list, the member
// of the result that holds its entries, and the method that uses one entry. The sessions of package
// mcp, the gateway and policies read the same table.
package feature

// List is one list of a server.
type List struct {
	Method     string // "tools/list"
	Member     string // of the result that holds the entries: "tools"
	Key        string // of an entry, unique in the list: "name"
	Capability string // of servers that have such entries: "tools"; empty: none is declared
	Use        string // the method that uses an entry: "tools/call"
}

// The lists of features, in every revision.
var (
	Tools     = List{"tools/list", "tools", "name", "tools", "tools/call"}
	Prompts   = List{"prompts/list", "prompts", "name", "prompts", "prompts/get"}
	Resources = List{"resources/list", "resources", "uri", "resources", "resources/read"}
	Templates = List{"resources/templates/list", "resourceTemplates", "uriTemplate", "resources", "resources/read"}
)

// All are the lists of features.
var All = [...]List{Tools, Prompts, Resources, Templates}

// Of returns the list of features with a method, and false for other methods.
func Of(method string) (List, bool) {
	for _, l := range All {
		if l.Method == method {
			return l, true
		}
	}
	return List{}, false
}

// Tasks is the list of the tasks of a caller (2025-11-25, basic/utilities/tasks).
var Tasks = List{Method: "tasks/list", Member: "tasks", Key: "taskId", Use: "tasks/get"}
