// Help: the keys, and the switch for them.
import { useState } from "preact/hooks";
import { keysAreOn, switchKeys } from "../keys";
import { Facts } from "../parts";
import type { Shown } from "../screens";
import { Visible } from "../visible";

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
	["j k", "next and previous row of the wire, or entry of a list"],
	["f", "follow the wire"],
	["r", "call the tool again"],
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
					Single keys work, except while you type in a field. Keys with ctrl always do.
				</label>
			</p>
			<Facts list={keys.map(([key, text]) => [<kbd>{key}</kbd>, text])} />
			<h2>Marks</h2>
			<Facts
				list={[
					["● ○", "a server is ready, or idle: it starts with the next call"],
					["▲", "a server needs a login; a call was slow (over 1 s), or was refused"],
					["✖", "a server or a call has failed"],
					[<Visible text={"\u202e"} />, "a character of a server that hides, or changes the order of text"],
				]}
			/>
			<h2>This page</h2>
			<p>
				It shows {state.title} of patchbay {state.version}. <code>patchbay page</code> makes another link to it.
			</p>
		</>
	);
}
