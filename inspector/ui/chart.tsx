// Charts of points over time: SVG by hand, each with the same numbers as text. Positions are percentages, so that a chart
// has the width of its place. A slow call and a failed one have marks of their own, whose shapes tell them apart.
import type { ComponentChildren, JSX } from "preact";
import { Table } from "./table";
import { count, ms } from "./parts";
import type { Point, Traffic } from "./types";

// Axis is the time of a chart: n spans from a moment.
export interface Axis {
	from: number;
	step: number;
	n: number;
}

export function axisOf(t: Traffic): Axis {
	const from = Date.parse(t.from);
	return { from, step: t.stepMs, n: Math.max(1, Math.ceil((Date.parse(t.to) - from) / t.stepMs)) };
}

const slot = (a: Axis, p: Point): number => Math.floor((Date.parse(p.at) - a.from + 1000) / a.step);

const shown = (a: Axis, points: Point[]): [number, Point][] => points.map((p): [number, Point] => [slot(a, p), p]).filter(([i]) => i >= 0 && i < a.n);

// clock formats a moment as a time of day.
export const clock = (at: string | number): string => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

// pct formats a position.
const pct = (v: number): string => v.toFixed(2) + "%";

// sum adds up what points have counted.
export function sum(points: Point[]): { calls: number; errors: number; slow: number } {
	const out = { calls: 0, errors: 0, slow: 0 };
	for (const p of points) {
		out.calls += p.calls;
		out.errors += p.errors;
		out.slow += p.slow;
	}
	return out;
}

// Marks tells slow and failed calls of a span apart.
function Marks(p: { x: number; point: Point }) {
	return (
		<>
			{p.point.slow > 0 && (
				<text class="slow" x={pct(p.x)} y="9" text-anchor="middle">
					▲
				</text>
			)}
			{p.point.errors > 0 && (
				<text class="bad" x={pct(p.x)} y={p.point.slow > 0 ? 20 : 9} text-anchor="middle">
					✖
				</text>
			)}
		</>
	);
}

// Spark shows the p95 of each span as a bar, in a line of a table.
export function Spark(p: { name: string; axis: Axis; points: Point[] }) {
	const list = shown(p.axis, p.points);
	if (list.length === 0) return <span class="dim">no calls</span>;
	const most = Math.max(...list.map(([, q]) => q.p95), 0.001);
	const all = sum(list.map(([, q]) => q));
	const slowest = list.reduce((a, b) => (b[1].p95 > a[1].p95 ? b : a))[1];
	const text =
		`${p.name}: ${count(all.calls, "calls")} since ${clock(p.axis.from)}, highest p95 ${ms(slowest.p95)} at ${clock(slowest.at)}` +
		(all.slow > 0 ? `, ${all.slow} slow` : "") +
		(all.errors > 0 ? `, ${all.errors} failed, last at ${clock(list.filter(([, q]) => q.errors > 0).pop()![1].at)}` : "");
	const wide = 100 / p.axis.n;
	return (
		<svg class="spark" role="img" aria-label={text}>
			<title>{text}</title>
			<line class="rule" x2="100%" y1="30" y2="30" />
			{list.map(([i, q]) => {
				const high = Math.max(2, (q.p95 / most) * 17);
				return (
					<g key={i}>
						<rect class="column" x={pct(i * wide + wide * 0.1)} width={pct(wide * 0.8)} y={30 - high} height={high} />
						<Marks x={(i + 0.5) * wide} point={q.slow > 0 && q.errors > 0 ? { ...q, slow: 0 } : q} />
					</g>
				);
			})}
		</svg>
	);
}

// Chart is a chart with its name, its scale, its times, and its table.
function Chart(p: { name: string; about: string; text: string; lines: [number, string][]; axis: Axis; children: ComponentChildren; columns: string[]; rows: (string | number)[][] }) {
	const { axis } = p;
	return (
		<figure class="chart">
			<figcaption>
				<strong>{p.name}</strong> <span class="dim">{p.about}</span>
			</figcaption>
			<div class="plot">
				<svg role="img" aria-label={`${p.name}: ${p.text}`}>
					{p.lines.map(([y, name]) => (
						<g key={y}>
							<line class="rule" x1="0" x2="100%" y1={y} y2={y} />
							<text class="scale" x="2" y={y - 2}>
								{name}
							</text>
						</g>
					))}
					{p.children}
				</svg>
				<p class="times dim" aria-hidden="true">
					<span>{clock(axis.from)}</span>
					<span>{clock(axis.from + (axis.n * axis.step) / 2)}</span>
					<span>{clock(axis.from + axis.n * axis.step)}</span>
				</p>
			</div>
			<details>
				<summary>Table: {p.name}</summary>
				<Table label={p.name} columns={p.columns} rows={p.rows.map((cells) => ({ key: String(cells[0]), cells }))} />
			</details>
		</figure>
	);
}

const height = 120; // of a plot

// Latency shows p50 to p99 of each span as a bar, with p95 as a line in it, on a logarithmic scale.
export function Latency(p: { axis: Axis; points: Point[] }) {
	const list = shown(p.axis, p.points);
	const low = Math.floor(Math.log10(Math.max(0.01, Math.min(...list.map(([, q]) => q.p50), 1))));
	const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...list.map(([, q]) => q.p99), 1))));
	const y = (v: number): number => height - 4 - ((Math.log10(Math.max(v, 10 ** low)) - low) / (high - low)) * (height - 30);
	const wide = 100 / p.axis.n;
	const lines: [number, string][] = [];
	for (let e = low; e <= high; e++) lines.push([y(10 ** e), e < 3 ? `${10 ** e} ms` : `${10 ** (e - 3)} s`]);
	const most = list.length > 0 ? list.reduce((a, b) => (b[1].p95 > a[1].p95 ? b : a))[1] : undefined;
	return (
		<Chart
			name="Time of calls"
			about="bar: p50 to p99, line in it: p95 · ▲ slow (over 1 s) · ✖ failed"
			text={most ? `highest p95 ${ms(most.p95)} at ${clock(most.at)}` : "no calls"}
			lines={lines}
			axis={p.axis}
			columns={["Time", "p50", "p95", "p99"]}
			rows={list.map(([, q]) => [clock(q.at), ms(q.p50), ms(q.p95), ms(q.p99)])}
		>
			{list.map(([i, q]) => (
				<g key={i}>
					<rect class="band" x={pct(i * wide + wide * 0.15)} width={pct(wide * 0.7)} y={y(q.p99)} height={Math.max(2, y(q.p50) - y(q.p99))} />
					<line class="p95" x1={pct(i * wide)} x2={pct((i + 1) * wide)} y1={y(q.p95)} y2={y(q.p95)} />
					<Marks x={(i + 0.5) * wide} point={q} />
				</g>
			))}
		</Chart>
	);
}

// Bars shows a number of each span, and a part of it that is filled with stripes.
export function Bars(p: { name: string; about: string; axis: Axis; points: Point[]; value: (q: Point) => number; part?: (q: Point) => number; format: (v: number) => string; columns: string[]; row: (q: Point) => (string | number)[] }) {
	const list = shown(p.axis, p.points);
	const most = Math.max(...list.map(([, q]) => p.value(q)), 0);
	const top = nice(most);
	const wide = 100 / p.axis.n;
	const tall = (v: number): number => (v > 0 ? Math.max(1.5, (v / top) * (height - 30)) : 0);
	return (
		<Chart
			name={p.name}
			about={p.about}
			text={list.length > 0 ? `at most ${p.format(most)}` : "no calls"}
			lines={[
				[height - 4 - tall(top), p.format(top)],
				[height - 4, "0"],
			]}
			axis={p.axis}
			columns={["Time", ...p.columns]}
			rows={list.map(([, q]) => [clock(q.at), ...p.row(q)])}
		>
			{list.map(([i, q]) => {
				const bar = (cls: string, v: number): JSX.Element => <rect class={cls} x={pct(i * wide + wide * 0.1)} width={pct(wide * 0.8)} y={height - 4 - tall(v)} height={tall(v)} />;
				return (
					<g key={i}>
						{bar("column", p.value(q))}
						{p.part && bar("part", p.part(q))}
						{p.part && <Marks x={(i + 0.5) * wide} point={q} />}
					</g>
				);
			})}
		</Chart>
	);
}

// nice returns the next number above v that is good at the end of a scale.
export function nice(v: number): number {
	if (v <= 1) return 1;
	const ten = 10 ** Math.floor(Math.log10(v));
	return [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= v)!;
}

// Shares shows numbers of things as bars of a list: the text has the number.
export function Shares(p: { label: string; unit: string; list: { name: ComponentChildren; key: string; value: number }[] }) {
	const most = Math.max(...p.list.map((s) => s.value), 1);
	return (
		<ul class="shares" aria-label={p.label}>
			{p.list.map((s) => (
				<li key={s.key}>
					<span class="mono">{s.name}</span>
					<svg aria-hidden="true">
						<rect class="column" width={pct((s.value / most) * 100)} height="10" />
					</svg>
					<span class="number">
						{s.value} {p.unit}
					</span>
				</li>
			))}
		</ul>
	);
}
