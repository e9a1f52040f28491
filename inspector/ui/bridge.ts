// The host's side of a view of MCP Apps (extensions/apps, document of 2026-01-26): JSON-RPC between the page and the view,
// through the sandbox (sandbox.ts).
//
// Rules for what comes from a view:
//
//   - It counts only if the window of the sandbox sent it, from the origin of the sandbox.
//   - Methods of the extension are answered here. What leads out of the page, or speaks for the person, asks them first,
//     one question at a time.
//   - A call of a tool goes to the server of the view, if the tool is for apps; so do reads of resources. At most 8 run at
//     once.
//   - Everything else is answered with an error.
import { client, isObject, RpcError, type Obj } from "./mcp";
import type { Tool } from "./lists";
import { callTool, history, type Run } from "./runs";
import { webAddress } from "./text";

const sandbox = "ui/notifications/sandbox-";
const maxOpen = 8; // calls of a view at once
const maxStray = 500; // messages of a view past its sandbox
const maxKept = 300; // messages that are shown
const maxText = 20_000; // characters of one that are shown

// Message is a message of the bridge, for people.
export interface Message {
	n: number;
	from: "view" | "page";
	what: string; // the method, or that of the request that is answered
	text: string; // as JSON
	fault?: string; // why it was refused
}

// Question is what a view asks the person.
export interface Question {
	what: "open-link" | "message";
	text: string;
	answer: (yes: boolean) => void;
}

// Link is _meta.ui of a tool.
export interface Link {
	view?: string;
	model: boolean;
	app: boolean;
}

// linkOf returns the link of a tool. A tool with a link that is not valid is for nobody.
export function linkOf(tool: Tool): Link {
	const ui: unknown = tool._meta?.ui ?? {};
	const old: unknown = tool._meta?.["ui/resourceUri"];
	if (!isObject(ui)) return { model: false, app: false };
	const uri = ui.resourceUri ?? (typeof old === "string" ? old : undefined);
	const who = ui.visibility ?? undefined;
	const valid = (uri === undefined || typeof uri === "string") && (who === undefined || (Array.isArray(who) && who.every((w) => typeof w === "string")));
	const may = (whom: string) => valid && (who === undefined || who.includes(whom));
	return { view: valid && String(uri).startsWith("ui://") ? uri : undefined, model: may("model"), app: may("app") };
}

const fault = (code: number, message: string): { error: Obj } => ({ error: { code, message } });

// over resolves with a call when it has ended.
const over = (run: Run): Promise<Run> =>
	new Promise((resolve) => {
		const all = history(run.server, "tool", run.name);
		let leave = () => {};
		const look = (list: Run[]) => {
			const now = list.find((r) => r.n === run.n);
			if (now && now.status === "open") return;
			leave();
			resolve(now ?? { ...run, status: "canceled" });
		};
		leave = all.follow(look);
		look(all.now);
	});

// Parts are what a bridge is made with.
export interface Parts {
	server: string;
	tool: Tool;
	tools: () => Tool[]; // of the server, as they are now
	origin: string; // of the sandbox
	html: string;
	granted: Obj; // of _meta.ui of the view: csp
	context: () => Obj; // the context of the host
	changed: () => void; // the messages, or the question, have changed
	sized: (size: { width?: number; height?: number }) => void;
	stopped: (why: string) => void;
}

export class Bridge {
	messages: Message[] = [];
	lost = 0; // messages that are not kept
	question?: Question;
	calls: Run[] = []; // that are under way
	forModel?: Obj; // what the view has told the model last
	#count = 0;
	#open = 0;
	#stray = 0;
	#ready = false; // the view has said that it is initialized
	#ended = false;
	#run?: Run;
	#given = 0; // of the run: 1 its arguments, 2 its result
	#frame?: HTMLIFrameElement;
	#stop = new AbortController();

	constructor(private p: Parts) {}

	// show begins with a frame whose document is the sandbox.
	show(frame: HTMLIFrameElement): () => void {
		this.#frame = frame;
		const take = (e: MessageEvent) => {
			const from = e.source as Window | null;
			if (from === frame.contentWindow && e.origin === this.p.origin && typeof e.data === "string") return this.#take(e.data);
			// Many messages of the view before may come only now. Their window is gone.
			if (from === window || !from?.parent || this.#ended) return;
			if (++this.#stray > maxStray) this.#end(`it sent more than ${maxStray} messages to the page`);
		};
		addEventListener("message", take);
		return () => {
			this.#send({ id: 0, method: "ui/resource-teardown", params: { reason: "the page shows something else" } }, "ui/resource-teardown");
			removeEventListener("message", take);
			this.#ended = true;
			this.#stop.abort();
			this.question?.answer(false);
		};
	}

	// give tells the view about the call that it shows.
	give(run: Run): void {
		this.#run = run;
		if (!this.#ready) return;
		const note = (what: string, params: Obj) => this.#send({ method: "ui/notifications/" + what, params }, "ui/notifications/" + what);
		if (this.#given === 0) note("tool-input", { arguments: run.args ?? {} });
		this.#given = Math.max(this.#given, 1);
		if (this.#given > 1 || run.status === "open") return;
		this.#given = 2;
		if (run.result) note("tool-result", run.result);
		else note("tool-cancelled", { reason: run.error?.message ?? run.status });
	}

	// change tells the view about a change of its surroundings.
	change(part: Obj): void {
		if (this.#ready) this.#send({ method: "ui/notifications/host-context-changed", params: part }, "ui/notifications/host-context-changed");
	}

	#end(why: string): void {
		if (this.#ended) return;
		this.#ended = true;
		this.#stop.abort();
		this.question?.answer(false);
		this.p.stopped(why);
	}

	#note(from: Message["from"], what: string, text: string, fault?: string): void {
		this.messages.push({ n: ++this.#count, from, what, text: text.length > maxText ? text.slice(0, maxText) + "…" : text, fault });
		if (this.messages.length > maxKept) this.lost += this.messages.splice(0, this.messages.length - maxKept).length;
		this.p.changed();
	}

	#send(message: Obj, what: string): void {
		if (this.#ended) return;
		const text = JSON.stringify({ jsonrpc: "2.0", ...message });
		this.#note("page", what, text);
		this.#frame?.contentWindow?.postMessage(text, this.p.origin);
	}

	#take(text: string): void {
		if (this.#ended) return;
		const m = JSON.parse(text) as Obj; // the sandbox wrote it
		if (typeof m.method === "string" && m.method.startsWith(sandbox)) {
			const what = m.method.slice(sandbox.length);
			if (what === "proxy-ready") this.#frame!.contentWindow!.postMessage(JSON.stringify({ jsonrpc: "2.0", method: sandbox + "resource-ready", params: { html: this.p.html } }), this.p.origin);
			else if (what === "stopped") this.#end(String(m.params?.reason));
			else if (what === "dropped") this.#note("view", "a message that was not read", "", String(m.params?.reason));
			return;
		}
		const { id, method } = m;
		const asks = typeof id === "string" || typeof id === "number";
		if (m.jsonrpc !== "2.0" || (id !== undefined && !asks) || (method === undefined ? !asks : typeof method !== "string")) {
			this.#note("view", "a message", text, "it is not a message of JSON-RPC 2.0");
			return;
		}
		if (method === undefined) return this.#note("view", "an answer", text);
		const params: Obj = isObject(m.params) ? m.params : {};
		if (!asks) {
			this.#note("view", method, text);
			return this.#told(method, params);
		}
		this.#answer(method, params).then((answer: Obj) => {
			this.#note("view", method, text, answer.error?.message);
			this.#send({ id, ...answer }, "answer to " + method);
		});
	}

	#told(method: string, params: Obj): void {
		if (method === "ui/notifications/initialized") {
			this.#ready = true;
			if (this.#run) this.give(this.#run);
		} else if (method === "ui/notifications/size-changed" && !this.question) {
			// While a question is open nothing moves: a click that is meant for the view must not meet its buttons.
			const number = (v: unknown) => (typeof v === "number" && v >= 0 ? v : undefined);
			this.p.sized({ width: number(params.width), height: number(params.height) });
		}
	}

	async #answer(method: string, params: Obj): Promise<Obj> {
		switch (method) {
			case "ui/initialize": {
				const hostCapabilities = { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, sandbox: { permissions: {}, csp: this.p.granted } };
				return { result: { protocolVersion: "2026-01-26", hostInfo: { name: "patchbay-page", version: "1" }, hostCapabilities, hostContext: this.p.context() } };
			}
			case "ui/update-model-context": // there is no model here: the screen shows it
				this.forModel = params;
				return { result: {} };
			case "ping":
				return { result: {} };
			case "ui/request-display-mode":
				return { result: { mode: "inline" } };
			case "ui/open-link": {
				const url = webAddress(String(params.url));
				if (!url) return fault(-32000, "the address is not one of http or https");
				const yes = await this.#ask("open-link", url.href);
				if (yes === undefined) return fault(-32000, "the person is asked something already");
				if (!yes) return fault(-32000, "the person declined");
				window.open(url.href, "_blank", "noopener,noreferrer");
				return { result: {} };
			}
			case "ui/message": {
				const content = Array.isArray(params.content) ? params.content : [params.content];
				if (params.role !== "user" || !content.every(isObject)) return fault(-32602, "a message has the role user and content");
				const yes = await this.#ask("message", content.map((c) => (c.type === "text" ? String(c.text) : JSON.stringify(c))).join("\n\n"));
				if (yes === undefined) return fault(-32000, "the person is asked something already");
				return yes ? { result: {} } : fault(-32000, "the person declined");
			}
			case "tools/call":
			case "resources/read":
				return this.#pass(method, params);
		}
		return fault(-32601, "this page has no method " + method.slice(0, 100) + " for views");
	}

	// pass sends a request on to the server of the view.
	async #pass(method: string, params: Obj): Promise<Obj> {
		if (this.#open >= maxOpen) return fault(-32000, `${maxOpen} calls of this view are under way already`);
		this.#open++;
		try {
			if (method === "resources/read") {
				if (typeof params.uri !== "string") return fault(-32602, "uri is missing");
				return { result: await client(this.p.server).rounds(method, { uri: params.uri }, { signal: this.#stop.signal }) };
			}
			const tool = this.p.tools().find((t) => t.name === params.name);
			if (!tool || !linkOf(tool).app) return fault(-32602, `the server of this view has no tool ${String(params.name).slice(0, 100)} for apps`);
			const run = callTool(this.p.server, tool, params.arguments ?? {});
			this.calls = [...this.calls, run];
			const cancel = () => run.cancel();
			this.#stop.signal.addEventListener("abort", cancel);
			const { result, error } = await over(run);
			this.#stop.signal.removeEventListener("abort", cancel);
			this.calls = this.calls.filter((r) => r.n !== run.n);
			return result ? { result } : { error: { code: error?.code ?? -32000, message: error?.message ?? "canceled", data: error?.data } };
		} catch (err) {
			return err instanceof RpcError ? { error: { code: err.code, message: err.message, data: err.data } } : fault(-32000, (err as Error).message);
		} finally {
			this.#open--;
		}
	}

	// ask asks the person; undefined: they are asked something already.
	#ask(what: Question["what"], text: string): Promise<boolean | undefined> {
		if (this.question || this.#ended) return Promise.resolve(undefined);
		return new Promise((resolve) => {
			this.question = {
				what,
				text,
				answer: (yes) => {
					this.question = undefined;
					this.p.changed();
					resolve(yes);
				},
			};
			this.p.changed();
		});
	}
}
