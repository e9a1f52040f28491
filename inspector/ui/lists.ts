// The lists of servers, kept until the server says that they changed; and the resources that the page subscribed to.
import { useEffect } from "preact/hooks";
import { client, isObject, pause, type Obj } from "./mcp";
import { said, use, Value } from "./store";

// Tool, Prompt, Resource and Template are features as servers list them.
export interface Named {
	name: string;
	title?: string;
	description?: string;
}

export interface Tool extends Named {
	inputSchema?: Obj;
	outputSchema?: Obj;
	annotations?: { title?: string; readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean };
	_meta?: Obj;
}

export interface Prompt extends Named {
	arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
}

export interface Resource extends Named {
	uri: string;
	mimeType?: string;
	size?: number;
}

export interface Template extends Named {
	uriTemplate: string;
	mimeType?: string;
}

export type ListName = "tools" | "prompts" | "resources" | "resourceTemplates";

export interface List<T> {
	items?: T[];
	bad?: number; // items that are left out, as their names are missing or repeated
	error?: string;
	stale: boolean; // to be loaded when it is shown
}

const lists = new Map<string, Value<List<any>>>();

function listOf(server: string, of: ListName): Value<List<any>> {
	const key = of + " " + server;
	let l = lists.get(key);
	if (!l) lists.set(key, (l = new Value<List<any>>({ stale: true })));
	return l;
}

export async function load(server: string, of: ListName): Promise<void> {
	const l = listOf(server, of);
	if (!l.now.stale) return;
	l.set({ ...l.now, stale: false });
	try {
		const all = await client(server).list<any>(of);
		const name = { tools: "", prompts: "", resources: "uri", resourceTemplates: "uriTemplate" }[of] || "name";
		const named = new Map(all.filter((i) => isObject(i) && typeof i[name] === "string" && i[name] !== "").map((i) => [i[name], i]));
		l.set({ items: [...named.values()], bad: all.length - named.size, stale: l.now.stale });
	} catch (err) {
		l.set({ ...l.now, error: (err as Error).message, stale: l.now.stale });
	}
	if (l.now.stale) await load(server, of); // it changed meanwhile
}

// useList returns a list of a server. It is loaded when it is first shown, and again when the server says so.
export function useList<T>(server: string, of: ListName): List<T> & { again: () => void } {
	const value = listOf(server, of);
	const list = use<List<T>>(value);
	useEffect(() => {
		if (list.stale) void load(server, of);
	}, [server, of, list.stale]);
	return {
		...list,
		again: () => {
			value.set({ ...value.now, error: undefined, stale: true });
		},
	};
}

// forget makes lists stale.
function forget(server: string, ...of: ListName[]): void {
	for (const name of of) {
		const l = listOf(server, name);
		l.set({ ...l.now, error: undefined, stale: true });
	}
}

// Watched is a subscription to a resource.
export interface Watched {
	count: number;
	last?: number;
	refused?: boolean; // the server does not send updates of it
}

// watched are the subscriptions, by server and URI.
export const watched = new Value<ReadonlyMap<string, Watched>>(new Map());

export const watchKey = (server: string, uri: string): string => JSON.stringify([server, uri]);

// watch subscribes to a resource, or ends that.
export function watch(server: string, uri: string, on: boolean): void {
	const next = new Map(watched.now);
	if (on) next.set(watchKey(server, uri), { count: 0 });
	else next.delete(watchKey(server, uri));
	watched.set(next);
}

function updateWatched(server: string, uri: string, change: (w: Watched) => Watched): void {
	const key = watchKey(server, uri);
	const w = watched.now.get(key);
	if (w) watched.set(new Map(watched.now).set(key, change(w)));
}

const urisOf = (all: ReadonlyMap<string, Watched>, server: string): string[] => [...all.keys()].map((k) => JSON.parse(k) as [string, string]).filter(([s]) => s === server).map(([, uri]) => uri);

// useChanges listens to the changes of a server while its screen is open and the page is visible. A browser has few
// connections to one address, so a page in the background gives its own back.
export function useChanges(server: string): void {
	const uris = JSON.stringify(urisOf(use(watched), server));
	useEffect(() => {
		if (server === "") return;
		let stop = new AbortController();
		let slept = false;
		const run = async (signal: AbortSignal) => {
			const resourceSubscriptions = JSON.parse(uris) as string[];
			for (let wait = 1000; !signal.aborted; wait = Math.min(wait * 2, 60_000)) {
				const began = Date.now();
				try {
					await client(server).listen(
						{ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true, ...(resourceSubscriptions.length > 0 ? { resourceSubscriptions } : {}) },
						(method, params) => {
							switch (method) {
								case "notifications/subscriptions/acknowledged":
									for (const uri of resourceSubscriptions) updateWatched(server, uri, (w) => ({ ...w, refused: !params.notifications?.resourceSubscriptions?.includes(uri) }));
									break;
								case "notifications/tools/list_changed":
									said.set("The tools of " + server + " changed");
									forget(server, "tools");
									break;
								case "notifications/prompts/list_changed":
									forget(server, "prompts");
									break;
								case "notifications/resources/list_changed":
									forget(server, "resources", "resourceTemplates");
									break;
								case "notifications/resources/updated":
									updateWatched(server, String(params.uri), (w) => ({ ...w, count: w.count + 1, last: Date.now() }));
							}
						},
						signal,
					);
				} catch {
					// the server has no such stream, or it is not there; tried again
				}
				if (Date.now() - began > 30_000) wait = 1000;
				await pause(wait, signal).catch(() => undefined);
			}
		};
		const visibility = () => {
			if (document.hidden) {
				stop.abort();
				slept = true;
			} else if (slept) {
				slept = false;
				stop = new AbortController();
				forget(server, "tools", "prompts", "resources", "resourceTemplates");
				void run(stop.signal);
			}
		};
		document.addEventListener("visibilitychange", visibility);
		if (document.hidden) slept = true;
		else void run(stop.signal);
		return () => {
			document.removeEventListener("visibilitychange", visibility);
			stop.abort();
		};
	}, [server, uris]);
}
