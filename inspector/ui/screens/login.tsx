// The login at a server, with its steps: what went over the wire, and what the specification wants there.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../api";
import { Button, Facts, Failed, Link, ms } from "../parts";
import type { State } from "../types";
import { Visible } from "../visible";

// Flow is the answer of /ui/login/SERVER.
interface Flow {
	state: "none" | "running" | "done" | "failed" | "canceled";
	by?: string;
	page?: string;
	host?: string;
	text?: string;
	steps: { name: string; sent: string; got?: string; error?: string; ms: number; checks: { rule: string; text: string; mark: string; note?: string }[] }[];
	claims?: { name: string; value: string }[];
}

const marks: Record<string, string> = { ok: "✓", fault: "✖", hint: "▲" };

export function Login({ state, name }: { state: State; name: string }) {
	const server = state.servers.find((s) => s.name === name);
	const [f, set] = useState<Flow>();
	const [error, setError] = useState("");
	const at = "/ui/login/" + encodeURIComponent(name);
	const take = (asked: Promise<Flow>) =>
		asked.then(
			(v) => (set(v), setError("")),
			(err: Error) => setError(err.message),
		);
	// A login may begin and end in another tab.
	useEffect(() => {
		let asks = false;
		const look = async () => {
			if (asks) return;
			asks = true;
			await take(get<Flow>(at));
			asks = false;
		};
		void look();
		const t = setInterval(() => void look(), 1000);
		return () => clearInterval(t);
	}, [at]);
	const runs = f?.state === "running";
	return (
		<>
			<h1>
				Login at <Visible text={name} />
			</h1>
			<p>
				<Link to="/">All servers</Link>
			</p>
			<p role="status">
				{server && `State: ${server.state}. `}
				{f?.text && <Visible text={f.text} />}
			</p>
			{error && <Failed>{error}</Failed>}
			<p class="actions">
				{runs ? <Button onPress={() => take(post(at + "/cancel", {}))}>Cancel</Button> : <Button onPress={() => take(post(at, {}))}>Log in</Button>}
				{runs && f.page && /^https?:\/\//.test(f.page) && (
					<a href={f.page} target="_blank" rel="noopener noreferrer">
						Agree at <Visible text={f.host ?? ""} /> (new tab)
					</a>
				)}
			</p>
			{runs && f.page && <p class="dim">The browser has to be on the machine of this program. The login was started by {f.by}.</p>}
			<ol>
				{f?.steps.map((s, i) => (
					<li key={i} class="panel">
						<h2>
							{s.name} <span class="dim">{ms(s.ms)}</span>
						</h2>
						<ul>
							{s.checks.map((c) => (
								<li key={c.rule + c.text} class={{ ok: "ok", fault: "bad" }[c.mark] ?? "warn"}>
									{marks[c.mark]} {c.text} <Visible text={c.note ?? ""} /> <code>{c.rule}</code>
								</li>
							))}
						</ul>
						{s.error && <Failed>{s.error}</Failed>}
						<details>
							<summary>Sent and received, without secrets</summary>
							<pre tabIndex={0} class="log">
								<Visible text={s.sent + (s.got ? "\n\n" + s.got : "")} />
							</pre>
						</details>
					</li>
				))}
			</ol>
			{f?.claims && (
				<>
					<h2>Claims of the access token</h2>
					<Facts list={f.claims.map((c) => [<Visible text={c.name} />, <Visible text={c.value} />])} />
				</>
			)}
		</>
	);
}
