// The last lines of a server, and those that come.
import { useEffect, useRef, useState } from "preact/hooks";
import { Copy, count, Failed } from "../parts";
import { Visible } from "../visible";

// Line is a line of the journal of a server.
interface Line {
	n: number;
	time: string;
	event?: boolean; // it is about the server; else the server has written it
	text: string;
}

const kept = 1000;

// follow reads lines of JSON until the connection ends.
async function follow(server: string, stop: AbortSignal, take: (l: Line[]) => void): Promise<void> {
	const res = await fetch(`/ui/logs/${encodeURIComponent(server)}?follow=true&lines=200`, { signal: stop });
	if (!res.ok || !res.body) {
		const said = await res.json().catch(() => ({}));
		throw new Error(said.detail ?? `HTTP ${res.status}`);
	}
	const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		const lines = (rest + value).split("\n");
		rest = lines.pop()!;
		take(lines.filter(Boolean).map((l) => JSON.parse(l) as Line));
	}
}

export function Log(p: { server: string }) {
	const [lines, setLines] = useState<Line[]>([]);
	const [error, setError] = useState("");
	const [round, setRound] = useState(0);
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => {
		const stop = new AbortController();
		let wait: ReturnType<typeof setTimeout> | undefined;
		setLines([]);
		setError("");
		follow(p.server, stop.signal, (more) => setLines((have) => [...have, ...more].slice(-kept)))
			.catch((err: Error) => stop.signal.aborted || setError(err.message))
			.finally(() => {
				if (!stop.signal.aborted) wait = setTimeout(() => setRound((n) => n + 1), 3000);
			});
		return () => {
			stop.abort();
			clearTimeout(wait);
		};
	}, [p.server, round]);
	useEffect(() => {
		const b = box.current;
		if (b && b.scrollHeight - b.scrollTop - b.clientHeight < 120) b.scrollTop = b.scrollHeight;
	}, [lines]);
	return (
		<>
			{error && <Failed>{error}; trying again</Failed>}
			<div class="log mono" ref={box} tabIndex={0} role="log" aria-live="off" aria-label={"Log of " + p.server}>
				{lines.length === 0 && <span class="dim">The server has written nothing yet.</span>}
				{lines.map((l) => (
					<div key={l.n} class={l.event ? "event" : ""}>
						<span class="dim">{new Date(l.time).toLocaleTimeString([], { hourCycle: "h23" })}</span> {l.event && "-- "}
						<Visible text={l.text} />
					</div>
				))}
			</div>
			<Copy label={`Copy ${count(lines.length, "lines")} of ${p.server}`} text={() => lines.map((l) => `${l.time} ${l.event ? "-- " : ""}${l.text}`).join("\n")}>
				Copy {count(lines.length, "lines")}
			</Copy>
		</>
	);
}
