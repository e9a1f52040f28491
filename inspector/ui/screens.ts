// The screens of the page, in the order of the navigation. A new screen is a file in screens and a line here.
import { lazy, type Lazy } from "./lazy";
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
	when: (s: State) => boolean; // it has something to show
	show: Lazy<Shown>;
}

// live reports whether there is traffic that goes on.
const live = (s: State): boolean => s.recording === undefined;

export const screens: Screen[] = [
	{ path: "", name: "Servers", when: live, show: Servers },
	{ path: "s", name: "Tools", when: (s) => s.can.call, show: Tools },
	{ path: "apps", name: "Apps", when: (s) => s.can.call, show: lazy(() => import("./screens/apps").then((m) => m.Apps)) },
	{ path: "tasks", name: "Tasks", when: (s) => s.can.call, show: Tasks },
	{ path: "wire", name: "Wire", when: () => true, show: Wire },
	{ path: "charts", name: "Charts", when: live, show: Charts },
	{ path: "inbox", name: "Inbox", when: live, show: Inbox },
	{ path: "policy", name: "Policy", when: (s) => s.admin && s.can.policy, show: Policy },
	{ path: "audit", name: "Audit", when: (s) => s.admin && s.can.audit, show: Audit },
	{ path: "recordings", name: "Recordings", when: (s) => s.admin, show: lazy(() => import("./screens/recordings").then((m) => m.Recordings)) },
	{ path: "help", name: "Help", when: () => true, show: Help },
];
