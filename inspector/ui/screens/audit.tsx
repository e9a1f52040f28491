// The audit log of a gateway: selected lines, and whether it is whole.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { Button, count, Failed, ms, size, TextField, useLoad } from "../parts";
import type { Shown } from "../screens";
import { go } from "../store";
import { Table } from "../table";
import { Visible } from "../visible";

// Entry has the members of a line that the table shows.
interface Entry {
	seq: number;
	time: string;
	kind: string;
	event?: string;
	principal?: { id?: string };
	team?: string;
	server?: { name?: string };
	tool?: string;
	method?: string;
	name?: string;
	outcome?: string;
	ms?: number;
	bytes?: number;
	reason?: string;
	fault?: string;
	decision?: { rule?: string; by?: string };
}

const fields: [string, string, string][] = [
	["since", "Since", "7d, 2h, 15:00"],
	["until", "Until", "15:00, 2026-11-22"],
	["who", "Who", "*#ada"],
	["server", "Server", "any"],
	["tool", "Tool", "any"],
	["outcome", "Outcome", "denied, error"],
	["rule", "Rule", "any"],
	["kind", "Kind", "call.end"],
	["slower", "Slower than", "500ms"],
	["team", "Team", "any"],
	["client", "Client", "any"],
	["fault", "Fault", "deadline"],
	["call", "Call", "its id"],
];
const first = 6; // that are always shown

export function Audit({ at }: Shown) {
	const set = new URLSearchParams(at.split("?")[1] ?? "");
	const [draft, setDraft] = useState<Record<string, string>>(Object.fromEntries(set));
	useEffect(() => setDraft(Object.fromEntries(set)), [at]);
	const got = useLoad((stop) => get<{ lines: Entry[]; warnings: string[] }>("/ui/audit?" + set, stop), [at]);
	const apply = (e: Event) => {
		e.preventDefault();
		const q = new URLSearchParams(Object.entries(draft).filter(([, v]) => v.trim() !== ""));
		if ("/audit?" + q === at || (q.size === 0 && at === "/audit")) got.again();
		else go("/audit" + (q.size > 0 ? "?" + q : ""));
	};
	const field = ([name, label, example]: [string, string, string]) => <TextField key={name} label={label} value={draft[name]} set={(v) => setDraft({ ...draft, [name]: v })} example={example} find={name === "tool"} />;
	const lines = got.value?.lines ?? [];
	return (
		<>
			<h1>Audit</h1>
			<form onSubmit={apply} aria-label="Filter">
				<div class="filters">{fields.slice(0, first).map(field)}</div>
				<details open={fields.slice(first).some(([n]) => set.has(n))}>
					<summary>More filters</summary>
					<div class="filters">{fields.slice(first).map(field)}</div>
				</details>
				<p class="actions">
					<button type="submit" class="main">
						Show
					</button>
					<Button
						onPress={() => {
							setDraft({});
							go("/audit");
						}}
					>
						Clear
					</Button>
				</p>
			</form>
			<Verify />
			{got.error && <Failed>{got.error}</Failed>}
			{got.value?.warnings.map((w) => (
				<p key={w} class="warn">
					<Visible text={w} />
				</p>
			))}
			{got.value && (
				<>
					<p class="dim">{lines.length >= 100 && !set.has("lines") ? "The last 100 lines, the newest first. * stands for any text." : `${count(lines.length, "lines")}, the newest first. * stands for any text.`}</p>
					<Table
						label="Lines of the audit log"
						columns={["Time", "Who", "What", "Outcome", "#Time taken", "Reason", "Line"]}
						empty="No line matches."
						rows={[...lines].reverse().map((e) => ({
							key: String(e.seq),
							cells: [
								new Date(e.time).toLocaleString("sv") /* as ISO 8601, in local time */,
								<Visible text={[e.principal?.id, e.team].filter(Boolean).join(", ")} />,
								<Visible text={[e.server?.name, e.method, e.tool ?? e.name ?? e.event].filter(Boolean).join(" ")} />,
								<Outcome of={e} />,
								e.ms ? ms(e.ms) + (e.bytes ? `, ${size(e.bytes)}` : "") : "",
								<Visible text={[e.decision?.rule && `rule "${e.decision.rule}"`, e.decision?.by && `by ${e.decision.by}`, e.reason, e.fault].filter(Boolean).join(", ")} />,
								<details>
									<summary aria-label={`${e.seq}, all of line ${e.seq}`}>{e.seq}</summary>
									<pre>
										<Visible text={JSON.stringify(e, null, 1)} />
									</pre>
								</details>,
							],
						}))}
					/>
				</>
			)}
		</>
	);
}

// Outcome tells failed and refused calls apart by a mark.
function Outcome(p: { of: Entry }) {
	const e = p.of;
	const text = e.outcome ?? e.kind.replace("call.", "");
	if (e.kind === "denied" || text === "denied") return <span class="warn">▲ {text}</span>;
	if (text === "error" || text === "tool error") return <span class="bad">✖ {text}</span>;
	return <span>{text}</span>;
}

// Verify checks the chain of the log.
function Verify() {
	const [got, set] = useState<{ whole?: boolean; text?: string[]; error?: string }>();
	const run = async () => {
		try {
			set(await get<{ whole: boolean; text: string[] }>("/ui/audit/verify"));
		} catch (err) {
			set({ error: (err as Error).message });
		}
	};
	return (
		<section class="panel" aria-label="Verify">
			<Button onPress={run}>Verify the log</Button> <span class="dim">Finds lines that were edited, removed, moved or added by others.</span>
			{got?.error && <Failed>{got.error}</Failed>}
			<div role="status">
				{got?.text && (
					<>
						<p class={got.whole ? "ok verdict" : "bad verdict"}>{got.whole ? "● The log is whole." : "✖ The log was changed."}</p>
						{got.text.map((t) => (
							<p key={t}>
								<Visible text={t} />
							</p>
						))}
					</>
				)}
			</div>
		</section>
	);
}
