// Help: the keys, and the switch for them.
import { useState } from "preact/hooks";
import { keysAreOn, switchKeys } from "../keys";
import type { Shown } from "../screens";

const keys: [string, string][] = [
	["ctrl-K", "go to a server, a tool or a screen"],
	["/", "find: to the field that filters the screen"],
	["?", "this help"],
	["g s", "servers"],
	["g t", "tasks"],
	["g w", "wire"],
	["g i", "inbox"],
	["g c", "charts"],
	["ctrl-Enter", "call the tool, in its form"],
	["e", "arguments as JSON, or as a form"],
	["j k", "next and previous row of the wire"],
	["f", "follow the wire"],
	["r", "replay a call"],
	["Esc", "close what is open"],
];

export function Help({ state }: Shown) {
	const [on, setOn] = useState(keysAreOn());
	return (
		<>
			<h1>Help</h1>
			<h2>Keys</h2>
			<p>
				<label>
					<input
						type="checkbox"
						checked={on}
						onChange={(e) => {
							switchKeys(e.currentTarget.checked);
							setOn(e.currentTarget.checked);
						}}
					/>{" "}
					Single keys work (this browser remembers it). Keys with ctrl always do. None works while you type in a field.
				</label>
			</p>
			<dl class="facts">
				{keys.map(([key, text]) => [
					<dt key={key}>
						<kbd>{key}</kbd>
					</dt>,
					<dd key={key + " text"}>{text}</dd>,
				])}
			</dl>
			<h2>Marks</h2>
			<dl class="facts">
				<dt>● ○</dt>
				<dd>a server is ready, or idle: it starts with the next call</dd>
				<dt>▲</dt>
				<dd>a server needs a login; a call was slow (over 1 s), or was refused</dd>
				<dt>✖</dt>
				<dd>a server or a call has failed</dd>
				<dt class="mono">
					<span class="cp">{"\\u{202e}"}</span>
				</dt>
				<dd>a character of a server that hides, or changes the order of text</dd>
			</dl>
			<h2>This page</h2>
			<p>
				It shows {state.title} of patchbay {state.version}. All of it comes from the program: it loads nothing from elsewhere. <code>patchbay page</code> makes another link to it.
			</p>
		</>
	);
}
