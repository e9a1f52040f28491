// The shapes of what the program sends. Each is a Go type of package inspector, of internal/health or of metrics.

// State is the answer of /ui/state, and an event.
export interface State {
	title: string; // the configuration, or the command, for people
	version: string;
	home: "servers" | "tools" | "wire"; // the first screen
	url?: string; // of the MCP endpoint; absent: there is none
	person: string; // who looks at the page
	principal?: string; // the same as the ID of a caller
	admin: boolean; // may act on servers and answer for others
	recording?: string; // the file that is shown instead of live traffic
	can: { call: boolean; steer: boolean; policy: boolean; audit: boolean; judge: boolean; login: boolean };
	servers: Server[];
	sandbox?: string; // origin at which views of apps are shown
	noSandbox?: string; // why they are not
	connect?: string[]; // how hosts connect to the gateway: lines to paste begin with two spaces, below the names of their places
	open: number; // questions of other callers that the person may answer
}

// Server is a health.Server: the members that the page uses.
export interface Server {
	name: string;
	state: string;
	since: string;
	reason?: string;
	login?: string; // what to do if it needs a login
	said?: string[]; // last lines of standard error, if it does not run
	restarts: number;
	share: string;
	clients: number;
	connections: number;
	processes: number;
	memory?: number;
	tools: number; // -1: unknown
	tokens?: number;
	prompts: number;
	resources: number;
	server?: string; // name, version, revision
	waiting?: number;
	lastMinute?: Stats;
	largest?: { name: string; tokens: number }[]; // of its tools, by the size of their definitions
	questionSince?: string; // when the oldest open question to a caller was asked
	asked?: string; // the principal who has to answer it
	lost?: string; // why a connection last ended by itself
	lostAt?: string;
	required?: boolean;
}

export interface Stats {
	calls: number;
	open?: number;
	errors?: Record<string, number>;
	canceled?: number;
	bytesIn?: number;
	bytesOut?: number;
	p50Ms?: number;
	p95Ms?: number;
	p99Ms?: number;
}

// Row is one line of the wire screen: a request with its answer, or a frame that is neither. A row is sent again when it
// changes; n identifies it.
export interface Row {
	n: number; // number of its first frame
	at: number; // milliseconds since the start of the recording, with microseconds
	conn: string;
	server: string; // empty: the connection of a client
	client?: string; // name of the client, as it gave it
	dir: "in" | "out"; // seen from this program
	kind: string; // "request", "answer" (without its request), "note", "batch", "http", "bytes", or the kind of a frame: "start", "exit", "stderr", "open", "close", "session", "event", "comment"
	method?: string;
	target?: string; // the name or URI that the request is about
	id?: string; // as JSON
	cause?: number; // n of the row that caused it
	depth: number; // 0, or 1 below its cause, and so on
	bytes: number; // on the wire
	back?: number; // of the answer
	ms?: number; // from request to answer, as measured where the bytes are
	status: "" | "open" | "ok" | "tool error" | "error" | "canceled";
	text?: string; // short, for people: the error, the note, the line
	count?: number; // of equal notifications after each other, or of the messages of a batch
	lost?: number; // frames that are missing before it
}

// Side is one message of a row, with what carried it.
export interface Side {
	n: number; // number of the frame
	time?: string; // RFC 3339, with microseconds
	dir: "in" | "out";
	conn: string;
	revision?: string;
	http?: { method?: string; path?: string; status?: number; headers?: Record<string, string[]> };
	json?: string; // the message, indented, with control characters visible
	raw?: string; // the bytes, with control characters visible
	bytes: number;
	cut?: number; // bytes that were not recorded
	left?: number; // bytes that were recorded and are not here
	faults?: string[]; // what the schema of the revision says against it; absent: nothing, or not checked
	checked: boolean;
	fits?: boolean; // its structured content fits the output schema of the tool
}

// Change is a place in which two messages differ.
export interface Change {
	path: string; // request.params.name
	kind: "added" | "removed" | "changed";
	from?: string;
	to?: string;
}

// Detail is the answer of /ui/row/N.
export interface Detail {
	row: Row;
	sides: Side[]; // request, notes in between, answer
	other?: { row: Row; sides: Side[]; changed: Change[] }; // the same call on the other hop, and what the translation changed
	before?: number; // n of the previous request with the same method and target
	cli?: string; // the command that makes this call
	curl?: string;
	test?: string; // Go
}

// Form is the answer of /ui/form: a schema as a field, with its parts.
export interface Form extends Field {
	error?: string; // why values are not checked
}

export interface Field {
	name: string;
	title?: string;
	description?: string;
	kind: "string" | "number" | "integer" | "boolean" | "enum" | "multi-enum" | "object" | "list" | "choice" | "other";
	required?: boolean;
	default?: unknown;
	options?: { value: unknown; title: string }[];
	format?: string;
	pattern?: string;
	min?: string;
	max?: string;
	bounds?: string; // the same for people: "1…1000"
	example?: unknown;
	fields?: Field[]; // of an object; of a list: its first elements
	rest?: Field; // of further members of an object
	element?: Field; // of a list
	alternatives?: Field[]; // of a choice
	more?: string[]; // its parts are not here: /ui/form has them at this place
}

// Fault is a fault of a value, from /ui/check.
export interface Fault {
	path: string; // JSON pointer; empty: the whole
	text: string;
}

// Question is a question of a server that waits for another caller, from /ui/inbox.
export interface Question {
	id: string;
	server?: string;
	about?: string; // the call that it belongs to
	principal?: string; // who has to answer
	client?: string;
	method: string;
	params: any;
	since: string;
}

// Point has the counts of a minute, or of another span, of a server or a tool; times are in milliseconds.
export interface Point {
	at: string;
	calls: number;
	errors: number;
	slow: number; // took longer than a second
	p50: number;
	p95: number;
	p99: number;
	bytesIn: number;
	bytesOut: number;
}

// Traffic is the answer of /ui/metrics.
export interface Traffic {
	from: string;
	to: string;
	stepMs: number; // length of a span
	series: { server: string; tool?: string; points: Point[] }[]; // points only of spans with calls
}
