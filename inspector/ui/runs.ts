// The calls of this page: what is under way, and what came of it. They live apart from the screens, so a result that comes
// late is among the calls of its own tool.
import { client, Declined, paramHeaders, RpcError, type Asked, type Log, type Obj, type Options, type Progress, type Task } from "./mcp";
import { said, Value } from "./store";
import { line } from "./text";

const maxRuns = 30; // of one tool
const maxLogs = 500; // of one call

// Query is a question of a server that a person has to answer.
export interface Query {
	n: number;
	server: string;
	about: string; // the tool, prompt or resource
	asked: Asked;
	answer: (result: Obj) => void;
	refuse: () => void; // for questions that have no answer for it
}

export interface Run {
	n: number;
	server: string;
	kind: "tool" | "prompt" | "resource";
	name: string;
	args: any;
	began: number;
	status: "open" | "ok" | "tool error" | "error" | "canceled";
	ms?: number;
	bytes: number;
	progress?: Progress;
	logs: Log[];
	lostLogs: number;
	queries: Query[];
	task?: Task;
	restored?: boolean; // the page was loaded again since
	result?: Obj;
	error?: { code?: number; message: string; data?: unknown };
	cancel: () => void;
}

const histories = new Map<string, Value<Run[]>>();

// tasks are the calls that became tasks, newest first.
export const tasks = new Value<Run[]>([]);

// history returns the calls of one tool, prompt or resource, newest first.
export function history(server: string, kind: Run["kind"], name: string): Value<Run[]> {
	const key = JSON.stringify([server, kind, name]);
	let h = histories.get(key);
	if (!h) histories.set(key, (h = new Value<Run[]>([])));
	return h;
}

// asking are the calls whose questions wait for a person.
export const asking = new Value<Run[]>([]);

// A page that goes ends its calls that wait for an answer: nobody could give it later. Tasks go on.
addEventListener("pagehide", () => {
	const left = asking.now.filter((r) => !r.task);
	for (const r of left) r.cancel();
	keep("left", left.map((r) => ({ server: r.server, kind: r.kind, name: r.name, args: r.args })));
});

let lastRun = 0;
let lastQuery = 0;

// start begins a call, and returns it. Its history has it until newer ones push it out.
function start(server: string, kind: Run["kind"], name: string, args: any, work: (o: Options) => Promise<Obj>, restored = false): Run {
	const stop = new AbortController();
	const of = history(server, kind, name);
	const now = performance.now();
	let inProgram = 0;
	let run: Run = { n: ++lastRun, server, kind, name, args, began: Date.now(), status: "open", bytes: 0, logs: [], lostLogs: 0, queries: [], restored, cancel: () => stop.abort() };
	const { n } = run;
	let drawn = 0;
	const draw = () => {
		drawn = 0;
		const swap = (list: Run[]) => list.map((r) => (r.n === n ? run : r));
		of.set(swap(of.now));
		const others = asking.now.filter((r) => r.n !== n);
		if (run.queries.length > 0 || others.length < asking.now.length) asking.set(run.queries.length > 0 ? [...others, run] : others);
		if (run.task) tasks.set(tasks.now.some((r) => r.n === n) ? swap(tasks.now) : [run, ...tasks.now].slice(0, 200));
	};
	const update = (more: Partial<Run>) => {
		run = { ...run, ...more };
		if (!drawn) drawn = setTimeout(draw, 30) as unknown as number; // many notes are one drawing
	};
	const options: Options = {
		signal: stop.signal,
		progress: (progress) => update({ progress }),
		log: (l) => update(run.logs.length < maxLogs ? { logs: [...run.logs, l] } : { logs: [...run.logs.slice(1), l], lostLogs: run.lostLogs + 1 }),
		took: (ms, bytes) => update({ ms: (inProgram += ms), bytes }),
		task: (task) => {
			update({ task });
			remember(run);
		},
		ask: (questions) =>
			new Promise((resolve, reject) => {
				const answers: Obj = Object.create(null);
				const open = Object.entries(questions).map(([key, asked]) => {
					const query: Query = {
						n: ++lastQuery,
						server,
						about: name,
						asked,
						answer: (result) => {
							answers[key] = result;
							update({ queries: run.queries.filter((q) => q !== query) });
							if (Object.keys(answers).length === open.length) resolve(answers);
						},
						refuse: () => reject(new Declined("the question was declined")),
					};
					return query;
				});
				said.set(`${server} asks ${open.length === 1 ? "a question" : open.length + " questions"}`);
				update({ queries: [...run.queries, ...open] });
				if (open.length === 0) resolve({});
				stop.signal.addEventListener("abort", () => reject(stop.signal.reason));
			}),
	};
	run.cancel = () => {
		if (run.task && run.status === "open") client(server).request("tasks/cancel", { taskId: run.task.taskId }).catch(() => undefined);
		stop.abort();
	};
	of.set([run, ...of.now].slice(0, maxRuns));
	work(options).then(
		(result) => update({ result, status: result.isError ? "tool error" : "ok" }),
		(err: Error) => {
			const stopped = err.name === "AbortError" || err instanceof Declined;
			const rpc = err instanceof RpcError ? { code: err.code, data: err.data } : {};
			update({ status: stopped ? "canceled" : "error", error: { ...rpc, message: err.name === "AbortError" && stop.signal.aborted ? "canceled" : err.message } });
		},
	).finally(() => {
		// A task takes as long as the person waits; of another call the program's own time counts.
		update({ ms: run.task || run.ms === undefined ? performance.now() - now : run.ms, queries: [] });
		remember(run);
		said.set(`${line(name)}: ${run.status}`);
	});
	return run;
}

// callTool calls a tool.
export const callTool = (server: string, tool: { name: string; inputSchema?: Obj }, args: any): Run =>
	start(server, "tool", tool.name, args, (o) => client(server).call(tool.name, args, { ...o, headers: paramHeaders(tool.inputSchema, args) }));

// getPrompt fetches a prompt.
export const getPrompt = (server: string, name: string, args: Record<string, string>): Run =>
	start(server, "prompt", name, args, (o) => client(server).rounds("prompts/get", { name, arguments: args }, o));

// readResource reads a resource.
export const readResource = (server: string, uri: string): Run =>
	start(server, "resource", uri, undefined, (o) => client(server).rounds("resources/read", { uri }, o));

// Tasks that have not ended are followed again when the page is loaded again.

interface Kept {
	server: string;
	name: string;
	args: any;
	task: Task;
}

// kept returns what keep has kept: tasks that go on, or calls that were left.
const kept = <T,>(what: string): T[] => {
	try {
		const list = JSON.parse(sessionStorage.getItem(what) ?? "[]");
		return Array.isArray(list) ? list : [];
	} catch {
		return [];
	}
};

function keep(what: string, list: object[]): void {
	try {
		sessionStorage.setItem(what, JSON.stringify(list.slice(-50)));
	} catch {
		// the arguments are too large to be kept
	}
}

function remember(run: Run): void {
	const id = run.task?.taskId;
	if (id === undefined) return;
	const others = kept<Kept>("tasks").filter((k) => k.task.taskId !== id || k.server !== run.server);
	// An error without a code is not of the server: the page goes, or the program could not be reached. The task goes on.
	if (run.status === "open" || (run.status === "error" && run.error!.code === undefined)) others.push({ server: run.server, name: run.name, args: run.args, task: { ...run.task!, inputRequests: undefined } });
	keep("tasks", others);
}

let resumed = false;

// resume follows the tasks that an earlier load of the page began, and shows which calls ended with it.
export function resume(): void {
	if (resumed) return;
	resumed = true;
	for (const k of kept<Run>("left")) {
		start(k.server, k.kind, k.name, k.args, () => Promise.reject(new Declined("The page was loaded again while the server waited for an answer: the call was canceled.")), true);
	}
	keep("left", []);
	for (const k of kept<Kept>("tasks")) {
		start(k.server, "tool", k.name, k.args, (o) => client(k.server).follow(k.task, o), true);
	}
}
