package revision

// List is one of the lists that servers have.
type List struct {
	Method     string
	Member     string // of the result, with the entries
	Key        string // of an entry, which tells it from the others
	Capability string // of servers that have some; empty: none is declared
}

// The lists of features, in the order of the specification, and the list of tasks of 2025-11-25.
var (
	Tools     = &List{MethodTools, "tools", "name", "tools"}
	Prompts   = &List{MethodPrompts, "prompts", "name", "prompts"}
	Resources = &List{MethodResources, "resources", "uri", "resources"}
	Templates = &List{MethodTemplates, "resourceTemplates", "uriTemplate", "resources"}
	TaskList  = &List{Method: MethodTasks, Member: "tasks", Key: "taskId"}
)

// Lists are all of them.
var Lists = []*List{Tools, Prompts, Resources, Templates, TaskList}

// ListOf returns the list that a method asks for, nil if it asks for none.
func ListOf(method string) *List {
	for _, l := range Lists {
		if l.Method == method {
			return l
		}
	}
	return nil
}
