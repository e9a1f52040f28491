// The MCP client of the page: revision 2026-07-28 over POST /ui/mcp/SERVER. Every request stands alone.
import { state } from "./store";

// revision is that which the page speaks.
export const revision = "2026-07-28";
const prefix = "io.modelcontextprotocol/";
const tasksExtension = prefix + "tasks";

// Most rounds of questions that one call may ask, and most pages of a list.
const maxRounds = 50;
const maxPages = 200;

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Obj = { [name: string]: any };

// RpcError is an error of a server, with its code and data.
export class RpcError extends Error {
	constructor(readonly code: number, message: string, readonly data?: unknown) {
		super(message);
	}
}

// Declined is the end of a call whose question was declined in a way that the protocol has no answer for.
export class Declined extends Error {}

export interface Progress {
	progress: number;
	total?: number;
	message?: string;
}

export interface Log {
	level: string;
	logger?: string;
	data: unknown;
}

// Asked is what a server asks while it works on a call.
export interface Asked {
	method: string;
	params: Obj;
}

export interface Task {
	taskId: string;
	status: "working" | "input_required" | "completed" | "cancelled" | "failed";
	statusMessage?: string;
	createdAt: string;
	lastUpdatedAt: string;
	ttlMs: number | null;
	pollIntervalMs?: number;
	inputRequests?: Record<string, Asked>;
	result?: Obj;
	error?: { code: number; message: string; data?: unknown };
}

// Options are what a request may be accompanied by.
export interface Options {
	signal?: AbortSignal;
	keepalive?: boolean; // it is sent also when the page goes
	headers?: Record<string, string>;
	progress?: (p: Progress) => void;
	log?: (l: Log) => void;
	note?: (method: string, params: Obj) => void; // any other notification
	took?: (ms: number, bytes: number) => void; // time in the program, and size of the answer
	ask?: (questions: Record<string, Asked>) => Promise<Record<string, unknown>>;
	task?: (t: Task) => void;
}

// JSON.rawJSON keeps integers exact that JavaScript would round. Browsers without it round them.
const exact = JSON as unknown as { rawJSON?: (text: string) => unknown; isRawJSON?: (v: unknown) => boolean };

// isExact reports whether a value is an integer that was kept as text.
export const isExact = (v: unknown): v is { rawJSON: string } => exact.isRawJSON?.(v) ?? false;

// isObject reports whether a value is an object of JSON.
export const isObject = (v: unknown): v is Obj => typeof v === "object" && v !== null && !Array.isArray(v) && !isExact(v);

// objects returns the objects of a list that a server may have sent otherwise.
export const objects = (v: unknown): Obj[] => (Array.isArray(v) ? v.filter(isObject) : []);

// parse is JSON.parse with exact integers.
export function parse(text: string): any {
	if (!exact.rawJSON || !/\d{16}/.test(text)) return JSON.parse(text);
	return (JSON.parse as any)(text, (_: string, v: unknown, at?: { source?: string }) =>
		typeof v === "number" && at?.source && /^-?\d{16,400}$/.test(at.source) && !Number.isSafeInteger(v) ? exact.rawJSON!(at.source) : v,
	);
}

// header encodes a value for a header (2026-07-28, basic/transports/streamable-http, Value Encoding).
function header(value: string): string {
	if (/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value) && !/^=\?base64\?.*\?=$/.test(value)) return value;
	let bytes = "";
	for (const b of new TextEncoder().encode(value)) bytes += String.fromCharCode(b);
	return `=?base64?${btoa(bytes)}?=`;
}

// paramHeaders returns the headers that a tool wants its arguments in too (x-mcp-header).
export function paramHeaders(schema: Obj | undefined, args: any): Record<string, string> {
	const out: Record<string, string> = {};
	const below = (s: any, value: any, depth: number) => {
		if (depth > 32 || !isObject(s?.properties) || !isObject(value)) return;
		for (const [name, of] of Object.entries<any>(s.properties)) {
			const v = Object.hasOwn(value, name) ? value[name] : undefined;
			const as = of?.["x-mcp-header"];
			if (typeof as === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(as) && v !== undefined && v !== null && (typeof v !== "object" || isExact(v))) {
				out["Mcp-Param-" + as] = header(isExact(v) ? v.rawJSON : String(v));
			}
			below(of, v, depth + 1);
		}
	};
	below(schema, args, 0);
	return out;
}

let lastId = 0;

// standardHeaders are the headers of a request (2026-07-28, basic/transports/streamable-http, Standard Request Headers).
function standardHeaders(method: string, named: unknown): Record<string, string> {
	return {
		"Content-Type": "application/json",
		Accept: "application/json, text/event-stream",
		"MCP-Protocol-Version": revision,
		"Mcp-Method": method,
		...(typeof named === "string" && /^(tools\/call|prompts\/get|resources\/read|tasks\/.*)$/.test(method) ? { "Mcp-Name": header(named) } : {}),
	};
}

// written is what a call of a tool has around its arguments, to be written elsewhere.
export function written(tool: { name: string; inputSchema?: Obj }, args: unknown): { headers: Record<string, string>; meta: Obj } {
	const meta = { [prefix + "protocolVersion"]: revision, [prefix + "clientInfo"]: { name: "curl", version: "0" }, [prefix + "clientCapabilities"]: {} };
	return { headers: { ...standardHeaders("tools/call", tool.name), ...paramHeaders(tool.inputSchema, args) }, meta };
}

function envelope(o: Options): Obj {
	return {
		[prefix + "protocolVersion"]: revision,
		[prefix + "clientInfo"]: { name: "patchbay-page", title: "Patchbay page", version: state.now?.version ?? "0" },
		[prefix + "clientCapabilities"]: { elicitation: { form: {}, url: {} }, sampling: {}, extensions: { [tasksExtension]: {}, ...(state.now?.sandbox ? { [prefix + "ui"]: { mimeTypes: ["text/html;profile=mcp-app"] } } : {}) } },
		...(o.progress ? { progressToken: lastId } : {}),
		...(o.log ? { [prefix + "logLevel"]: "debug" } : {}),
	};
}

// events calls take with the data of each event of a stream, and said with the text of each comment.
async function events(body: ReadableStream<Uint8Array>, take: (data: string) => void, said: (comment: string) => void): Promise<void> {
	const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
	let rest = "";
	let data: string[] = [];
	for (;;) {
		const { done, value } = await reader.read();
		if (done) return;
		const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
		rest = lines.pop()!;
		for (const line of lines) {
			if (line === "") {
				if (data.length > 0) take(data.join("\n"));
				data = [];
			} else if (line.startsWith("data:")) {
				data.push(line.slice(line[5] === " " ? 6 : 5));
			} else if (line[0] === ":") {
				said(line.slice(1).trim());
			}
		}
	}
}

// Client sends requests to one server.
export class Client {
	constructor(readonly server: string) {}

	// request sends one request, and returns its result as it is.
	async request(method: string, params: Obj = {}, o: Options = {}): Promise<Obj> {
		const id = ++lastId;
		const named = params.name ?? params.uri ?? params.taskId;
		const res = await fetch("/ui/mcp/" + encodeURIComponent(this.server), {
			method: "POST",
			signal: o.signal ?? null,
			keepalive: o.keepalive ?? false,
			headers: { ...standardHeaders(method, named), "Patchbay-Page": "1", ...o.headers },
			body: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: { ...params._meta, ...envelope(o) } } }),
		});
		let answer: Obj | undefined;
		let ms: number | undefined;
		let bytes = 0;
		const take = (text: string) => {
			const m = parse(text) as Obj;
			if (m.method === undefined) {
				answer = m;
				bytes = text.length; // corrected below for other than ASCII
				if (/[^\x00-\x7f]/.test(text)) bytes = new TextEncoder().encode(text).length;
			} else if (m.method === "notifications/progress") o.progress?.(m.params);
			else if (m.method === "notifications/message") o.log?.(m.params);
			else o.note?.(m.method, m.params ?? {});
		};
		if (res.headers.get("Content-Type")?.startsWith("text/event-stream") && res.body) {
			await events(res.body, take, (said) => {
				const took = /^took ([\d.]+)$/.exec(said);
				if (took) ms = Number(took[1]);
			});
		} else {
			const text = await res.text();
			ms = Number(/dur=([\d.]+)/.exec(res.headers.get("Server-Timing") ?? "")?.[1] ?? NaN);
			try {
				take(text);
			} catch {
				throw new RpcError(res.status, text.trim() || `HTTP ${res.status}`);
			}
		}
		if (ms !== undefined && !Number.isNaN(ms)) o.took?.(ms, bytes);
		if (answer?.error) throw new RpcError(answer.error.code, String(answer.error.message), answer.error.data);
		if (answer?.result === undefined) throw new RpcError(res.status, answer?.detail ?? "the answer has no result");
		return answer.result;
	}

	// rounds sends a request whose server may ask first, and answers until it has a result.
	async rounds(method: string, params: Obj, o: Options = {}): Promise<Obj> {
		let more: Obj = {};
		for (let round = 0; ; round++) {
			const r = await this.request(method, { ...params, ...more }, o);
			if (r.resultType !== "input_required") return r;
			if (round === maxRounds) throw new Error(`the server asked more than ${maxRounds} times`);
			more = r.requestState === undefined ? {} : { requestState: r.requestState };
			if (r.inputRequests) {
				if (!o.ask) throw new Error("the server asks a question, which cannot be answered here");
				try {
					more.inputResponses = await o.ask(r.inputRequests);
				} catch (err) {
					// The call of the server would wait on: the answers end it.
					const inputResponses = Object.fromEntries(Object.keys(r.inputRequests).map((key) => [key, { action: "cancel" }]));
					this.request(method, { ...params, ...more, inputResponses }, { headers: o.headers, keepalive: true }).catch(() => undefined);
					throw err;
				}
			}
		}
	}

	// call calls a tool. If the server makes the call a task, it follows the task to its end.
	async call(name: string, args: unknown, o: Options = {}): Promise<Obj> {
		const r = await this.rounds("tools/call", { name, arguments: args }, o);
		return r.resultType === "task" ? this.follow(r as unknown as Task, o) : r;
	}

	// follow asks for the state of a task until it has ended, and answers its questions.
	async follow(task: Task, o: Options = {}): Promise<Obj> {
		const answered = new Set<string>();
		const quiet = { signal: o.signal }; // a task has no progress
		for (let t = task; ; ) {
			o.task?.(t);
			if (t.status === "completed") return t.result ?? {};
			if (t.status === "failed") throw new RpcError(t.error?.code ?? 0, t.error?.message ?? t.statusMessage ?? "the task failed", t.error?.data);
			if (t.status === "cancelled") throw new DOMException(t.statusMessage || "the task was canceled", "AbortError");
			const open = Object.entries(t.inputRequests ?? {}).filter(([key]) => !answered.has(key));
			if (t.status === "input_required" && open.length > 0 && o.ask) {
				const inputResponses = await o.ask(Object.fromEntries(open));
				for (const [key] of open) answered.add(key);
				await this.request("tasks/update", { taskId: t.taskId, inputResponses }, quiet);
			} else {
				await pause(Math.min(Math.max(Number(t.pollIntervalMs) || 500, 100), 30_000), o.signal);
			}
			t = (await this.request("tasks/get", { taskId: t.taskId }, quiet)) as unknown as Task;
		}
	}

	// list returns all pages of a list: "tools", "prompts", "resources" or "resourceTemplates".
	async list<T>(of: string, signal?: AbortSignal): Promise<T[]> {
		const all: T[] = [];
		const method = of === "resourceTemplates" ? "resources/templates/list" : of + "/list";
		let cursor: string | undefined;
		for (let page = 0; page < maxPages; page++) {
			const r = await this.request(method, cursor === undefined ? {} : { cursor }, { signal });
			all.push(...((r[of] as T[] | undefined) ?? []));
			if (r.nextCursor === undefined || r.nextCursor === cursor) return all;
			cursor = r.nextCursor;
		}
		throw new Error(`the list has more than ${maxPages} pages`);
	}

	// complete returns completions of an argument.
	async complete(ref: Obj, name: string, value: string, others: Record<string, string>, signal?: AbortSignal): Promise<string[]> {
		const r = await this.request("completion/complete", { ref, argument: { name, value }, context: { arguments: others } }, { signal });
		return Array.isArray(r.completion?.values) ? r.completion.values.slice(0, 100) : [];
	}

	// listen gets notes until it is stopped or the server ends it.
	async listen(notifications: Obj, note: (method: string, params: Obj) => void, signal: AbortSignal): Promise<void> {
		await this.request("subscriptions/listen", { notifications }, { signal, note });
	}
}

// pause waits.
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
	return new Promise((resolve, reject) => {
		if (signal?.aborted) return reject(signal.reason);
		const stop = () => {
			clearTimeout(timer);
			reject(signal!.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", stop); // a task is asked for thousands of times with one signal
			resolve();
		}, ms);
		signal?.addEventListener("abort", stop);
	});
}

const clients = new Map<string, Client>();

// client returns the client of a server.
export function client(server: string): Client {
	let c = clients.get(server);
	if (!c) clients.set(server, (c = new Client(server)));
	return c;
}
