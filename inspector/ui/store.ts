// Values that several screens show, and the address of the page.
import { useEffect, useState } from "preact/hooks";
import type { State } from "./types";

// Value is a value that components follow.
export class Value<T> {
	#followers = new Set<(v: T) => void>();
	constructor(private v: T) {}
	get now(): T {
		return this.v;
	}
	set(v: T): void {
		this.v = v;
		for (const f of [...this.#followers]) f(v);
	}
	follow(f: (v: T) => void): () => void {
		this.#followers.add(f);
		return () => this.#followers.delete(f);
	}
}

// use returns a value, and draws the component again when it changes.
export function use<T>(value: Value<T>): T {
	const [now, set] = useState(value.now);
	useEffect(() => {
		set(() => value.now);
		return value.follow((v) => set(() => v));
	}, [value]);
	return now;
}

export const state = new Value<State | undefined>(undefined);
export const connected = new Value(true);

// said is the last thing that happened, for people who do not see the page.
export const said = new Value("");

// path is the address of the screen, such as /s/db/tools/query.
export const path = new Value(location.pathname + location.search);
addEventListener("popstate", () => path.set(location.pathname + location.search));

// go shows another screen.
export function go(to: string, replace = false): void {
	if (to === path.now) return;
	history[replace ? "replaceState" : "pushState"](null, "", to);
	path.set(to);
}

// parts splits a path into its decoded parts.
export function parts(of: string): string[] {
	return of
		.split("?")[0]!
		.split("/")
		.filter(Boolean)
		.map((p) => {
			try {
				return decodeURIComponent(p);
			} catch {
				return p;
			}
		});
}

// join makes a path of parts.
export const join = (...list: string[]): string => "/" + list.map(encodeURIComponent).join("/");

// query returns a parameter of the address.
export const query = (of: string, name: string): string => new URLSearchParams(of.split("?")[1] ?? "").get(name) ?? "";
