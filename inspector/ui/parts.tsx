// Small parts of screens.
import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "./store";

// Link is a link to another screen of the page.
export function Link(p: { to: string; children: ComponentChildren; current?: boolean; class?: string; label?: string }) {
	return (
		<a
			href={p.to}
			class={p.class ?? ""}
			aria-label={p.label}
			aria-current={p.current ? "page" : undefined}
			onClick={(e: MouseEvent) => {
				if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
				e.preventDefault();
				go(p.to);
			}}
		>
			{p.children}
		</a>
	);
}

// Button is a button with a text. While its action runs it is busy.
export function Button(p: { onPress: () => unknown; children: ComponentChildren; kind?: "main" | "plain"; disabled?: boolean; label?: string; title?: string; pressed?: boolean }) {
	const [busy, setBusy] = useState(false);
	return (
		<button
			type="button"
			class={p.kind ?? ""}
			disabled={p.disabled}
			aria-busy={busy || undefined}
			aria-label={p.label}
			aria-pressed={p.pressed}
			title={p.title}
			onKeyDown={(e) => e.repeat && e.key === "Enter" && e.preventDefault()} // it may be held since before the focus came here
			onClick={async () => {
				if (busy) return; // a button that were disabled would lose the focus
				const done = p.onPress();
				if (!(done instanceof Promise)) return;
				setBusy(true);
				try {
					await done;
				} finally {
					setBusy(false);
				}
			}}
		>
			{p.children}
		</button>
	);
}

// Copy copies a text to the clipboard and says so.
export function Copy(p: { text: () => string; children: ComponentChildren; label?: string }) {
	const [done, setDone] = useState(0); // times that are shown
	const copy = async () => {
		await navigator.clipboard.writeText(p.text());
		setDone((n) => n + 1);
		setTimeout(() => setDone((n) => n - 1), 1500);
	};
	return (
		<Button kind="plain" label={p.label} onPress={copy}>
			{done > 0 ? "copied" : p.children}
		</Button>
	);
}

// marks tell states apart without color.
const marks: Record<string, string> = { ready: "●", idle: "○", starting: "◌", "needs login": "▲", disabled: "–", "left out": "–" };

// StateMark shows the state of a server.
export function StateMark(p: { state: string }) {
	return (
		<span class={"state " + p.state.replace(" ", "-")}>
			<span aria-hidden="true">{marks[p.state] ?? "✖"}</span> {p.state}
		</span>
	);
}

// Tabs shows one of several panels.
export function Tabs(p: { label: string; tabs: { name: string; content: () => ComponentChildren }[]; chosen?: string }) {
	const [name, setName] = useState(p.chosen ?? p.tabs[0]?.name ?? "");
	const at = Math.max(0, p.tabs.findIndex((t) => t.name === name));
	const list = useRef<HTMLDivElement>(null);
	const id = p.label.replace(/\W+/g, "-").toLowerCase();
	const move = (e: TargetedKeyboardEvent<HTMLDivElement>) => {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key as "ArrowLeft"] as number | undefined;
		if (step === undefined) return;
		e.preventDefault();
		const next = (at + step + p.tabs.length) % p.tabs.length;
		setName(p.tabs[next]!.name);
		list.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
	};
	return (
		<div class="tabs">
			<div role="tablist" aria-label={p.label} ref={list} onKeyDown={move}>
				{p.tabs.map((t, i) => (
					<button key={t.name} type="button" role="tab" id={`${id}-tab-${i}`} aria-selected={i === at} aria-controls={`${id}-panel`} tabIndex={i === at ? 0 : -1} onClick={() => setName(t.name)}>
						{t.name}
					</button>
				))}
			</div>
			<div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${at}`} tabIndex={0}>
				{p.tabs[at]?.content()}
			</div>
		</div>
	);
}

// Facts shows names, each with what there is to say about it.
export const Facts = (p: { list: [ComponentChildren, ComponentChildren][] }) => (
	<dl class="facts">
		{p.list.map(([name, text]) => [<dt>{name}</dt>, <dd>{text}</dd>])}
	</dl>
);

// TextField is a field for a short text. With find, the key / leads to it.
export const TextField = (p: { label: string; value: string | undefined; set: (v: string) => void; example: string; find?: boolean; list?: string }) => (
	<label>
		{p.label}
		<input value={p.value ?? ""} placeholder={p.example} list={p.list} autocomplete="off" spellcheck={false} onInput={(e) => p.set(e.currentTarget.value)} data-find={p.find ? "" : undefined} />
	</label>
);

// Failed shows an error.
export function Failed(p: { children: ComponentChildren }) {
	return (
		<p class="failed" role="alert">
			{p.children}
		</p>
	);
}

// useLoad calls load when one of the keys changes, and returns what it gave, or why it failed.
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[]): { value?: T; error?: string; again: () => void } {
	const [got, set] = useState<{ value?: T; error?: string }>({});
	const [round, setRound] = useState(0);
	useEffect(() => {
		const stop = new AbortController();
		load(stop.signal).then(
			(value) => stop.signal.aborted || set({ value }),
			(err: Error) => stop.signal.aborted || set({ error: err.message }),
		);
		return () => stop.abort();
	}, [...keys, round]);
	return { ...got, again: () => setRound((n) => n + 1) };
}

// ms formats a time in milliseconds as the program does: with the digits that matter.
export function ms(v: number | undefined): string {
	if (v === undefined) return "–";
	return v >= 1000 ? (v / 1000).toFixed(1) + " s" : v.toFixed(v >= 100 ? 0 : v >= 10 ? 1 : 2) + " ms";
}

// size formats a number of bytes.
export function size(v: number | undefined): string {
	if (v === undefined) return "–";
	if (v < 1000) return v + " B";
	if (v < 1e6) return (v / 1e3).toFixed(1) + " kB";
	return (v / 1e6).toFixed(1) + " MB";
}

// count formats a number of things, whose name is in the plural.
export const count = (n: number, of: string): string => `${n} ${n === 1 ? of.replace(/s\b/, "") : of}`;

// ago formats the time since a moment.
export function ago(since: string, now = Date.now()): string {
	const s = Math.max(0, Math.round((now - Date.parse(since)) / 1000));
	if (s < 60) return s + " s";
	if (s < 3600) return Math.floor(s / 60) + " min";
	if (s < 86400) return Math.floor(s / 3600) + " h";
	return Math.floor(s / 86400) + " d";
}
