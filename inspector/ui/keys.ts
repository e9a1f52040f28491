// Keys that work on every screen. None works in a field, and ? switches them off.
import { go, state } from "./store";

const goTo: Record<string, string> = { s: "/", w: "/wire", i: "/inbox", c: "/charts", t: "/tasks" };

let on = localStorage.getItem("keys") !== "off";
let waits = false; // g was pressed

// bound are the keys of the screen that is shown.
const bound: Record<string, () => void>[] = [];

// bindKeys adds keys of a screen, and returns a function that removes them.
export function bindKeys(keys: Record<string, () => void>): () => void {
	bound.push(keys);
	return () => void bound.splice(bound.indexOf(keys), 1);
}

// onCtrlEnter returns what a part of the page does with keys: ctrl-Enter has an effect.
export const onCtrlEnter = (run: () => unknown) => (e: KeyboardEvent): void => {
	if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey)) return;
	e.preventDefault();
	e.stopPropagation();
	if (!e.repeat) void run();
};

// keysAreOn reports whether single keys work.
export const keysAreOn = (): boolean => on;

// switchKeys switches single keys on or off, for good.
export function switchKeys(to: boolean): void {
	on = to;
	localStorage.setItem("keys", to ? "on" : "off");
}

// watchKeys begins to act on keys.
export function watchKeys(): void {
	addEventListener("keydown", (e) => {
		const field = (e.target as Element | null)?.closest?.("input, textarea, select, [contenteditable]");
		if (!on || !state.now || field || e.ctrlKey || e.metaKey || e.altKey) return;
		if (waits) {
			waits = false;
			const to = goTo[e.key];
			if (to) {
				e.preventDefault();
				go(to);
			}
			return;
		}
		if (e.key === "g") {
			waits = true;
			setTimeout(() => (waits = false), 1500);
		} else if (bound.some((b) => Object.hasOwn(b, e.key)) && !document.querySelector("dialog[open]")) {
			e.preventDefault();
			bound.findLast((b) => Object.hasOwn(b, e.key))![e.key]!();
		} else if (e.key === "?") {
			e.preventDefault();
			go("/help");
		} else if (e.key === "/") {
			const find = document.querySelector<HTMLElement>("[data-find]");
			if (find) {
				e.preventDefault();
				find.focus();
			}
		}
	});
}
