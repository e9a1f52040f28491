// The servers of a gateway: their state, their traffic, and what can be done about them.
import { useState } from "preact/hooks";
import { get, post } from "../api";
import { axisOf, Spark, sum } from "../chart";
import { ago, Button, Copy, count, Failed, Link, ms, StateMark, useLoad } from "../parts";
import type { Shown } from "../screens";
import { go, join, query, said } from "../store";
import { Table } from "../table";
import type { Server, State, Traffic } from "../types";
import { useTick, Visible } from "../visible";
import { Log } from "./log";
import { Login } from "./login";

// runs reports whether callers can reach a server.
const runs = (s: Server): boolean => s.state === "ready" || s.state === "idle";

// Outcome is what an action has done.
interface Outcome {
	text: string;
	fault?: string;
}

export function Servers(p: Shown) {
	const name = query(p.at, "login");
	return name !== "" && p.state.can.login ? <Login key={name} state={p.state} name={name} /> : <List {...p} />;
}

function List({ state, at }: Shown) {
	const now = useTick(10_000);
	const traffic = useLoad((stop) => get<Traffic>("/ui/metrics?range=15m", stop), [now]);
	const [did, setDid] = useState<{ server: string; text?: string; error?: string }>();
	const act = async (action: string, server: string) => {
		try {
			const o = await post<Outcome>(`/ui/${action}/${encodeURIComponent(server)}`, {});
			setDid({ server, text: o.text });
			said.set(o.text);
		} catch (err) {
			setDid({ server, error: (err as Error).message });
		}
	};
	const steers = state.admin && state.can.steer;
	const open = query(at, "log");
	const toggle = (s: string) => go(open === s ? "/" : "/?log=" + encodeURIComponent(s));
	const axis = traffic.value && axisOf(traffic.value);
	const below = state.servers.filter((s) => !runs(s) || s.name === open || s.name === did?.server);
	return (
		<>
			<h1>Servers</h1>
			{state.servers.length === 0 && <p>The configuration has no servers. A server that is added to it appears here.</p>}
			<Table
				label="Servers"
				columns={["Server", "State", "For", "#p50 / p95, 1 min", "Last 15 min", "#Calls", "#Slow", "#Failed", "#Restarts", "Share · revision", ...(steers ? ["Actions"] : [])]}
				rows={state.servers.map((s) => {
					const points = traffic.value?.series.find((t) => t.server === s.name)?.points ?? [];
					const all = sum(points);
					return {
						key: s.name,
						cells: [
							<Link to={state.can.call ? join("s", s.name) : "/?log=" + encodeURIComponent(s.name)}>
								<Visible text={s.name} />
							</Link>,
							<StateMark state={s.state} />,
							ago(s.since, now),
							s.lastMinute && s.lastMinute.calls > 0 ? `${ms(s.lastMinute.p50Ms ?? 0)} / ${ms(s.lastMinute.p95Ms ?? 0)}` : "–",
							axis ? <Spark name={s.name} axis={axis} points={points} /> : "",
							all.calls,
							all.slow > 0 ? <span class="warn">▲ {all.slow}</span> : 0,
							all.errors > 0 ? <span class="bad">✖ {all.errors}</span> : 0,
							s.restarts,
							<span>
								{s.share}
								{s.clients > 0 ? " · " + count(s.connections, "connections") : ""}
								{s.server && <span class="dim"> · {s.server.split(", ").pop()}</span>}
							</span>,
							...(steers
								? [
										<span class="actions">
											<Button kind="plain" label={"Log of " + s.name} pressed={open === s.name} onPress={() => toggle(s.name)}>
												Log
											</Button>
											{s.state === "needs login" && state.can.login && (
												<Link class="button" label={"Log in to " + s.name} to={"/?login=" + encodeURIComponent(s.name)}>
													Log in
												</Link>
											)}
											<Actions server={s} act={act} />
										</span>,
									]
								: []),
						],
					};
				})}
			/>
			<p class="dim">Calls, slow (over 1 s) and failed ones of the last 15 minutes. Bars: p95 of each minute.</p>
			{traffic.error && <Failed>{traffic.error}</Failed>}
			{below.map((s) => (
				<Panel key={s.name} server={s} state={state} act={act} log={open === s.name} toggle={() => toggle(s.name)} did={did?.server === s.name ? did : undefined} now={now} />
			))}
			<Connect lines={state.connect ?? []} />
		</>
	);
}

// Actions are the buttons that act on a server.
function Actions(p: { server: Server; act: (action: string, server: string) => Promise<void> }) {
	const name = p.server.name;
	const [sure, setSure] = useState(false);
	if (p.server.state === "left out") return null;
	const button = (action: string, text: string, press = () => p.act(action, name) as unknown) => (
		<Button kind="plain" label={`${text} ${name}`} onPress={press}>
			{text}
		</Button>
	);
	const off = p.server.state === "disabled";
	return (
		<>
			{!off && button("restart", "Restart")}
			{off
				? button("enable", "Enable")
				: sure
				? button("disable", "Really disable")
				: button("disable", "Disable", () => {
						setSure(true);
						setTimeout(() => setSure(false), 5000);
					})}
		</>
	);
}

// Panel says why a server does not run, or what was done, with the last lines of it.
function Panel(p: { server: Server; state: State; act: (action: string, server: string) => Promise<void>; log: boolean; toggle: () => void; did?: { text?: string; error?: string } | undefined; now: number }) {
	const { server: s, state } = p;
	const steers = state.admin && state.can.steer;
	const lines = s.said ?? [];
	return (
		<section class="panel" aria-label={s.name}>
			<h2>
				<Visible text={s.name} />: <StateMark state={s.state} /> <span class="dim">for {ago(s.since, p.now)}</span>
			</h2>
			{p.did?.text && <p role="status">{p.did.text}</p>}
			{p.did?.error && <Failed>{p.did.error}</Failed>}
			{s.reason && (
				<p>
					<Visible text={s.reason} />
				</p>
			)}
			{!state.admin && !runs(s) && <p class="dim">Only administrators see the reason.</p>}
			{s.login && s.login !== s.reason && (
				<p>
					<Visible text={s.login} />
				</p>
			)}
			{s.lost && !s.reason && (
				<p>
					The last connection ended by itself: <Visible text={s.lost} />
				</p>
			)}
			{lines.length > 0 && !p.log && (
				<>
					<p class="dim">Its last lines of standard error:</p>
					<pre class="log" tabIndex={0} aria-label={"Last lines of " + s.name}>
						<Visible text={lines.join("\n")} />
					</pre>
				</>
			)}
			{p.log && <Log server={s.name} />}
			<p class="actions">
				{steers && (
					<Button label={(p.log ? "Hide the log of " : "All lines, live, of ") + s.name} onPress={p.toggle}>
						{p.log ? "Hide the log" : "All lines, live"}
					</Button>
				)}
				{lines.length > 0 && !p.log && (
					<Copy label={"Copy the last lines of " + s.name} text={() => lines.join("\n")}>
						Copy
					</Copy>
				)}
			</p>
		</section>
	);
}

// Connect shows lines by which hosts connect to the gateway.
function Connect(p: { lines: string[] }) {
	const places: { name: string[]; paste: string[] }[] = [];
	for (const line of p.lines) {
		let last = places[places.length - 1];
		if (!line.startsWith("  ")) {
			if (!last || last.paste.length > 0) places.push((last = { name: [], paste: [] }));
			last.name.push(line);
		} else last?.paste.push(line.slice(2));
	}
	if (places.length === 0) return null;
	return (
		<details class="panel" open>
			<summary>Connect a host</summary>
			<dl>
				{places.map((p) => (
					<div key={p.name.join()}>
						<dt>{p.name.join(" ")}</dt>
						<dd>
							<code>
								<Visible text={p.paste.join("\n")} />
							</code>{" "}
							<Copy label={"Copy the line for " + p.name.join(" ").replace(/[:,(].*/, "")} text={() => p.paste.join("\n")}>
								Copy
							</Copy>
						</dd>
					</div>
				))}
			</dl>
		</details>
	);
}
