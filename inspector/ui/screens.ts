// The screens of the page, in the order of the navigation. A new screen is a file in screens and a line here. The tools,
// which most people open first, are in the first script; the others are loaded when they are opened.
import type { JSX } from "preact";
import { Tools } from "./screens/tools";
import "./table";
import type { State } from "./types";

// Shown is what a screen gets: the state, the parts of its address, and the whole of it.
export interface Shown {
	state: State;
	words: string[];
	at: string;
}

export type Show = (p: Shown) => JSX.Element;

export interface Screen {
	path: string; // first part of its address
	name: string;
	when: (s: State) => boolean; // it has something to show
	load: () => Promise<Show>;
	show?: Show; // when it is loaded
}

// live reports whether there is traffic that goes on.
const live = (s: State): boolean => s.recording === undefined;

// What several files of screens need has to be in the first one: else it becomes one more file.
const traffic = () => import("./screens/traffic");
const more = () => import("./screens/more");

export const screens: Screen[] = [
	{ path: "", name: "Servers", when: live, load: async () => (await traffic()).Servers },
	{ path: "s", name: "Tools", when: (s) => s.can.call, load: async () => Tools },
	{ path: "apps", name: "Apps", when: (s) => s.can.call, load: async () => (await import("./screens/apps")).Apps },
	{ path: "tasks", name: "Tasks", when: (s) => s.can.call, load: async () => (await more()).Tasks },
	{ path: "wire", name: "Wire", when: () => true, load: async () => (await import("./screens/wire")).Wire },
	{ path: "charts", name: "Charts", when: live, load: async () => (await traffic()).Charts },
	{ path: "inbox", name: "Inbox", when: live, load: async () => (await more()).Inbox },
	{ path: "policy", name: "Policy", when: (s) => s.admin && s.can.policy, load: async () => (await more()).Policy },
	{ path: "audit", name: "Audit", when: (s) => s.admin && s.can.audit, load: async () => (await more()).Audit },
	{ path: "recordings", name: "Recordings", when: (s) => s.admin, load: async () => (await more()).Recordings },
	{ path: "help", name: "Help", when: () => true, load: async () => (await more()).Help },
];
