// Results of calls: content, structured content, the whole as JSON, and what differs from the call before.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { check, type Checked } from "./form";
import { Markdown } from "./markdown";
import { isExact, isObject, objects, parse, revision, type Obj } from "./mcp";
import { Button, Copy, count, Link, ms, size, Tabs, useLoad } from "./parts";
import type { Run } from "./runs";
import { join, state, use } from "./store";
import { bytesOf, line, shown, visible } from "./text";

const pictures = /^image\/(png|jpeg|gif|webp)$/;
const sounds = /^audio\/((x-)?wav|wave|mpeg|mp[34]|ogg|webm|flac|aac)$/;
const maxShown = 8 << 20; // characters of base64 that are shown
const maxRows = 500; // rows of a table that are shown at once
const maxText = 300_000; // characters of a text that are shown at once

// isShort reports whether data is base64 that is short enough to be shown.
const isShort = (data: unknown): data is string => typeof data === "string" && data.length <= maxShown && /^[A-Za-z0-9+/=\s]*$/.test(data);

// kindOf returns a MIME type without its parameters.
const kindOf = (mime: unknown): string => String(mime ?? "").split(";")[0]!.trim().toLowerCase();

// ResultView shows what came of a call.
function ResultView(p: { run: Run; before?: Run; outputSchema?: Obj }) {
	const { run } = p;
	const r = run.result;
	const got = useLoad<{ of: Obj; checked: Checked } | undefined>(async (stop) => (p.outputSchema && r && !r.isError ? { of: r, checked: await check(p.outputSchema, r.structuredContent, false, stop) } : undefined), [r, p.outputSchema]).value;
	const faults = got?.of === r ? got?.checked : undefined;
	if (!r) {
		if (!run.error) return null;
		const view = () => <ErrorView error={run.error!} status={run.status} />;
		if (run.error.code === undefined) return view();
		return <Tabs key={run.n} label="Result" tabs={[{ name: "error", content: view }, { name: "raw", content: () => <Long text={shown(run.error)} code /> }]} />;
	}
	const tabs = [{ name: "content", content: () => <Content result={r} server={run.server} /> }];
	if (r.structuredContent !== undefined) tabs.push({ name: "structured", content: () => <Data value={r.structuredContent} /> });
	tabs.push({ name: "raw", content: () => <Long text={shown(r)} code /> });
	if (p.before?.result) tabs.push({ name: "vs last", content: () => <Diff before={p.before!.result!} after={r} /> });
	return (
		<>
			{faults && (
				<div class="schema">
					{faults.error ? (
						<p class="warn">The output schema cannot be used: {visible(faults.error)}</p>
					) : faults.faults.length === 0 ? (
						<p class="ok">
							<span aria-hidden="true">✓</span> fits the output schema
						</p>
					) : (
						<>
							<p class="bad">
								<span aria-hidden="true">✖</span> does not fit the output schema
							</p>
							<ul class="faults">
								{faults.faults.map((f) => (
									<li>
										{f.path && <code>{line(f.path)} </code>}
										{visible(f.text)}
									</li>
								))}
							</ul>
						</>
					)}
				</div>
			)}
			<Tabs key={run.n} label="Result" tabs={tabs} chosen={!r.content?.length && r.structuredContent !== undefined ? "structured" : "content"} />
			<p class="dim">
				{size(run.bytes)} · ~{Math.ceil(JSON.stringify(r.content ?? r).length / 4)} tokens
			</p>
		</>
	);
}

// ErrorView shows an error: its code, its message and its data.
function ErrorView(p: { error: NonNullable<Run["error"]>; status?: string }) {
	const { code, message, data } = p.error;
	return (
		<div class="error" role={p.status === "canceled" ? undefined : "alert"}>
			<p class={"message " + (p.status === "canceled" ? "dim" : "bad")}>
				{code !== undefined && <code>{code} </code>}
				{visible(message)}
			</p>
			{data !== undefined && data !== null && <pre>{typeof data === "string" ? visible(data) : shown(data)}</pre>}
		</div>
	);
}

// Content shows the blocks of a result: of a tool, a prompt or a resource.
function Content(p: { result: Obj; server: string }) {
	const { content, contents, messages } = p.result;
	if (Array.isArray(messages)) {
		return (
			<>
				{messages.map((m: any) => (
					<div class="said">
						<span class="dim">{line(m?.role, 20)}</span>
						<Block block={m?.content} server={p.server} />
					</div>
				))}
			</>
		);
	}
	if (Array.isArray(contents)) return <>{objects(contents).map((c) => <ResourceView resource={c} />)}</>;
	if (Array.isArray(content) && content.length > 0) return <>{content.map((c: any) => <Block block={c} server={p.server} plain={!!p.result.isError} />)}</>;
	return <p class="dim">No content.</p>;
}

// Block shows a block of content.
export function Block(p: { block: any; server?: string; plain?: boolean }) {
	const b = p.block;
	const mime = kindOf(b?.mimeType);
	switch (b?.type) {
		case "text":
			return <TextView text={String(b.text ?? "")} plain={p.plain} />;
		case "image":
			return <Picture data={b.data} mime={mime} />;
		case "audio":
			return <Sound data={b.data} mime={mime} />;
		case "resource":
			return <ResourceView resource={b.resource ?? {}} />;
		case "resource_link":
			return (
				<div class="resource">
					<p>
						<strong>{line(b.title || b.name)}</strong> <code>{line(b.uri, 300)}</code> <span class="dim">{line(b.mimeType, 60)} {typeof b.size === "number" ? size(b.size) : ""}</span>
					</p>
					{b.description && <p>{visible(b.description)}</p>}
					{p.server !== undefined && <Link to={join("s", p.server, "resources", String(b.uri))}>Read {line(b.name, 60)}</Link>}
				</div>
			);
	}
	return <pre>{shown(b)}</pre>;
}

// TextView shows a text: JSON as data, anything else as Markdown, or, at first with plain, as it is.
export function TextView(p: { text: string; mime?: string; plain?: boolean }) {
	const [plain, setPlain] = useState(!!p.plain);
	const data = useMemo(() => {
		if (!/^\s*[[{]/.test(p.text)) return undefined;
		try {
			return parse(p.text);
		} catch {
			return undefined;
		}
	}, [p.text]);
	const isMarkdown = data === undefined && (p.mime === undefined || p.mime === "text/markdown") && /[*_`#|>\][\-]|\d\.|https?:/.test(p.text);
	if (data === undefined && !isMarkdown) return <Long text={visible(p.text)} />;
	return (
		<div class="text">
			{plain ? <Long text={visible(p.text)} /> : data !== undefined ? <Data value={data} /> : <Markdown text={p.text} />}
			<Button kind="plain" onPress={() => setPlain(!plain)}>
				{plain ? "formatted" : "as it is"}
			</Button>
		</div>
	);
}

// Long shows a text, and its end when the person wants it.
function Long(p: { text: string; code?: boolean }) {
	const [most, setMost] = useState(maxText);
	return (
		<>
			<pre class={p.code ? "code" : "plain"} tabIndex={p.code ? 0 : undefined}>{p.text.slice(0, most)}</pre>
			{p.text.length > most && <Button onPress={() => setMost(most * 4)}>Show more of {size(p.text.length)}</Button>}
		</>
	);
}

function Picture(p: { data: any; mime: string }) {
	const bytes = String(p.data).length * 0.75;
	const name = `${p.mime || "image"}, ${size(Math.round(bytes))}`;
	if (!pictures.test(p.mime) || !isShort(p.data)) return <Bytes data={p.data} mime={p.mime} why="This kind of picture is not shown." />;
	return (
		<figure>
			<img src={`data:${p.mime};base64,${p.data}`} alt={"Picture of the server: " + name} />
			<figcaption class="dim">
				{name} <Save data={p.data} name="picture" mime={p.mime} />
			</figcaption>
		</figure>
	);
}

function Sound(p: { data: any; mime: string }) {
	if (!sounds.test(p.mime) || !isShort(p.data)) return <Bytes data={p.data} mime={p.mime} why="This kind of sound is not played." />;
	return <audio controls src={`data:${p.mime};base64,${p.data}`} aria-label={"Sound of the server, " + p.mime} />;
}

// ResourceView shows the contents of a resource.
function ResourceView(p: { resource: any }) {
	const { uri, text, blob } = p.resource;
	const mime = kindOf(p.resource.mimeType);
	const name = String(uri ?? "").split(/[/:]/).at(-1) || "resource";
	return (
		<div class="resource">
			<p>
				<code>{line(uri, 300)}</code> <span class="dim">{line(mime, 60)}</span> <Save data={blob} text={text} name={name} mime={mime} />
			</p>
			{typeof text === "string" ? (
				<TextView text={text} mime={mime || "text/plain"} />
			) : pictures.test(mime) ? (
				<Picture data={blob} mime={mime} />
			) : sounds.test(mime) ? (
				<Sound data={blob} mime={mime} />
			) : (
				<Bytes data={blob} mime={mime} />
			)}
		</div>
	);
}

// Bytes shows bytes in hexadecimal.
function Bytes(p: { data: any; mime: string; why?: string }) {
	const bytes = useMemo(() => bytesOf(p.data), [p.data]);
	const [rows, setRows] = useState(16);
	if (!bytes) return <p class="bad">The data is not base64.</p>;
	const lines: string[] = [];
	for (let at = 0; at < bytes.length && lines.length < rows; at += 16) {
		const part = [...bytes.slice(at, at + 16)];
		lines.push(at.toString(16).padStart(8, "0") + "  " + part.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48) + " " + part.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join(""));
	}
	return (
		<div>
			{p.why && <p class="dim">{p.why}</p>}
			<p class="dim">
				{line(p.mime, 60)} {size(bytes.length)} {p.why && <Save data={p.data} name="data" mime={p.mime} />}
			</p>
			<pre class="hex scroll" tabIndex={0} role="region" aria-label="Bytes in hexadecimal">{lines.join("\n")}</pre>
			{bytes.length > rows * 16 && rows < 4096 && <Button onPress={() => setRows(rows * 8)}>More bytes</Button>}
		</div>
	);
}

// Save is a button that saves a file. The browser never opens it here: its type is not that of the server.
function Save(p: { data?: any; text?: any; name: string; mime: string }) {
	return (
		<Button
			kind="plain"
			label={"Download " + line(p.name, 60)}
			onPress={() => {
				const part = typeof p.text === "string" ? p.text : bytesOf(p.data);
				if (part === undefined) return;
				const url = URL.createObjectURL(new Blob([part], { type: "application/octet-stream" }));
				const a = document.createElement("a");
				a.href = url;
				a.download = p.name.replace(/[^\w.-]+/g, "_").slice(0, 100) || "file";
				a.click();
				setTimeout(() => URL.revokeObjectURL(url), 10_000);
			}}
		>
			download
		</Button>
	);
}

const isTable = (v: unknown): v is Obj[] => Array.isArray(v) && v.length > 0 && v.every(isObject);

// Data shows a JSON value: a list of objects as a table, an object with such lists with its tables.
export function Data(p: { value: any }) {
	const v = p.value;
	if (isTable(v)) return <Table rows={v} name="Rows" />;
	if (isObject(v)) {
		const tables = Object.entries(v).filter(([, part]) => isTable(part));
		if (tables.length > 0 && tables.length <= 5) {
			const rest = Object.fromEntries(Object.entries(v).filter(([, part]) => !isTable(part)));
			return (
				<>
					{Object.keys(rest).length > 0 && <Long text={shown(rest)} code />}
					{tables.map(([name, rows]) => (
						<Table rows={rows as Obj[]} name={name} />
					))}
				</>
			);
		}
	}
	return <Long text={shown(v)} code />;
}

const cell = (v: unknown): string => (v === undefined ? "" : typeof v === "string" ? line(v, 300) : line(JSON.stringify(v), 300));

// Table shows objects as rows that can be sorted.
function Table(p: { rows: Obj[]; name: string }) {
	const [by, setBy] = useState<{ name: string; down: boolean }>();
	const [most, setMost] = useState(maxRows);
	const names = useMemo(() => {
		const all = new Set<string>();
		for (const r of p.rows) for (const k of Object.keys(r)) if (all.size < 40) all.add(k);
		return [...all];
	}, [p.rows]);
	const rows = useMemo(() => {
		if (!by) return p.rows;
		const get = (r: Obj): unknown => (Object.hasOwn(r, by.name) ? r[by.name] : undefined);
		const compare = (a: unknown, b: unknown): number => {
			if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
			const d = typeof a === "number" && typeof b === "number" ? a - b : cell(a).localeCompare(cell(b), undefined, { numeric: true });
			return by.down ? -d : d;
		};
		return [...p.rows].sort((a, b) => compare(get(a), get(b)));
	}, [p.rows, by]);
	return (
		<div class="scroll" tabIndex={0} role="region" aria-label={"Table: " + line(p.name, 60)}>
			<table>
				<caption class="dim">
					{line(p.name, 60)}: {count(p.rows.length, "rows")}
				</caption>
				<thead>
					<tr>
						{names.map((n) => (
							<th scope="col" aria-sort={by?.name === n ? (by.down ? "descending" : "ascending") : "none"}>
								<button type="button" class="plain" onClick={() => setBy({ name: n, down: by?.name === n && !by.down })}>
									{line(n, 60)}
									<span aria-hidden="true">{by?.name === n ? (by.down ? " ↓" : " ↑") : ""}</span>
								</button>
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.slice(0, most).map((r) => (
						<tr>
							{names.map((n) => (
								<td class={typeof r[n] === "number" || isExact(r[n]) ? "number" : ""}>{Object.hasOwn(r, n) ? cell(r[n]) : ""}</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
			{rows.length > most && <Button onPress={() => setMost(most * 4)}>More rows</Button>}
		</div>
	);
}

const maxDiff = 1500; // lines of each side

// Diff shows the lines that differ between two results.
function Diff(p: { before: Obj; after: Obj }) {
	const parts = useMemo(() => diff(JSON.stringify(p.before, null, 2).split("\n"), JSON.stringify(p.after, null, 2).split("\n")), [p.before, p.after]);
	if (!parts) return <p class="dim">The results are too long to be compared here.</p>;
	if (parts.every(([mark]) => mark === " ")) return <p>No difference to the call before.</p>;
	return (
		<pre class="code diff" tabIndex={0}>
			{parts.map(([mark, text]) => {
				const Line = mark === "+" ? "ins" : mark === "-" ? "del" : "span";
				return (
					<Line>
						{mark} {visible(text)}
						{"\n"}
					</Line>
				);
			})}
		</pre>
	);
}

// diff returns the lines of two texts, each with whether it is in both; undefined: they are too long.
export function diff(a: string[], b: string[]): [" " | "+" | "-", string][] | undefined {
	if (a.length > maxDiff || b.length > maxDiff) return undefined;
	const width = b.length + 1;
	const common = new Uint16Array((a.length + 1) * width); // lines in common from here on
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) {
			common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1 : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
		}
	}
	const out: [" " | "+" | "-", string][] = [];
	let i = 0;
	let j = 0;
	while (i < a.length || j < b.length) {
		if (i < a.length && j < b.length && a[i] === b[j]) {
			out.push([" ", a[i++]!]);
			j++;
		} else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) out.push(["-", a[i++]!]);
		else out.push(["+", b[j++]!]);
	}
	return out;
}

const methods = { tool: "tools/call", prompt: "prompts/get", resource: "resources/read" };

// RunView shows a call: how it ended, its progress, its log messages, and what came of it.
export function RunView(p: { run: Run; before?: Run; outputSchema?: Obj }) {
	const { run } = p;
	return (
		<>
			<h2>
				<span class="dim">result of</span> {line(run.name, 120)} <Status run={run} />
			</h2>
			<ProgressView run={run} />
			<Logs run={run} />
			<ResultView {...p} />
			{run.status !== "open" && (
				<>
					{/error/.test(run.status) && <Written key={run.n} run={run} />}
					<Translated server={run.server} />
					<p>
						<Link to={"/wire?q=" + encodeURIComponent(`method:${methods[run.kind]} target:"${run.name}"`)}>on the wire</Link>
					</p>
				</>
			)}
		</>
	);
}

// Translated tells that a server does not speak the revision of the page.
function Translated(p: { server: string }) {
	const speaks = use(state)?.servers.find((s) => s.name === p.server)?.server?.split(", ").pop();
	return speaks && /^20/.test(speaks) && speaks !== revision ? (
		<p class="dim">
			translated: the server speaks {line(speaks, 20)}, this page {revision}
		</p>
	) : null;
}

// Written shows what a server has written to standard error since a call began, to administrators.
function Written({ run }: { run: Run }) {
	const can = state.now?.admin && state.now.can.steer;
	const lines = useLoad(async (stop) => (can ? (await get<{ lines: { time: string; event?: boolean; text: string }[] }>(`/ui/logs/${encodeURIComponent(run.server)}?lines=50`, stop)).lines : []), []).value?.filter((l) => !l.event && Date.parse(l.time) >= run.began);
	if (!lines?.length) return null;
	return (
		<>
			<p class="dim">The server has written to standard error since then:</p>
			<pre class="log" tabIndex={0} aria-label={"Standard error of " + line(run.server, 60)}>
				{visible(lines.map((l) => l.text).join("\n"))}
			</pre>
		</>
	);
}

// Status tells how a call ended, or that it has not.
export function Status(p: { run: Run }) {
	const mark = { open: "◌", ok: "✓", "tool error": "✖", error: "✖", canceled: "–" }[p.run.status];
	return (
		<span class={"status " + (p.run.status === "ok" ? "ok" : p.run.status === "open" ? "warn" : p.run.status === "canceled" ? "dim" : "bad")}>
			<span aria-hidden="true">{mark}</span> {p.run.status === "open" ? (p.run.task ? "task " + line(p.run.task.status.replace("_", " "), 30) : "waiting") : p.run.status}
			{p.run.status !== "open" && " · " + ms(p.run.ms)}
		</span>
	);
}

// Logs shows the log messages of a call.
function Logs(p: { run: Run }) {
	const end = useRef<HTMLDivElement>(null);
	const { logs, lostLogs } = p.run;
	useEffect(() => {
		if (end.current) end.current.scrollTop = end.current.scrollHeight;
	}, [logs.length]);
	if (logs.length === 0) return null;
	return (
		<details open>
			<summary>
				{count(logs.length + lostLogs, "log messages")}{lostLogs > 0 && `, the first ${lostLogs} are gone`}
			</summary>
			<div class="logs" ref={end} tabIndex={0} role="log" aria-label="Log messages">
				{logs.map((l) => (
					<div>
						<span class={/^(error|critical|alert|emergency)$/.test(l.level) ? "bad" : l.level === "warning" ? "warn" : "dim"}>{line(l.level, 20)}</span> {l.logger && <span class="dim">{line(l.logger, 40)}: </span>}
						{typeof l.data === "string" ? visible(l.data) : line(JSON.stringify(l.data), 2000)}
					</div>
				))}
			</div>
		</details>
	);
}

// ProgressView shows how far a call is.
export function ProgressView(p: { run: Run }) {
	const { progress, task } = p.run;
	const text = progress?.message ?? task?.statusMessage;
	if (p.run.status !== "open") return null;
	return (
		<div class="progress">
			{progress && <progress aria-label="Progress" max={progress.total ?? undefined} value={progress.total === undefined ? undefined : Math.min(progress.progress, progress.total)} />}
			<span>
				{progress && `${progress.progress}${progress.total === undefined ? "" : " of " + progress.total}`} {text !== undefined && line(text, 300)}
			</span>
		</div>
	);
}

// CopyJSON copies a result.
export const CopyJSON = (p: { run: Run }) => <Copy text={() => JSON.stringify(p.run.result ?? p.run.error, null, 2)}>JSON</Copy>;
