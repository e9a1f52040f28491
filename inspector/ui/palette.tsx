// The palette (ctrl-K): servers, their tools and screens by a part of their names; and help (?).
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { go, join, state, use } from "./store";
import { screens } from "./screens";
import { visible } from "./visible";

interface Target {
	name: string;
	kind: string;
	to: string;
}

const most = 12;

function targets(): Target[] {
	const now = state.now;
	if (!now) return [];
	const out: Target[] = screens.filter((s) => s.when(now)).map((s) => ({ name: s.name, kind: "screen", to: s.path === "" ? "/" : "/" + s.path }));
	for (const s of now.servers) {
		if (now.can.call) out.push({ name: s.name, kind: "server", to: join("s", s.name) });
		for (const t of s.largest ?? []) if (now.can.call) out.push({ name: t.name, kind: "tool of " + s.name, to: join("s", s.name, "tools", t.name) });
	}
	return out;
}

// rank orders a target by how it matches; 0: it does not.
function rank(t: Target, words: string[]): number {
	const name = t.name.toLowerCase();
	const all = name + " " + t.kind.toLowerCase();
	if (!words.every((w) => all.includes(w))) return 0;
	return words.length === 0 ? 1 : name === words[0] ? 4 : name.startsWith(words[0]!) ? 3 : name.includes(words[0]!) ? 2 : 1;
}

export function Palette() {
	const dialog = useRef<HTMLDialogElement>(null);
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	use(state);
	useLayoutEffect(() => {
		const press = (e: KeyboardEvent) => {
			if (e.key.toLowerCase() !== "k" || !(e.ctrlKey || e.metaKey) || e.altKey || e.shiftKey) return;
			e.preventDefault();
			const d = dialog.current!;
			if (d.open) return d.close();
			if (document.querySelector("dialog[open]")) return;
			setText("");
			setAt(0);
			d.showModal();
		};
		addEventListener("keydown", press);
		return () => removeEventListener("keydown", press);
	}, []);
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	const found = targets()
		.map((t) => ({ ...t, rank: rank(t, words) }))
		.filter((t) => t.rank > 0)
		.sort((a, b) => b.rank - a.rank)
		.slice(0, most);
	const chosen = Math.min(at, found.length - 1);
	useEffect(() => document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);
	const open = (t: Target | undefined) => {
		if (!t) return;
		dialog.current!.close();
		go(t.to);
		document.getElementById("main")?.focus();
	};
	return (
		<dialog ref={dialog} class="palette" aria-label="Go to">
			<input
				role="combobox"
				aria-expanded="true"
				aria-controls="palette-list"
				aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
				aria-label="Server, tool or screen"
				autocomplete="off"
				spellcheck={false}
				value={text}
				onInput={(e) => {
					setText(e.currentTarget.value);
					setAt(0);
				}}
				onKeyDown={(e) => {
					if (e.key === "ArrowDown" || e.key === "ArrowUp") {
						e.preventDefault();
						setAt((chosen + (e.key === "ArrowDown" ? 1 : found.length - 1)) % Math.max(1, found.length));
					} else if (e.key === "Enter") {
						e.preventDefault();
						open(found[chosen]);
					}
				}}
			/>
			<ul id="palette-list" role="listbox" aria-label="Matches">
				{found.map((t, i) => (
					<li key={t.to} id={`palette-${i}`} role="option" aria-selected={i === chosen} onClick={() => open(t)}>
						{visible(t.name)} <span class="dim">{visible(t.kind)}</span>
					</li>
				))}
			</ul>
			{found.length === 0 && (
				<p role="status" class="dim">
					Nothing matches.
				</p>
			)}
		</dialog>
	);
}
