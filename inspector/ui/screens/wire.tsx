// What is on the wire, as rows: requests with their answers, notifications, processes, HTTP.
import "../main";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { get } from "../api";
import { bindKeys } from "../keys";
import { Button, count, Facts, Failed, Link, size, useLoad } from "../parts";
import type { Shown } from "../screens";
import { go, query, said } from "../store";
import type { Row } from "../types";
import { arrow, seconds, ofFile, way, who, WireList } from "../wire";
import { Details, Replay } from "./wiredetail";

const spare = 1; // rows that are drawn above and below those that can be seen

// hops are the choices of what is shown, and their filters.
const hops = Object.entries({ "": "both hops", "hop:clients": "clients", "hop:servers": "servers" });

// tones are the classes of states; others are bad.
const tones: Record<string, string> = { "": "", ok: "ok", open: "warn", canceled: "warn" };

export function Wire({ state, at }: Shown) {
	const [, draw] = useReducer((n: number) => n + 1, 0);
	const list = useMemo(() => new WireList(() => draw(0)), []);
	const file = query(at, "file");
	const of = ofFile(file);
	const recording = file !== "" || state.recording !== undefined;
	const [typed, setTyped] = useState(query(at, "q"));
	const filter = query(at, "q");
	const [hop, setHop] = useState("");
	const [follow, setFollow] = useState(!recording);
	const [chosen, setChosen] = useState<number | undefined>(Number(query(at, "row")) || undefined);
	const [open, setOpen] = useState(query(at, "row") !== "");
	const [again, setAgain] = useState<number[]>(); // rows that are sent again
	const top = useRef(0); // pixels of the list above what is seen
	const [high, setHigh] = useState(30); // pixels of a row
	const [room, setRoom] = useState(600); // pixels of the list
	const [asked, setAsked] = useState(false); // for the words of the filter
	const words = useLoad(async (stop) => (asked ? get<{ word: string; about: string }[]>("/ui/words", stop) : undefined), [asked]).value;
	const frame = useRef<HTMLDivElement>(null);
	const box = useRef<HTMLDivElement>(null);

	// The list is as high as the window has room.
	useLayoutEffect(() => {
		const fit = () => {
			const el = frame.current;
			if (!el) return;
			el.style.height = Math.max(280, innerHeight - el.getBoundingClientRect().top - scrollY - 12) + "px";
			const row = el.querySelector<HTMLElement>(".wire-probe");
			setHigh(row?.offsetHeight || 22);
			setRoom(box.current?.clientHeight ?? 600);
		};
		fit();
		const seen = new ResizeObserver(fit);
		if (box.current) seen.observe(box.current);
		addEventListener("resize", fit);
		return () => {
			seen.disconnect();
			removeEventListener("resize", fit);
		};
	}, []);

	useEffect(() => {
		void list.begin(`${filter} ${hop}`.trim(), recording, of);
		return () => list.end();
	}, [filter, hop, recording, of]);

	// The text of the filter becomes a part of the address when nobody types. An address that comes otherwise, as from the
	// browser's back, changes the text.
	const written = useRef(filter);
	useEffect(() => {
		if (written.current !== filter) setTyped((written.current = filter));
	}, [filter]);
	useEffect(() => {
		if (typed === filter) return;
		const t = setTimeout(() => {
			written.current = typed;
			go("/wire" + (typed + of === "" ? "" : "?q=" + encodeURIComponent(typed) + of), true);
		}, 250);
		return () => clearTimeout(t);
	}, [typed]);

	useLayoutEffect(() => {
		const el = box.current;
		if (!el) return;
		if (follows) {
			el.scrollTop = el.scrollHeight;
		} else if (list.moved !== 0) {
			el.scrollTop = Math.max(0, el.scrollTop + list.moved * high);
		}
		list.moved = 0;
	});

	list.stays = !follow;
	useEffect(() => void (follow && !recording && list.catchUp()), [follow, recording]);
	const rows = list.rows;
	const follows = follow && !list.after;
	if (follows) top.current = Math.max(0, rows.length * high - room);
	const from = Math.max(0, Math.min(Math.floor(top.current / high) - spare, rows.length - 1));
	const to = Math.min(rows.length, Math.ceil((top.current + room) / high) + spare);
	const part = rows.slice(from, to);
	const place = list.find(chosen ?? 0);
	const is = chosen !== undefined && rows[place]?.n === chosen;

	const scrolled = () => {
		const el = box.current!;
		const end = el.scrollHeight - el.clientHeight - el.scrollTop;
		if (end > 2 * high || !follows) {
			top.current = el.scrollTop;
			draw(0);
		}
		if (end > 2 * high && follow) setFollow(false);
		if (el.scrollTop < 20 * high) void list.older();
		if (end < 20 * high) void list.newer();
	};

	const choose = (place: number) => {
		const row = rows[Math.max(0, Math.min(place, rows.length - 1))];
		const el = box.current;
		if (!row || !el) return;
		setFollow(false);
		setChosen(row.n);
		const y = list.find(row.n) * high;
		if (y < el.scrollTop) el.scrollTop = y;
		else if (y + high > el.scrollTop + el.clientHeight) el.scrollTop = y + high - el.clientHeight;
	};

	const press = async (e: KeyboardEvent) => {
		const page = Math.max(1, Math.floor(room / high) - 1);
		const now = is ? place : from;
		const moves: Record<string, number> = { ArrowDown: is ? now + 1 : now, ArrowUp: now - 1, PageDown: now + page, PageUp: now - page };
		const to = moves[e.key];
		if (to !== undefined) {
			e.preventDefault();
			choose(to);
		} else if (e.key === "Home" || e.key === "End") {
			e.preventDefault();
			await list.ends(e.key === "End");
			choose(e.key === "End" ? list.rows.length - 1 : 0);
		} else if (e.key === "Enter" && is) {
			e.preventDefault();
			setOpen(true);
		}
	};

	// close closes what is open beside the rows, which get the focus. After a replay it is the details of its row again.
	const close = () => {
		if (!again) setOpen(false);
		setAgain(undefined);
		frame.current?.querySelector<HTMLElement>("[role=grid]")?.focus();
	};

	const move = (by: number) => choose(is ? place + by : from);
	useLayoutEffect(() =>
		bindKeys({
			j: () => move(1),
			k: () => move(-1),
			f: () => {
				said.set(follow ? "The list stays." : "The list follows new rows.");
				setFollow(!follow);
			},
		}),
	);

	const span = extent(part);
	return (
		<div class={again || (open && is) ? "wire open" : "wire"} ref={frame} onKeyDown={(e) => e.key === "Escape" && (again || open) && !(e.target as Element).matches("[data-find]") && close()}>
			<h1 class="sr">Wire</h1>
			<div class="wire-bar">
				<label class="wire-find">
					<span class="sr">Filter</span>
					<input type="search" data-find value={typed} placeholder='server:db method:tools/* dur:>50ms status:error "text"' onInput={(e) => setTyped(e.currentTarget.value)} spellcheck={false} autocomplete="off" aria-invalid={list.error !== ""} aria-describedby="wire-error" />
				</label>
				<details class="wire-words" onToggle={() => setAsked(true)}>
					<summary>words</summary>
					{words && <Facts list={words.map((w) => [<code>{w.word}:</code>, w.about])} />}
					<p class="dim">All terms must fit. A * stands for any text, a comma for "or", a - before a term for "not"; anything else is text in a frame.</p>
				</details>
				<label>
					<input type="checkbox" checked={follow} onChange={(e) => setFollow(e.currentTarget.checked)} /> follow
				</label>
				<label>
					<span class="sr">Hops</span>
					<select value={hop} onChange={(e) => setHop(e.currentTarget.value)}>
						{hops.map(([filter, name]) => (
							<option key={filter} value={filter}>
								{name}
							</option>
						))}
					</select>
				</label>
				<a href={"/ui/trace?q=" + encodeURIComponent(`${filter} ${hop}`.trim()) + of} download>
					Save these rows
				</a>
				{state.can.call && (
					<Button kind="plain" onPress={() => setAgain(rows.flatMap((r) => (r.kind === "request" ? r.n : [])).slice(0, 101))}>
						Replay these rows
					</Button>
				)}
				{file !== "" && (
					<span>
						Recording {file} · <Link to="/wire">Show the wire now</Link>
					</span>
				)}
				<span class="dim">
					{list.before || list.after ? rows.length + "+ rows" : count(rows.length, "rows")}
				</span>
			</div>
			<div id="wire-error" aria-live="polite">
				{list.error !== "" && <Failed>{list.error}</Failed>}
				{list.faults.map((f) => (
					<p key={f} class="warn">
						{f}
					</p>
				))}
				{list.note !== "" && (
					<p class="warn" aria-live="off">
						{list.note}
					</p>
				)}
			</div>
			<div class="wire-grid" role="grid" aria-label="Frames on the wire" aria-rowcount={list.after ? -1 : rows.length + 1} aria-colcount={8} aria-activedescendant={is ? "wire-" + chosen : undefined} tabIndex={0} onKeyDown={press}>
				<div role="rowgroup">
					<div role="row" aria-rowindex={1} class="wire-row wire-head">
						{Object.entries({ at: "s", who: "who", what: "what", id: "id", bytes: "bytes", ms: "ms", bar: `0 – ${span.length.toFixed(span.length < 100 ? 1 : 0)} ms`, status: "status" }).map(([column, name]) => (
							<span role="columnheader" key={column} class={"c-" + column}>
								{name}
							</span>
						))}
					</div>
				</div>
				<div class="wire-box" role="rowgroup" tabIndex={0} ref={box} onScroll={scrolled} data-rows={rows.length}>
					<div role="presentation" style={{ height: from * high + "px" }} />
					{part.map((r, i) => (
						<Line key={i} row={r} index={from + i + 2} chosen={r.n === chosen} span={span} onPick={() => (setFollow(false), setAgain(undefined), setChosen(r.n), setOpen(true))} />
					))}
					<div role="presentation" style={{ height: Math.max(0, rows.length - from - part.length) * high + "px" }} />
					{rows.length === 0 && !list.loading && list.error === "" && (
						<div role="row">
							<span role="gridcell" class="dim">
								{filter + hop === "" ? "Nothing has been on the wire yet." : "No row fits the filter."}
							</span>
						</div>
					)}
				</div>
				<div class="wire-row wire-probe" aria-hidden="true">
					<span>0</span>
				</div>
			</div>
			{again && <Replay key={again.join()} rows={again} file={file} close={close} />}
			{open && is && !again && <Details row={rows[place]!} of={of} again={state.can.call ? () => setAgain([chosen!]) : undefined} close={close} show={(n) => setChosen(n)} />}
		</div>
	);
}

// Span is a part of the time.
interface Span {
	from: number;
	length: number;
}

// extent returns the time of rows.
function extent(rows: Row[]): Span {
	let from = Infinity;
	let to = -Infinity;
	for (const r of rows) {
		from = Math.min(from, r.at);
		to = Math.max(to, r.at + (r.ms ?? 0));
	}
	return rows.length === 0 ? { from: 0, length: 0 } : { from, length: to - from };
}

// Line is a row of the list.
function Line({ row: r, index, chosen, span, onPick }: { row: Row; index: number; chosen: boolean; span: Span; onPick: () => void }) {
	const left = span.length > 0 ? ((r.at - span.from) / span.length) * 100 : 0;
	const wide = span.length > 0 ? ((r.ms ?? 0) / span.length) * 100 : 0;
	// The number of a connection stays when its name is cut.
	const [, name, number] = /^(.*?)(\W?\d*)$/s.exec(who(r))!;
	return (
		<div role="row" id={"wire-" + r.n} aria-rowindex={index} aria-selected={chosen} class={"wire-row" + (chosen ? " chosen" : "") + (r.status.endsWith("error") ? " wrong" : "")} onClick={onPick}>
			<span role="gridcell" class="c-at">
				{seconds(r)}
			</span>
			<span role="gridcell" class="c-who" title={way(r) + r.conn}>
				<span>
					{arrow(r)} {name}
				</span>
				{number}
			</span>
			<span role="gridcell" class={"c-what d" + Math.min(r.depth, 8)}>
				{r.lost !== undefined && <span class="warn">{count(r.lost, "frames")} missing before this · </span>}
				{r.method === undefined && <span class="dim">{r.kind} </span>}
				{r.method} {r.target !== undefined && <b>{r.target}</b>} {r.count !== undefined && r.kind !== "batch" && <span>×{r.count} </span>}
				{r.text !== undefined && <span class="dim">{r.text}</span>}
			</span>
			<span role="gridcell" class="c-id">
				{r.id}
			</span>
			<span role="gridcell" class="c-bytes">
				{r.bytes > 0 || r.back !== undefined ? size(r.bytes + (r.back ?? 0)) : ""}
			</span>
			<span role="gridcell" class="c-ms">
				{r.ms === undefined ? "" : r.ms.toFixed(2)}
			</span>
			<span role="gridcell" class="c-bar">
				<span class={"wire-time " + r.status.replace(" ", "-")} style={{ marginLeft: Math.min(left, 99.5) + "%", width: `max(2px, ${Math.min(wide, 100 - Math.min(left, 99.5))}%)` }} />
			</span>
			<span role="gridcell" class={"c-status " + (tones[r.status] ?? "bad")}>
				{r.status}
			</span>
		</div>
	);
}
