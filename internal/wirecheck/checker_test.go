package wirecheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/wirecheck"
)

// Shorthands of the frames below.
var short = strings.NewReplacer(
	"RPC", `"jsonrpc":"2.0"`,
	"META", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`,
	"CAN(", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`, ")CAN", `}`,
	"VERSION", `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
	"SUB", `"io.modelcontextprotocol/subscriptionId"`,
	"CACHED", `"resultType":"complete","ttlMs":0,"cacheScope":"public"`,
	"TEXT", `{"type":"text","text":"x"}`,
)

// exchange is a list of frames, one a line: "> " of the client, "< " of the
// server. All but the last must pass; the last must give a fault with all of
// the words of want, or none if want is empty.
type exchange struct{ name, frames, want string }

func run(t *testing.T, revision string, tests []exchange) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := wirecheck.New(revision)
			c.Methods = []string{"x/ext", "notifications/x"}
			c.ResultTypes = []string{"other"}
			lines := strings.Split(strings.TrimSpace(tt.frames), "\n")
			for i, line := range lines {
				line = strings.TrimSpace(line)
				err := c.Frame(line[0] == '>', []byte(short.Replace(line[2:])))
				switch {
				case i < len(lines)-1 || tt.want == "":
					if err != nil {
						t.Fatalf("Frame(%s) = %v, want nil", line, err)
					}
				case err == nil:
					t.Fatalf("Frame(%s) = nil, want a fault with %q", line, tt.want)
				default:
					for _, word := range strings.Split(tt.want, "|") {
						if !strings.Contains(err.Error(), word) {
							t.Errorf("Frame(%s) = %v, want %q in it", line, err, word)
						}
					}
					if !errors.As(err, new(*wirecheck.Fault)) {
						t.Errorf("Frame(%s) = %T, want a *Fault", line, err)
					}
				}
			}
		})
	}
}

// These hold in every revision before 2026-07-28.
var legacy = []exchange{
	{"call", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1.5}}}
		< {RPC,"id":1,"result":{"content":[TEXT],"isError":true}}`, ""},
	{"no arguments is fine, no name is not", `> {RPC,"id":1,"method":"tools/call","params":{}}`, `CallToolRequest|/params|name`},
	{"content of a wrong type", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
		< {RPC,"id":1,"result":{"content":[TEXT,{"type":"text","text":5}]}}`, `CallToolResult at "/result"|/result/content/1/text`},
	{"text without text", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
		< {RPC,"id":1,"result":{"content":[{"type":"text"}]}}`, `"/result/content/0": missing property 'text'`},
	{"image that is no base64", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
		< {RPC,"id":1,"result":{"content":[{"type":"image","mimeType":"image/png","data":"%"}]}}`, `/result/content/0/data|base64`},
	{"result of another method", `> {RPC,"id":1,"method":"tools/list"}
		< {RPC,"id":1,"result":{"content":[]}}`, `ListToolsResult|tools`},
	{"resource uri", `> {RPC,"id":1,"method":"resources/read","params":{"uri":"not a uri"}}`, `ReadResourceRequest|/params/uri`},
	{"error", `> {RPC,"id":"a","method":"ping"}
		< {RPC,"id":"a","error":{"code":-32601,"message":"x","data":{"any":1}}}`, ""},
	{"error codes are integers BASE-26-014", `> {RPC,"id":"a","method":"ping"}
		< {RPC,"id":"a","error":{"code":"x","message":"x"}}`, `/error/code`},
	{"error code of 2026-07-28", `> {RPC,"id":"a","method":"ping"}
		< {RPC,"id":"a","error":{"code":-32020,"message":"x"}}`, `BASE-26-019`},
	{"ping of the server", `< {RPC,"id":1,"method":"ping"}
		> {RPC,"id":1,"result":{}}`, ""},
	{"result of ping is empty", `< {RPC,"id":1,"method":"ping"}
		> {RPC,"id":1,"result":{"pong":true}}`, `EmptyResult|pong`},
	{"sampling", `< {RPC,"id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"user","content":TEXT}]}}
		> {RPC,"id":1,"result":{"role":"assistant","model":"m","content":TEXT}}`, ""},
	{"sampling without model", `< {RPC,"id":1,"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[]}}
		> {RPC,"id":1,"result":{"role":"assistant","content":TEXT}}`, `CreateMessageResult|model`},
	{"request of the wrong side", `< {RPC,"id":1,"method":"tools/list"}`, `server has no request`},
	{"method of 2026-07-28", `> {RPC,"id":1,"method":"server/discover","params":{META}}`, `client has no request "server/discover"`},
	{"unknown notification", `> {RPC,"method":"notifications/y"}`, `no notification "notifications/y"`},
	{"notification of the wrong side", `> {RPC,"method":"notifications/tools/list_changed"}`, `client has no notification`},
	{"extension", `> {RPC,"id":1,"method":"x/ext","params":{"a":1}}
		< {RPC,"id":1,"result":{"b":2}}
		< {RPC,"method":"notifications/x"}`, ""},
	{"method of a vendor", `> {RPC,"id":1,"method":"com.example/audit"}
		< {RPC,"id":1,"result":{"b":2}}
		< {RPC,"method":"notifications/com.example/audited"}`, ""},
	{"no vendor", `> {RPC,"id":1,"method":"example/audit"}`, `client has no request "example/audit"`},
	{"resultType", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
		< {RPC,"id":1,"result":{"resultType":"complete","content":[]}}`, `/result/resultType|2026-07-28`},
	{"ttlMs", `> {RPC,"id":1,"method":"tools/list"}
		< {RPC,"id":1,"result":{"tools":[],"ttlMs":1}}`, `/result/ttlMs`},
	{"requestState", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","requestState":"s"}}`, `/params/requestState`},
	{"modern _meta", `> {RPC,"id":1,"method":"tools/list","params":{META}}`, `/params/_meta/io.modelcontextprotocol~1`},
	{"id reused BASE-25-002", `> {RPC,"id":1,"method":"ping"}
		< {RPC,"id":1,"result":{}}
		> {RPC,"id":1,"method":"ping"}`, `BASE-25-002`},
	{"progress", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":7,"progress":0.5}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2}}`, ""},
	{"progress must grow PROG-26-003", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":7,"progress":1}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":7,"progress":1}}`, `PROG-26-003`},
	{"progress token of another kind", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7}}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":"7","progress":1}}`, `PROG-26-005`},
	{"progress after the answer PROG-26-009", `> {RPC,"id":1,"method":"tools/list","params":{"_meta":{"progressToken":7}}}
		< {RPC,"id":1,"result":{"tools":[]}}
		< {RPC,"method":"notifications/progress","params":{"progressToken":7,"progress":1}}`, `PROG-26-009`},
	{"cancel", `> {RPC,"id":1,"method":"tools/list"}
		> {RPC,"method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}`, ""},
	{"cancel of nothing CANC-25-001", `> {RPC,"method":"notifications/cancelled","params":{"requestId":1}}`, `CANC-25-001`},
}

// These hold in every revision.
var always = []exchange{
	{"not JSON", `> {`, "JSON"},
	{"duplicate names", `> {RPC,"id":1,"id":2,"method":"x/ext"}`, "JSON|duplicate"},
	{"two values", `> {RPC,"method":"notifications/x"} {}`, "more than one value"},
	{"bad UTF-8", "> {RPC,\"method\":\"notifications/x\xff\"}", "JSON|UTF-8"},
	{"not an object", `> 1`, "not an object"},
	{"version 1", `> {"jsonrpc":"1.0","id":1,"method":"x/ext"}`, `JSONRPCRequest|/jsonrpc`},
	{"no version", `> {"id":1,"method":"x/ext"}`, `jsonrpc`},
	{"id null BASE-26-004", `> {RPC,"id":null,"method":"x/ext"}`, `/id`},
	{"id fraction BASE-26-003", `> {RPC,"id":1.5,"method":"x/ext"}`, `/id`},
	{"id 1.0", `> {RPC,"id":1.0,"method":"x/ext"}`, `BASE-26-003`},
	{"params list", `> {RPC,"id":1,"method":"x/ext","params":[1]}`, `/params`},
	{"params in a response", `< {RPC,"id":1,"result":{},"params":{}}`, `params in a response`},
	{"both result and error BASE-2506-002", `< {RPC,"id":1,"result":{},"error":{"code":1,"message":"x"}}`, "BASE-2506-002"},
	{"neither BASE-2506-001", `< {RPC,"id":1}`, "BASE-2506-001"},
	{"method and result", `< {RPC,"id":1,"method":"x/ext","result":{}}`, "both a request and a response"},
	{"unknown member", `> {RPC,"id":1,"method":"x/ext","parms":{}}`, `unknown member "parms"`},
	{"response to nothing", `< {RPC,"id":1,"error":{"code":-32603,"message":"x"}}`, "no request of the client has this id"},
	{"id of another kind BASE-26-006", `> {RPC,"id":1,"method":"x/ext","params":{META}}
		< {RPC,"id":"1","error":{"code":-32603,"message":"x"}}`, "BASE-26-006"},
	{"two responses", `> {RPC,"id":1,"method":"x/ext","params":{META}}
		< {RPC,"id":1,"error":{"code":-32603,"message":"x"}}
		< {RPC,"id":1,"error":{"code":-32603,"message":"x"}}`, "a second response"},
	{"id reused while open", `> {RPC,"id":1,"method":"x/ext","params":{META}}
		> {RPC,"id":1,"method":"x/ext","params":{META}}`, "BASE-2"},
	{"large id", `> {RPC,"id":9007199254740993,"method":"x/ext","params":{META}}
		< {RPC,"id":9007199254740992,"error":{"code":-32603,"message":"x"}}`, "no request"},
	{"error without message BASE-26-013", `> {RPC,"id":1,"method":"x/ext","params":{META}}
		< {RPC,"id":1,"error":{"code":-32603}}`, "message"},
}

func TestEveryRevision(t *testing.T) {
	for _, revision := range wirecheck.Revisions() {
		t.Run(revision, func(t *testing.T) {
			run(t, revision, always)
			if revision < "2026-07-28" {
				run(t, revision, legacy)
			}
			if revision != "2025-03-26" { // BASE-26-032
				run(t, revision, []exchange{{"batch", `> [{RPC,"method":"notifications/x"}]`, "BASE-26-032"}})
			}
		})
	}
}

const open = `> {RPC,"id":0,"method":"initialize","params":{"protocolVersion":"REV","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
	< {RPC,"id":0,"result":{"protocolVersion":"REV","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
	> {RPC,"method":"notifications/initialized"}
	`

func opened(revision string) string { return strings.ReplaceAll(open, "REV", revision) }

func TestInitialize(t *testing.T) {
	for _, revision := range wirecheck.Revisions()[:4] {
		t.Run(revision, func(t *testing.T) {
			for _, mode := range []string{revision, ""} {
				run(t, mode, []exchange{
					{"whole", opened(revision), ""},
					{"INIT-25-003", `> {RPC,"id":0,"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
						< {RPC,"id":0,"result":{"protocolVersion":"` + revision + `","capabilities":{}}}`, "InitializeResult|serverInfo"},
					{"other version", `> {RPC,"id":0,"method":"initialize","params":{"protocolVersion":"1.0.0","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
						< {RPC,"id":0,"result":{"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`, "/result/protocolVersion"},
					{"CANC-25-002", `> {RPC,"id":0,"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
						> {RPC,"method":"notifications/cancelled","params":{"requestId":0}}`, "CANC-25-002"},
				})
			}
		})
	}
}

func Test2024_11_05(t *testing.T) {
	run(t, "2024-11-05", []exchange{
		{"audio", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":""}]}}`, "/result/content/0"},
		{"unreadable id is null", `< {RPC,"id":null,"error":{"code":-32700,"message":"x"}}`, ""},
		{"unreadable id is not left out", `< {RPC,"error":{"code":-32700,"message":"x"}}`, "BASE-26-012"},
		{"elicitation", `< {RPC,"id":1,"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}`, "server has no request"},
		{"completion", `> {RPC,"id":1,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"a://{b}"},"argument":{"name":"b","value":""}}}
			< {RPC,"id":1,"result":{"completion":{"values":["x"],"total":1,"hasMore":false}}}`, ""},
	})
}

func Test2025_03_26(t *testing.T) {
	run(t, "2025-03-26", []exchange{
		{"audio", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"result":{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAA="}]}}`, ""},
		{"resource link", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"result":{"content":[{"type":"resource_link","uri":"a://b","name":"b"}]}}`, "/result/content/0"},
		{"batch BASE-2503-001", `> [{RPC,"id":1,"method":"ping"},{RPC,"id":2,"method":"tools/list"},{RPC,"method":"notifications/x"}]
			< [{RPC,"id":2,"result":{"tools":[]}},{RPC,"id":1,"result":{}}]`, ""},
		{"fault in a batch", `> [{RPC,"id":1,"method":"ping"},{RPC,"id":2,"method":"tools/list"}]
			< [{RPC,"id":1,"result":{}},{RPC,"id":2,"result":{"tools":[{"name":"a"}]}}]`, `ListToolsResult at "/1/result"|/1/result/tools/0|inputSchema`},
		{"empty batch", `> []`, "empty"},
		{"mixed batch SHTTP-2503-001", `> [{RPC,"id":1,"method":"ping"},{RPC,"id":2,"result":{}}]`, "SHTTP-2503-001"},
		{"INIT-2503-001", `> [{RPC,"id":1,"method":"initialize","params":{}}]`, "INIT-2503-001"},
	})
}

func Test2025_06_18(t *testing.T) {
	run(t, "2025-06-18", []exchange{
		{"structured", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"result":{"content":[{"type":"resource_link","uri":"a://b","name":"b"}],"structuredContent":{"a":1}}}`, ""},
		{"structured is an object", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"result":{"content":[],"structuredContent":[1]}}`, "/result/structuredContent"},
		{"elicitation with a fraction", `< {RPC,"id":1,"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{"n":{"type":"number","minimum":0.5}}}}}
			> {RPC,"id":1,"result":{"action":"accept","content":{"n":0.75}}}`, ""},
		{"elicitation of an object", `< {RPC,"id":1,"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}
			> {RPC,"id":1,"result":{"action":"accept","content":{"n":{}}}}`, "ElicitResult|/result/content/n"},
	})
}

func Test2025_11_25(t *testing.T) {
	const task = `{"taskId":"t","status":"working","createdAt":"2025-11-25T00:00:00Z","lastUpdatedAt":"2025-11-25T00:00:00Z","ttl":null}`
	const start = `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","task":{"ttl":1},"_meta":{"progressToken":1}}}
		< {RPC,"id":1,"result":{"task":` + task + `}}
		`
	run(t, "2025-11-25", []exchange{
		{"task", start + `< {RPC,"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
			> {RPC,"id":2,"method":"tasks/get","params":{"taskId":"t"}}
			< {RPC,"id":2,"result":` + task + `}
			> {RPC,"id":3,"method":"tasks/result","params":{"taskId":"t"}}
			< {RPC,"id":3,"result":{"content":[TEXT]}}`, ""},
		{"TASK-25-033", start + `> {RPC,"id":3,"method":"tasks/result","params":{"taskId":"t"}}
			< {RPC,"id":3,"result":{"tools":[]}}`, "CallToolResult|content"},
		{"TASK-25-015", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","task":{}}}
			< {RPC,"id":1,"result":{"content":[]}}`, ""},
		{"TASK-25-026", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a","task":{}}}
			< {RPC,"id":1,"result":{"task":{"taskId":"t","status":"working","ttl":null}}}`, "CreateTaskResult|createdAt"},
		{"URL elicitation error", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32042,"message":"x","data":{"elicitations":[{"mode":"url","message":"x","url":"https://h/","elicitationId":"e"}]}}}`, ""},
		{"ELIC-25-007", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32042,"message":"x","data":{"elicitations":[{"mode":"url","message":"x","url":"https://h/"}]}}}`, "elicitationId"},
		{"ELIC-25-007 form", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32042,"message":"x","data":{"elicitations":[{"mode":"form","message":"x","requestedSchema":{"type":"object","properties":{}}}]}}}`, "elicitations/0"},
		{"ELIC-25-006", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32042,"message":"x","data":{}}}`, "elicitations"},
		{"URL elicitation error without data", `> {RPC,"id":1,"method":"tools/call","params":{"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32042,"message":"x"}}`, "URLElicitationRequiredError|data"},
		{"unreadable id is left out", `< {RPC,"error":{"code":-32700,"message":"x"}}`, ""},
		{"unreadable id is not null", `< {RPC,"id":null,"error":{"code":-32700,"message":"x"}}`, "JSONRPCErrorResponse|/id"},
	})
}

func Test2026_07_28(t *testing.T) {
	const listen = `> {RPC,"id":"l","method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true}}}
		`
	const ack = `< {RPC,"method":"notifications/subscriptions/acknowledged","params":{"_meta":{SUB:"l"},"notifications":{"toolsListChanged":true}}}
		`
	ask := func(can, input string) string {
		return `> {RPC,"id":1,"method":"tools/call","params":{CAN(` + can + `)CAN,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"input_required","inputRequests":{"q":` + input + `}}}`
	}
	const form = `{"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}`
	const url = `{"method":"elicitation/create","params":{"mode":"url","message":"x","url":"https://h/"}}`
	run(t, "2026-07-28", []exchange{
		{"discover", `> {RPC,"id":1,"method":"server/discover","params":{META}}
			< {RPC,"id":1,"result":{CACHED,"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"a/b":{"n":0.5,"z":null}}}}}`, ""},
		{"META-26-006", `> {RPC,"id":1,"method":"tools/list","params":{"_meta":{}}}`, "ListToolsRequest|/params/_meta"},
		{"no params", `> {RPC,"id":1,"method":"tools/list"}`, "params"},
		{"version of another revision", `> {RPC,"id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25","io.modelcontextprotocol/clientCapabilities":{}}}}`, "META-26-006"},
		{"BASE-26-008", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"content":[]}}`, "resultType"},
		{"BASE-26-010", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"foo","content":[]}}`, "BASE-26-009"},
		{"resultType of an extension", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"other","taskId":"t"}}`, ""},
		{"task for who takes none", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"task","taskId":"t"}}`, "XTASK-26-001"},
		{"caching is required", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"result":{"resultType":"complete","tools":[]}}`, "ListToolsResult|cacheScope|ttlMs"},
		{"negative ttlMs", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"result":{"resultType":"complete","tools":[],"cacheScope":"public","ttlMs":-1}}`, "/result/ttlMs"},
		{"id reused after the answer BASE-26-005", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"result":{CACHED,"tools":[]}}
			> {RPC,"id":1,"method":"tools/list","params":{META}}`, ""},
		{"MRTR-26-001", `< {RPC,"id":1,"method":"roots/list"}`, "MRTR-26-001"},
		{"no initialize", `> {RPC,"id":0,"method":"initialize","params":{}}`, `no request "initialize"`},
		{"no ping", `> {RPC,"id":0,"method":"ping","params":{META}}`, `no request "ping"`},
		{"HeaderMismatch", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"error":{"code":-32020,"message":"x"}}`, ""},
		{"META-26-011", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"error":{"code":-32021,"message":"x","data":{}}}`, "MissingRequiredClientCapabilityError|requiredCapabilities"},
		{"UnsupportedProtocolVersion", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}`, ""},
		{"BASE-26-020", `> {RPC,"id":1,"method":"resources/read","params":{META,"uri":"a://b"}}
			< {RPC,"id":1,"error":{"code":-32002,"message":"x"}}`, "BASE-26-020"},
		{"BASE-26-018", `> {RPC,"id":1,"method":"resources/read","params":{META,"uri":"a://b"}}
			< {RPC,"id":1,"error":{"code":-32050,"message":"x"}}`, "BASE-26-018"},
		{"any structured content", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"complete","content":[],"structuredContent":null}}`, ""},
		{"input round", ask(`{"elicitation":{}}`, form) + `
			> {RPC,"id":2,"method":"tools/call","params":{CAN({"elicitation":{}})CAN,"name":"a","inputResponses":{"q":{"action":"accept","content":{"n":0.5}}}}}
			< {RPC,"id":2,"result":{"resultType":"complete","content":[]}}`, ""},
		{"input round of a list MRTR-26-002", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"result":{"resultType":"input_required","requestState":"s"}}`, "MRTR-26-002"},
		{"retry of a list", `> {RPC,"id":1,"method":"tools/list","params":{META,"requestState":"s"}}`, "MRTR-26-002"},
		{"MRTR-26-005", ask(`{"elicitation":{}}`, `{"method":"tools/list"}`), "InputRequiredResult|/result/inputRequests/q"},
		{"MRTR-26-013", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"input_required"}}`, "MRTR-26-013"},
		{"undeclared elicitation MRTR-26-014", ask(`{}`, form), "MRTR-26-014|did not declare elicitation"},
		{"undeclared URL mode", ask(`{"elicitation":{"form":{}}}`, url), "elicitation.url"},
		{"undeclared form mode", ask(`{"elicitation":{"url":{}}}`, form), "elicitation.form"},
		{"declared URL mode", ask(`{"elicitation":{"url":{}}}`, url), ""},
		{"undeclared roots", ask(`{}`, `{"method":"roots/list"}`), "roots"},
		{"undeclared sampling tools", ask(`{"sampling":{}}`, `{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[],"tools":[]}}`), "sampling.tools"},
		{"state beside a complete result", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"id":1,"result":{"resultType":"complete","content":[],"requestState":"s"}}`, "input_required"},
		{"LOG-26-004", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"method":"notifications/message","params":{"level":"info","data":1}}`, "LOG-26-004"},
		{"log on request", `> {RPC,"id":1,"method":"tools/call","params":{"_meta":{VERSION,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"},"name":"a"}}
			< {RPC,"method":"notifications/message","params":{"level":"info","data":1}}`, ""},
		{"listen", listen + ack + `< {RPC,"method":"notifications/tools/list_changed","params":{"_meta":{SUB:"l"}}}
			< {RPC,"method":"notifications/cancelled","params":{"requestId":"l"}}
			< {RPC,"id":"l","result":{"resultType":"complete","_meta":{SUB:"l"}}}`, ""},
		{"change after the end", listen + ack + `< {RPC,"id":"l","result":{"resultType":"complete","_meta":{SUB:"l"}}}
			< {RPC,"method":"notifications/tools/list_changed","params":{"_meta":{SUB:"l"}}}`, "SUB-26-006"},
		{"end with another id", listen + ack + `< {RPC,"id":"l","result":{"resultType":"complete","_meta":{SUB:"m"}}}`, "META-26-017"},
		{"SUB-26-001", listen + ack + `< {RPC,"method":"notifications/prompts/list_changed","params":{"_meta":{SUB:"l"}}}`, "SUB-26-001"},
		{"SUB-26-003", listen + `< {RPC,"method":"notifications/tools/list_changed","params":{"_meta":{SUB:"l"}}}`, "SUB-26-003"},
		{"SUB-26-004", listen + `< {RPC,"method":"notifications/subscriptions/acknowledged","params":{"_meta":{SUB:"l"},"notifications":{"promptsListChanged":true}}}`, "SUB-26-004"},
		{"SUB-26-006", listen + ack + `< {RPC,"method":"notifications/tools/list_changed"}`, "SUB-26-006"},
		{"CANC-26-008", `> {RPC,"method":"notifications/cancelled","params":{"requestId":1}}`, "CANC-26-008"},
		{"CANC-26-009 SUB-26-012", `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"method":"notifications/cancelled","params":{"requestId":1}}`, "CANC-26-009"},
		{"ROOT-26-004", `> {RPC,"method":"notifications/roots/list_changed","params":{}}`, "client has no notification"},
		{"progress of the client", `> {RPC,"method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, "client has no notification"},
	})
}

// META-26-002, -003, -005: what a key of _meta may look like.
func TestMetaKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"": true, "a": true, "7": true, "a.b_c-d": true,
		"a/": true, "a/b": true, "com.example/k": true, "a-1.b2/": true, "A.B/C": true,
		".a": false, "a.": false, "a-": false, "_a": false, "a b": false, "é": false,
		"/a": false, "1/a": false, "a./b": false, "a..b/c": false, ".a/b": false, "-a/b": false,
		"a-/b": false, "a_b/c": false, "a/b/c": false, "a/b-": false, "a/.b": false,
	} {
		for _, revision := range wirecheck.Revisions() {
			fault := "META-26-002"
			if want || revision < "2025-06-18" { // earlier, every key is valid
				fault = ""
			}
			meta := `{"` + key + `":1}`
			list, keyed, result := `{}`, `{"_meta":`+meta+`}`, `{"tools":[],"_meta":`+meta+`}`
			if revision == "2026-07-28" {
				list, result = `{META}`, `{CACHED,"tools":[],"_meta":`+meta+`}`
				keyed = `{"_meta":{"` + key + `":1,VERSION,"io.modelcontextprotocol/clientCapabilities":{}}}`
			}
			run(t, revision, []exchange{
				{"request " + key, `> {RPC,"id":1,"method":"tools/list","params":` + keyed + `}`, fault},
				{"result " + key, `> {RPC,"id":1,"method":"tools/list","params":` + list + `}
					< {RPC,"id":1,"result":` + result + `}`, fault},
				{"notification " + key, `> {RPC,"id":1,"method":"tools/list","params":` + list + `}
					> {RPC,"method":"notifications/cancelled","params":{"requestId":1,"_meta":` + meta + `}}`, fault},
			})
		}
	}
}

func TestAnyRevision(t *testing.T) {
	run(t, "", []exchange{
		{"both eras on one connection", opened("2025-06-18") + `> {RPC,"id":1,"method":"tools/list"}
			> {RPC,"id":2,"method":"tools/list","params":{META}}
			< {RPC,"id":2,"result":{CACHED,"tools":[]}}
			< {RPC,"id":1,"result":{"tools":[]}}
			< {RPC,"method":"notifications/tools/list_changed"}
			< {RPC,"id":1,"method":"elicitation/create","params":{"message":"x","requestedSchema":{"type":"object","properties":{}}}}`, ""},
		{"modern result to a legacy request", opened("2025-06-18") + `> {RPC,"id":1,"method":"tools/list"}
			< {RPC,"id":1,"result":{CACHED,"tools":[]}}`, "2025-06-18|/result/resultType"},
		{"legacy result to a modern request", opened("2025-06-18") + `> {RPC,"id":1,"method":"tools/list","params":{META}}
			< {RPC,"id":1,"result":{"tools":[]}}`, "2026-07-28|resultType"},
		{"probe and fall back", `> {RPC,"id":1,"method":"server/discover","params":{META}}
			< {RPC,"id":1,"error":{"code":-32601,"message":"x"}}
			> {RPC,"id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
			< {RPC,"id":2,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
			> [{RPC,"id":3,"method":"ping"}]`, ""},
		{"INIT-25-001", `> {RPC,"id":1,"method":"tools/list"}`, "INIT-25-001"},
		{"ping first", `> {RPC,"id":1,"method":"ping"}
			< {RPC,"id":1,"result":{}}`, ""},
		{"a new session has its own ids", opened("2025-06-18") + `> {RPC,"id":1,"method":"ping"}
			< {RPC,"id":1,"result":{}}
			` + opened("2025-06-18") + `> {RPC,"id":1,"method":"ping"}`, ""},
		{"settled version decides", opened("2024-11-05") + `< {RPC,"id":1,"method":"elicitation/create","params":{}}`, "2024-11-05|server has no request"},
		{"request of the server before initialize", `< {RPC,"id":1,"method":"roots/list"}`, "before initialize"},
		{"notification of a modern server", `> {RPC,"id":1,"method":"tools/call","params":{META,"name":"a"}}
			< {RPC,"method":"notifications/message","params":{"level":"info","data":1}}`, "LOG-26-004"},
	})
}

// A bad request is recorded, so that its answer can be checked.
func TestAnswerToABadRequest(t *testing.T) {
	c := wirecheck.New("2026-07-28")
	if err := c.Frame(true, []byte(`{"jsonrpc":"2.0","id":1,"method":"nope"}`)); err == nil {
		t.Fatal("an unknown method passed")
	}
	if got := c.Unanswered(true); len(got) != 1 || got[0] != "nope" {
		t.Errorf("Unanswered = %q, want nope", got)
	}
	if err := c.Frame(false, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}`)); err != nil {
		t.Errorf("its answer: %v", err)
	}
	if got := c.Unanswered(true); got != nil {
		t.Errorf("Unanswered = %q, want none", got)
	}
}

func TestNewPanicsOnAnUnknownRevision(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New did not panic")
		}
	}()
	wirecheck.New("2023-01-01")
}

// For all input the result is nil or a *Fault of bounded length.
func FuzzFrame(f *testing.F) {
	for _, tests := range [][]exchange{always, legacy} {
		for _, tt := range tests {
			for line := range strings.Lines(tt.frames) {
				f.Add(strings.Contains(line, ">"), []byte(short.Replace(strings.TrimSpace(line)[2:])))
			}
		}
	}
	f.Fuzz(func(t *testing.T, fromClient bool, in []byte) {
		for _, revision := range []string{"", "2025-03-26", "2026-07-28"} {
			c := wirecheck.New(revision)
			for range 2 {
				err := c.Frame(fromClient, in)
				if err != nil && !errors.As(err, new(*wirecheck.Fault)) {
					t.Fatalf("Frame(%q) = %v, want a *Fault", in, err)
				}
				if err != nil && len(err.Error()) > 4096+8*len(in) {
					t.Fatalf("Frame(%q): a fault of %d bytes", in, len(err.Error()))
				}
			}
		}
	})
}
