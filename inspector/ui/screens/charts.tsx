// The traffic of a server or a tool over time, and what its tools cost a model.
import { get } from "../api";
import { axisOf, Bars, Latency, Shares, sum } from "../chart";
import { count, Failed, size, useLoad } from "../parts";
import type { Shown } from "../screens";
import { go, query } from "../store";
import type { Traffic } from "../types";
import { useTick, Visible } from "../visible";

const ranges: [string, string][] = [
	["15m", "15 min"],
	["1h", "1 hour"],
	["24h", "24 hours"],
];

export function Charts({ state, at }: Shown) {
	const now = useTick(10_000);
	const server = query(at, "server") || (state.servers.find((s) => s.lastMinute) ?? state.servers[0])?.name || "";
	const tool = query(at, "tool");
	const range = tool !== "" ? "1h" : query(at, "range") || "15m";
	const to = (change: Record<string, string>) => {
		const q = new URLSearchParams({ server, tool, range, ...change });
		for (const [k, v] of [...q]) if (v === "") q.delete(k);
		go("/charts?" + q, true);
	};
	const got = useLoad((stop) => get<Traffic>("/ui/metrics?" + new URLSearchParams({ range, server, ...(tool ? { tool } : {}) }), stop), [server, tool, range, now]);
	const about = state.servers.find((s) => s.name === server);
	const points = got.value?.series[0]?.points ?? [];
	const axis = got.value && axisOf(got.value);
	const all = sum(points);
	const minutes = got.value ? got.value.stepMs / 60_000 : 1;
	const costly = state.servers.filter((s) => s.tokens);
	return (
		<>
			<h1>Charts</h1>
			<div class="filters">
				<label>
					Server
					<select value={server} onChange={(e) => to({ server: e.currentTarget.value, tool: "" })}>
						{state.servers.map((s) => (
							<option key={s.name} value={s.name}>
								{s.name}
							</option>
						))}
					</select>
				</label>
				<label>
					Tool
					<select value={tool} onChange={(e) => to({ tool: e.currentTarget.value })}>
						<option value="">all</option>
						{[...new Set([...(about?.largest ?? []).map((t) => t.name), ...(tool ? [tool] : [])])].sort().map((t) => (
							<option key={t} value={t}>
								{t}
							</option>
						))}
					</select>
				</label>
				<div class="choice" role="group" aria-label="Range">
					{ranges.map(([name, text]) => (
						<button key={name} type="button" aria-pressed={name === range} disabled={tool !== "" && name !== "1h"} onClick={() => to({ range: name })}>
							{text}
						</button>
					))}
				</div>
			</div>
			{got.error && <Failed>{got.error}</Failed>}
			{axis && (
				<p>
					{count(all.calls, "calls")}, <span class={all.slow > 0 ? "warn" : ""}>▲ {all.slow} slow</span>, <span class={all.errors > 0 ? "bad" : ""}>✖ {all.errors} failed</span>
					{tool && <span class="dim"> · of a tool, the last hour in parts of 10 minutes</span>}
				</p>
			)}
			{axis && (
				<div class="charts">
					<Latency axis={axis} points={points} />
					<Bars
						name="Calls per minute"
						about="the lower part failed · ▲ slow (over 1 s) · ✖ failed"
						axis={axis}
						points={points}
						value={(q) => q.calls / minutes}
						part={(q) => q.errors / minutes}
						format={(v) => String(Math.round(v * 10) / 10)}
						columns={["#Calls", "#Slow", "#Failed"]}
						row={(q) => [q.calls, q.slow, q.errors]}
					/>
					<Bars
						name="Bytes of results"
						about="of servers outside of this program"
						axis={axis}
						points={points}
						value={(q) => q.bytesOut}
						format={size}
						columns={["#Results", "#Per call", "#Arguments"]}
						row={(q) => [size(q.bytesOut), size(Math.round(q.bytesOut / q.calls)), size(q.bytesIn)]}
					/>
				</div>
			)}
			{costly.length > 0 && (
				<>
					<h2>What definitions of tools cost a model</h2>
					<p class="dim">Tokens are an estimate from bytes. A host sends them with each question, unless it searches for tools.</p>
					<h3>Lists of servers</h3>
					<Shares label="Tokens of the tools of each server" unit="tokens" list={costly.map((s) => ({ key: s.name, name: <Visible text={`${s.name} (${count(s.tools, "tools")})`} />, value: s.tokens! }))} />
				</>
			)}
			{about?.largest && about.largest.length > 0 && (
				<>
					<h3>
						Tools of <Visible text={server} />
					</h3>
					<Shares label={"Tokens of each tool of " + server} unit="tokens" list={about.largest.slice(0, 40).map((t) => ({ key: t.name, name: <Visible text={t.name} />, value: t.tokens }))} />
				</>
			)}
		</>
	);
}
