// What the policy does with a call, and why, without making it.
import { useState } from "preact/hooks";
import { post } from "../api";
import { parse } from "../mcp";
import { Facts, Failed, TextField } from "../parts";
import type { Shown } from "../screens";
import { query } from "../store";
import { Table } from "../table";
import { words } from "../text";
import { Visible } from "../visible";

// Explained is the answer of /ui/explain.
interface Explained {
	allowed: boolean;
	listed: boolean;
	text: string[]; // in words
	tried: { rule: string; line: number; when: string; effect: string; outcome: string; error?: string; values: { of: string; value: string }[] }[];
	facts?: { of: string; text: string }[];
	ways?: { view?: string; path: string; name: string; allowed: boolean; by: string; why?: string }[];
	known: { id: string; name?: string; roles?: string[]; listed: boolean; allowed: boolean; rule: string }[];
}

// marks of what a rule says about a call.
const outcomes: Record<string, string> = { yes: "● matches", no: "○ does not match", perhaps: "◌ depends on what is not known", failed: "✖ failed", shadowed: "▲ matches too: a rule above decides" };

const verdict = (allowed: boolean) => (allowed ? <span class="ok">● allowed</span> : <span class="bad">✖ refused</span>);

export function Policy({ state, at }: Shown) {
	const [server, setServer] = useState(query(at, "server") || (state.servers[0]?.name ?? ""));
	const [text, setText] = useState<Record<string, string>>({ tool: query(at, "tool"), principal: "", roles: "", scopes: "", args: "" });
	const [got, setGot] = useState<{ value?: Explained; error?: string }>({});
	const explain = async (e: Event) => {
		e.preventDefault();
		try {
			let args: unknown;
			if (text.args!.trim() !== "") {
				try {
					args = parse(text.args!);
				} catch (err) {
					throw new Error("The arguments are not JSON: " + (err as Error).message);
				}
			}
			setGot({ value: await post<Explained>("/ui/explain", { server, tool: text.tool, principal: text.principal!.trim(), roles: words(text.roles!), scopes: words(text.scopes!), ...(args === undefined ? {} : { arguments: args }) }) });
		} catch (err) {
			setGot({ error: (err as Error).message });
		}
	};
	const field = (name: string, label: string, example: string, list?: string) => <TextField label={label} value={text[name]} set={(v) => setText({ ...text, [name]: v })} example={example} list={list} find={!!list} />;
	const v = got.value;
	return (
		<>
			<h1>Policy</h1>
			<p class="dim">Says what would happen with a call, and why. Nothing is sent to a server.</p>
			<form onSubmit={explain} aria-label="Call">
				<div class="filters">
					{field("principal", "Principal", "anonymous, or apikey#ada")}
					{field("roles", "Roles", "of the principal")}
					{field("scopes", "Scopes", "of the principal")}
					<label>
						Server
						<select value={server} onChange={(e) => setServer(e.currentTarget.value)}>
							{state.servers.map((s) => (
								<option key={s.name} value={s.name}>
									{s.name}
								</option>
							))}
						</select>
					</label>
					{field("tool", "Tool", "its name at the server", "tools-of-server")}
					<datalist id="tools-of-server">
						{(state.servers.find((s) => s.name === server)?.largest ?? []).map((t) => (
							<option key={t.name} value={t.name} />
						))}
					</datalist>
				</div>
				<div class="stack">
					<label>
						Arguments, as JSON
						<textarea class="json" value={text.args} rows={3} placeholder='{"amount": 500}' spellcheck={false} onInput={(e) => setText({ ...text, args: e.currentTarget.value })} />
					</label>
				</div>
				<p>
					<button type="submit" class="main" disabled={text.tool === ""}>
						Explain
					</button>{" "}
					{text.tool === "" && <span class="dim">Name a tool first.</span>}
				</p>
			</form>
			{got.error && <Failed>{got.error}</Failed>}
			<div role="status">
				{v && (
					<>
						<p class={"verdict " + (v.allowed ? "ok" : "bad")}>{v.allowed ? "● Allowed" : "✖ Refused"}</p>
						{v.text.map((t) => (
							<p key={t}>
								<Visible text={t} />
							</p>
						))}
					</>
				)}
			</div>
			{v && (
				<>
					<h2>Rules, in order</h2>
					<Table
						label="Rules that were tried"
						columns={["Rule", "#Line", "Effect", "Condition", "This call", "Values"]}
						empty="No rule was tried."
						rows={v.tried.map((t) => ({
							key: `${t.line} ${t.rule}`,
							cells: [
								<Visible text={t.rule} />,
								t.line,
								t.effect,
								<code>
									<Visible text={t.when || "always"} />
								</code>,
								<span class={t.outcome === "failed" ? "bad" : t.outcome === "yes" ? "" : "dim"}>{outcomes[t.outcome] ?? t.outcome}</span>,
								<span>
									{t.error && (
										<span class="bad">
											<Visible text={t.error} />
										</span>
									)}
									{t.values.map((x) => (
										<div key={x.of}>
											<code>
												<Visible text={`${x.of} = ${x.value}`} />
											</code>
										</div>
									))}
								</span>,
							],
						}))}
					/>
					{v.ways && v.ways.length > 0 && (
						<>
							<h2>Where clients find it</h2>
							<Table
								label="Views with the tool"
								columns={["Path", "Name there", "This call", "Decided by"]}
								rows={v.ways.map((w) => ({
									key: w.path,
									cells: [<code>{w.path}</code>, <Visible text={w.name} />, verdict(w.allowed), <Visible text={[w.by, w.why].filter(Boolean).join("; ")} />],
								}))}
							/>
						</>
					)}
					{v.facts && v.facts.length > 0 && (
						<>
							<h2>What else applies</h2>
							<Facts list={v.facts.map((f) => [f.of, <Visible text={f.text} />])} />
						</>
					)}
					<h2>Who could see it</h2>
					<p class="dim">Anonymous callers and those with an API key of this gateway. Callers with tokens are not known before they come.</p>
					<Table
						label="Callers"
						columns={["Caller", "Roles", "Sees it in lists", "This call", "Rule"]}
						rows={v.known.map((k) => ({
							key: k.id,
							cells: [<Visible text={[k.id || "anonymous", k.name].filter(Boolean).join(", ")} />, <Visible text={(k.roles ?? []).join(", ")} />, k.listed ? "● yes" : "○ no", verdict(k.allowed), <Visible text={k.rule} />],
						}))}
					/>
				</>
			)}
		</>
	);
}
