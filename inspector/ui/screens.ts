// The screens of the page, in the order of the navigation. A new screen is a file in screens and a line here.
import type { JSX } from "preact";
import { Audit } from "./screens/audit";
import { Charts } from "./screens/charts";
import { Help } from "./screens/help";
import { Inbox } from "./screens/inbox";
import { Policy } from "./screens/policy";
import { Servers } from "./screens/servers";
import { Tasks } from "./screens/tasks";
import { Tools } from "./screens/tools";
import { Wire } from "./screens/wire";
import type { State } from "./types";

// Shown is what a screen gets: the state, the parts of its address, and the whole of it.
export interface Shown {
	state: State;
	words: string[];
	at: string;
}

export interface Screen {
	path: string; // first part of its address
	name: string;
	rail: boolean; // in the navigation
	when: (s: State) => boolean; // it has something to show
	show: (p: Shown) => JSX.Element;
}

export const screens: Screen[] = [
	{ path: "", name: "Servers", rail: true, when: (s) => !s.recording, show: Servers },
	{ path: "s", name: "Tools", rail: true, when: (s) => s.can.call, show: Tools },
	{ path: "tasks", name: "Tasks", rail: true, when: (s) => s.can.call, show: Tasks },
	{ path: "wire", name: "Wire", rail: true, when: () => true, show: Wire },
	{ path: "charts", name: "Charts", rail: true, when: () => true, show: Charts },
	{ path: "inbox", name: "Inbox", rail: true, when: () => true, show: Inbox },
	{ path: "policy", name: "Policy", rail: true, when: (s) => s.admin && s.can.policy, show: Policy },
	{ path: "audit", name: "Audit", rail: true, when: (s) => s.admin && s.can.audit, show: Audit },
	{ path: "help", name: "Help", rail: true, when: () => true, show: Help },
];
