// The details of a row of the wire screen.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api";
import { Button, Copy, Failed, ms, size, Tabs, useLoad } from "../parts";
import { Table, Told, type Answer } from "../table";
import type { Change, Detail, Row, Side } from "../types";
import { arrow, who } from "../wire";

// Ask is a call that the person confirms.
interface Ask {
	row: number;
	call: string;
	arguments: string;
}

// Replay sends requests again and shows how the answers differ, after the person has confirmed each call that may change something.
export function Replay(p: { rows: number[]; file: string; close: () => void }) {
	const [told, setTold] = useState<Answer & { ask?: Ask[] }>();
	const [error, setError] = useState("");
	const [confirmed, setConfirmed] = useState<number[]>([]);
	const send = async (body: object) => {
		setTold(undefined);
		try {
			setTold(await post("/ui/replay", { rows: p.rows, file: p.file, ...body }));
		} catch (err) {
			setError((err as Error).message);
		}
	};
	useEffect(() => void send({}), []);
	return (
		<section class="wire-detail" aria-label="Replay">
			<div class="wire-title">
				<h2>Replay</h2>
				<Button kind="plain" onPress={p.close}>
					Close
				</Button>
			</div>
			{error !== "" ? <Failed>{error}</Failed> : !told && <p>Waiting for the answers…</p>}
			{told?.ask && (
				<>
					<p>These calls may change something. Confirm each that is sent again, as you:</p>
					{told.ask.map((a) => (
						<div key={a.row}>
							<label>
								<input type="checkbox" onChange={(e) => setConfirmed(e.currentTarget.checked ? [...confirmed, a.row] : confirmed.filter((n) => n !== a.row))} /> {a.call}
							</label>
							<pre tabIndex={0}>{a.arguments}</pre>
						</div>
					))}
					<Button kind="main" onPress={() => send({ confirmed })}>
						Replay
					</Button>
				</>
			)}
			<Told of="Comparison" told={told} />
		</section>
	);
}

export function Details(p: { row: Row; of: string; again?: () => void; close: () => void; show: (n: number) => void }) {
	const r = p.row;
	const got = useLoad((stop) => get<Detail>(`/ui/row/${r.n}?${p.of}`, stop), [r.n, p.of, r.status, r.count]);
	const d = got.value?.row.n === r.n ? got.value : undefined;
	return (
		<section class="wire-detail" aria-label="Details">
			<div class="wire-title">
				<h2>
					<span aria-hidden="true">{arrow(r)} </span>
					{r.method ?? r.kind} {r.target}
				</h2>
				{p.again && r.kind === "request" && (
					<Button kind="plain" onPress={p.again}>
						Replay
					</Button>
				)}
				<Button kind="plain" onPress={p.close}>
					Close
				</Button>
			</div>
			<p class="dim">
				{[who(r), "row " + r.n, r.status, r.ms !== undefined && ms(r.ms), size(r.bytes) + (r.back !== undefined ? ` out, ${size(r.back)} back` : "")].filter(Boolean).join(" · ")}
				{r.cause !== undefined && (
					<Button kind="plain" onPress={() => p.show(r.cause!)}>
						Show its cause
					</Button>
				)}
				{d?.before !== undefined && (
					<Button kind="plain" onPress={() => p.show(d.before!)}>
						Show the call before
					</Button>
				)}
			</p>
			{got.error !== undefined && <Failed>{got.error}</Failed>}
			{d && <Tabs key={r.n} label="Parts of the row" tabs={tabs(d, p.of)} />}
		</section>
	);
}

// tabs are the ways to look at a row.
function tabs(d: Detail, of: string) {
	const list = [
		{ name: "pretty", content: () => d.sides.map((s) => <One key={s.n} side={s} body={s.json ?? s.raw ?? ""} />) },
		{ name: "bytes", content: () => d.sides.map((s) => <One key={s.n} side={s} body={s.raw ?? ""} />) },
	];
	if (d.sides.some((s) => s.http)) list.push({ name: "headers", content: () => d.sides.map((s) => <Headers key={s.n} side={s} />) });
	list.push({ name: "schema check", content: () => d.sides.map((s) => <Check key={s.n} side={s} />) });
	if (d.other) list.push({ name: "the other hop", content: () => [<Hops key="hops" detail={d} />] });
	if (d.before !== undefined) list.push({ name: "vs previous call", content: () => [<Compared key="compared" detail={d} of={of} />] });
	if (d.cli !== undefined) list.push({ name: "call again", content: () => [<Again key="again" detail={d} />] });
	return list;
}

// label says what a side is.
function label(s: Side): string {
	return [s.dir === "in" ? "received" : "sent", s.time?.slice(11, 26), s.revision, size(s.bytes)].filter(Boolean).join(" · ");
}

function One({ side: s, body }: { side: Side; body: string }) {
	return (
		<article class="wire-side">
			<h3>{label(s)}</h3>
			{body === "" ? <p class="dim">Without a message.</p> : <pre tabIndex={0}>{body}</pre>}
			{s.left !== undefined && <p class="warn">{size(s.left)} more are not shown. Save the recording for all of it.</p>}
			{s.cut !== undefined && <p class="warn">{size(s.cut)} were not recorded.</p>}
			{body !== "" && <Copy text={() => body}>Copy</Copy>}
		</article>
	);
}

function Headers({ side: s }: { side: Side }) {
	const h = s.http;
	if (!h) return null;
	return (
		<article class="wire-side">
			<h3>{label(s)}</h3>
			<p class="mono">{h.method !== undefined ? `${h.method} ${h.path ?? ""}` : h.status !== undefined ? "HTTP " + h.status : "an event of a stream"}</p>
			{Object.keys(h.headers ?? {}).length > 0 && (
				<Table
					label="Headers"
					columns={["Header", "Value"]}
					rows={Object.entries(h.headers ?? {})
						.sort(([a], [b]) => (a < b ? -1 : 1))
						.map(([name, values]) => ({ key: name, cells: [name, <span class="mono">{values.join(", ")}</span>] }))}
				/>
			)}
		</article>
	);
}

function Check({ side: s }: { side: Side }) {
	return (
		<article class="wire-side">
			<h3>{label(s)}</h3>
			{!s.checked ? (
				<p class="dim">Not checked: {s.revision === undefined ? "its revision is not known." : "the schema has no type for it."}</p>
			) : s.faults === undefined ? (
				<p class="ok">✓ It fits the schema of {s.revision}.</p>
			) : (
				<ul>
					{s.faults.map((f, i) => (
						<li key={i} class="bad">
							{f}
						</li>
					))}
				</ul>
			)}
			{s.fits && <p class="ok">✓ Its structured content fits the output schema of the tool.</p>}
		</article>
	);
}

// Changes lists places that differ.
function Changes({ list, none }: { list: Change[]; none: string }) {
	const code = (text?: string) => <span class="mono">{text}</span>;
	return <Table label="Changes" columns={["Place", "What", "Before", "After"]} empty={none} rows={list.map((c) => ({ key: c.path, cells: [code(c.path), c.kind, code(c.from), code(c.to)] }))} />;
}

// Hops shows the messages of a client and of a server beside each other.
function Hops({ detail: d }: { detail: Detail }) {
	const other = d.other!;
	const [front, back] = d.row.server === "" ? [d.sides, other.sides] : [other.sides, d.sides];
	const messages = (list: Side[]) => list.filter((s) => (s.json ?? "") !== "");
	return (
		<>
			<h3>What the translation changed</h3>
			<Changes list={other.changed} none="Nothing: both hops have the same members." />
			<div class="wire-hops">
				<div>
					<h3>Client</h3>
					{messages(front).map((s) => (
						<One key={s.n} side={s} body={s.json!} />
					))}
				</div>
				<div>
					<h3>Server</h3>
					{messages(back).map((s) => (
						<One key={s.n} side={s} body={s.json!} />
					))}
				</div>
			</div>
		</>
	);
}

// Compared compares a call with the one before.
function Compared({ detail: d, of }: { detail: Detail; of: string }) {
	const got = useLoad((stop) => get<Change[]>(`/ui/compare?from=${d.before}&to=${d.row.n}${of}`, stop), [d.row.n]);
	if (got.error !== undefined) return <Failed>{got.error}</Failed>;
	if (!got.value) return <p>Comparing…</p>;
	return <Changes list={got.value} none="Nothing differs." />;
}

// Again has texts that make the call again.
function Again({ detail: d }: { detail: Detail }) {
	const texts: [string, string | undefined][] = [
		["On the command line", d.cli],
		["With curl", d.curl],
		["In a Go test", d.test],
	];
	return (
		<>
			{texts.map(
				([name, text]) =>
					text !== undefined && (
						<article class="wire-side" key={name}>
							<h3>{name}</h3>
							<pre tabIndex={0}>{text}</pre>
							<Copy text={() => text} label={`Copy: ${name}`}>
								Copy
							</Copy>
						</article>
					),
			)}
		</>
	);
}
