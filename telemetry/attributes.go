package telemetry

import "go.opentelemetry.io/otel/attribute"

// Conventions is the version of the semantic conventions of OpenTelemetry that the names below
// follow. Those for MCP have the status Development; their later versions are in the repository
// semantic-conventions-genai.
const Conventions = "1.40.0"

const (
	keyMethod       = attribute.Key("mcp.method.name")
	keyRevision     = attribute.Key("mcp.protocol.version")
	keySession      = attribute.Key("mcp.session.id") // a digest
	keyURI          = attribute.Key("mcp.resource.uri")
	keyOperation    = attribute.Key("gen_ai.operation.name")
	keyTool         = attribute.Key("gen_ai.tool.name")
	keyPrompt       = attribute.Key("gen_ai.prompt.name")
	keyArguments    = attribute.Key("gen_ai.tool.call.arguments")
	keyResult       = attribute.Key("gen_ai.tool.call.result")
	keyRequestID    = attribute.Key("jsonrpc.request.id")
	keyStatusCode   = attribute.Key("rpc.response.status_code")
	keyErrorType    = attribute.Key("error.type")
	keyTransport    = attribute.Key("network.transport")
	keyAddress      = attribute.Key("server.address")
	keyPort         = attribute.Key("server.port")
	keyServer       = attribute.Key("patchbay.server") // the name of a server behind a gateway
	keyRound        = attribute.Key("patchbay.round")  // answered rounds of questions before this one
	keyProgress     = attribute.Key("patchbay.progress")
	keyTotal        = attribute.Key("patchbay.progress.total")
	eventQuestion   = "mcp.question"
	eventTask       = "mcp.task"
	eventProgress   = "mcp.progress"
	executeTool     = "execute_tool" // of keyOperation
	spanWait        = "wait"         // in a gateway, before a request is sent
	errorTool       = "tool_error"   // of keyErrorType, like those below
	errorCanceled   = "cancelled"
	errorDeadline   = "deadline"
	errorTransport  = "transport"
	errorOther      = "_OTHER"
	errorPanic      = "panic"
	instrumentation = "github.com/patchbay-dev/patchbay/telemetry"
)
