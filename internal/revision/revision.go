// Package revision holds one table per published revision of MCP: its methods and codes, the
// features that it lacks compared with the newest, and the conversion of messages. The inner form
// of everything is that of 2026-07-28 without its envelope (resultType, the _meta keys of
// requests, serverInfo).
//
// Other packages, except the transports, do not test for a revision by name.
package revision

// Feature is a set of features that some revision lacks. A typed result has the set that it uses,
// so that only those are converted.
type Feature uint32

const (
	Audio           Feature = 1 << iota // audio content, since 2025-03-26
	ToolAnnotations                     // since 2025-03-26
	ProgressMessage                     // since 2025-03-26
	ResourceLink                        // content blocks, since 2025-06-18
	Structured                          // structuredContent and outputSchema, since 2025-06-18
	Titles                              // title of tools, prompts and others, since 2025-06-18
	ContentMeta                         // _meta on features and content, since 2025-06-18
	LastModified                        // annotation, since 2025-06-18
	CompleteContext                     // context.arguments of completion, since 2025-06-18
	Elicitation                         // since 2025-06-18
	Icons                               // icons, description and websiteUrl, since 2025-11-25
	ElicitURL                           // since 2025-11-25
	RichForms                           // titled and multi-select enums, all defaults, mode, since 2025-11-25
	SampleTools                         // tools and several blocks in sampling, since 2025-11-25
	StructuredAny                       // structured results that are not objects, since 2026-07-28
	Execution                           // execution of tools, only in 2025-11-25

	// Unknown is for JSON that was not examined and may use any feature.
	Unknown Feature = 1<<32 - 1
)

// Methods of requests.
const (
	MethodInitialize  = "initialize"
	MethodPing        = "ping"
	MethodDiscover    = "server/discover"
	MethodTools       = "tools/list"
	MethodCall        = "tools/call"
	MethodPrompts     = "prompts/list"
	MethodPrompt      = "prompts/get"
	MethodResources   = "resources/list"
	MethodTemplates   = "resources/templates/list"
	MethodRead        = "resources/read"
	MethodComplete    = "completion/complete"
	MethodListen      = "subscriptions/listen"
	MethodSubscribe   = "resources/subscribe"
	MethodUnsubscribe = "resources/unsubscribe"
	MethodSetLevel    = "logging/setLevel"
	MethodElicit      = "elicitation/create"
	MethodSample      = "sampling/createMessage"
	MethodRoots       = "roots/list"
	MethodTask        = "tasks/get"
	MethodTaskUpdate  = "tasks/update"
	MethodTaskCancel  = "tasks/cancel"
	MethodTaskResult  = "tasks/result" // 2025-11-25; not passed to handlers
	MethodTasks       = "tasks/list"   // 2025-11-25
)

// Methods of notifications.
const (
	NoteInitialized      = "notifications/initialized"
	NoteCancelled        = "notifications/cancelled"
	NoteProgress         = "notifications/progress"
	NoteMessage          = "notifications/message"
	NoteToolsChanged     = "notifications/tools/list_changed"
	NotePromptsChanged   = "notifications/prompts/list_changed"
	NoteResourcesChanged = "notifications/resources/list_changed"
	NoteResourceUpdated  = "notifications/resources/updated"
	NoteRootsChanged     = "notifications/roots/list_changed"
	NoteElicited         = "notifications/elicitation/complete" // only in 2025-11-25
	NoteAcknowledged     = "notifications/subscriptions/acknowledged"
	NoteTask             = "notifications/tasks"
	NoteTaskStatus       = "notifications/tasks/status" // 2025-11-25
)

// Error codes that differ between revisions.
const (
	CodeResourceNotFound   = -32002
	CodeURLRequired        = -32042
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
)

// Table describes one revision.
type Table struct {
	Name string

	// Sessions reports whether a connection begins with initialize and the server may send
	// requests on it. Otherwise each request is self-contained, and questions travel in results.
	Sessions bool

	// ParamHeaders reports whether HTTP requests repeat names and annotated arguments in headers.
	ParamHeaders bool

	// Batches reports whether batches of messages are accepted.
	Batches bool

	// VersionHeader reports whether HTTP requests after initialize carry MCP-Protocol-Version.
	VersionHeader bool

	// CoreTasks reports whether tasks are part of the protocol, in the form of 2025-11-25. The
	// inner form is that of the extension [Tasks].
	CoreTasks bool

	// Lacks is the set of features of the inner form that this revision does not have.
	Lacks Feature

	// edge are the requests that a client of this revision may send besides core.
	edge []string

	// codes maps error codes of the inner form to those of this revision.
	codes map[int]int

	index int
}

// core are the requests that reach a Handler in every revision.
var core = []string{
	MethodCall, MethodTools, MethodPrompts, MethodPrompt,
	MethodResources, MethodTemplates, MethodRead, MethodComplete,
}

var (
	legacyEdge = []string{MethodInitialize, MethodPing, MethodSetLevel, MethodSubscribe, MethodUnsubscribe}
	taskEdge   = append([]string{MethodTask, MethodTaskCancel, MethodTaskResult, MethodTasks}, legacyEdge...)
)

// legacyCodes maps codes that are new in 2026-07-28 to those of the base protocol.
var legacyCodes = map[int]int{
	CodeHeaderMismatch:     -32600,
	CodeMissingCapability:  -32600,
	CodeUnsupportedVersion: -32602,
}

const (
	lacksD = StructuredAny
	lacksC = lacksD | Execution | Icons | ElicitURL | RichForms | SampleTools
	lacksB = lacksC | ResourceLink | Structured | Titles | ContentMeta | LastModified | CompleteContext | Elicitation
	lacksA = lacksB | Audio | ToolAnnotations | ProgressMessage
)

// The published revisions.
var (
	V20241105 = &Table{Name: "2024-11-05", Sessions: true, Lacks: lacksA, edge: legacyEdge, codes: legacyCodes, index: 0}
	V20250326 = &Table{Name: "2025-03-26", Sessions: true, Lacks: lacksB, edge: legacyEdge, codes: legacyCodes, index: 1, Batches: true}
	V20250618 = &Table{Name: "2025-06-18", Sessions: true, Lacks: lacksC, edge: legacyEdge, codes: legacyCodes, index: 2, VersionHeader: true}
	V20251125 = &Table{Name: "2025-11-25", Sessions: true, Lacks: lacksD, edge: taskEdge, codes: legacyCodes, index: 3, VersionHeader: true, CoreTasks: true}
	V20260728 = &Table{Name: "2026-07-28", index: 4, VersionHeader: true, ParamHeaders: true, Lacks: Execution,
		edge:  []string{MethodDiscover, MethodListen, MethodTask, MethodTaskUpdate, MethodTaskCancel},
		codes: map[int]int{CodeResourceNotFound: -32602, CodeURLRequired: -32603},
	}
)

// All holds every revision, oldest first; Count is their number.
var All = []*Table{V20241105, V20250326, V20250618, V20251125, V20260728}

// Newest is the last revision, whose form, without its envelope, is the inner form.
var Newest = V20260728

// Count is the number of revisions; Table.Index is below it.
const Count = 5

// Index is the place of the revision in [All].
func (t *Table) Index() int { return t.index }

// Find returns the revision called name among ts, or nil if there is none.
func Find(ts []*Table, name string) *Table {
	for _, t := range ts {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Latest returns the newest of ts with sessions, or the newest without, or nil if there is none.
func Latest(ts []*Table, sessions bool) *Table {
	for i := len(ts) - 1; i >= 0; i-- {
		if ts[i].Sessions == sessions {
			return ts[i]
		}
	}
	return nil
}

// Names returns the names of ts, newest first, as peers expect preferences.
func Names(ts []*Table) []string {
	out := make([]string, 0, len(ts))
	for i := len(ts) - 1; i >= 0; i-- {
		out = append(out, ts[i].Name)
	}
	return out
}

// Has reports whether a client of this revision may send the request. A method that no revision
// defines is allowed too, because it may belong to an extension.
func (t *Table) Has(method string) bool {
	return contains(core, method) || contains(t.edge, method) || !Defines(method)
}

// Defines reports whether some revision defines the request, of a client or of a server. The task
// methods of 2025-11-25 count as an extension, which they are now.
func Defines(method string) bool {
	if contains(core, method) {
		return true
	}
	for _, t := range All {
		if contains(t.edge, method) {
			return true
		}
	}
	switch method {
	case MethodElicit, MethodSample, MethodRoots:
		return true
	}
	return false
}

// Code converts an error code of the inner form.
func (t *Table) Code(code int) int {
	if c, ok := t.codes[code]; ok {
		return c
	}
	return code
}

// Cacheable reports whether results of a method carry ttlMs and cacheScope in this revision.
func (t *Table) Cacheable(method string) bool { return !t.Sessions && Cacheable(method) }

// Cacheable reports whether results of a method carry ttlMs and cacheScope in the inner form.
func Cacheable(method string) bool {
	switch method {
	case MethodDiscover, MethodTools, MethodPrompts, MethodResources, MethodTemplates, MethodRead:
		return true
	}
	return false
}

// Asks reports whether a result of a method may be input_required.
func Asks(method string) bool {
	return method == MethodCall || method == MethodPrompt || method == MethodRead
}

// Reads reports whether a request only reads: it may be sent twice, and leaves no state that
// could be lost. It is the one rule for retries, after a refusal for now and after a lost connection.
// Calls of tools never count, even with readOnlyHint.
func Reads(method string) bool {
	switch method {
	case MethodInitialize, MethodPing, MethodDiscover, MethodTools, MethodPrompts, MethodPrompt, MethodResources, MethodTemplates, MethodRead,
		MethodComplete, MethodTask, MethodTasks:
		return true
	}
	return false
}

// OfTasks reports whether a request is about a task.
func OfTasks(method string) bool {
	switch method {
	case MethodTask, MethodTaskUpdate, MethodTaskCancel, MethodTaskResult, MethodTasks:
		return true
	}
	return false
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
