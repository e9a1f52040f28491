// The screen of one server: its tools, resources, templates and prompts. Tools in three columns: the list, the form, the
// result.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post } from "../api";
import { Arguments, check, focusFault, useForm } from "../form";
import { bindKeys, onCtrlEnter } from "../keys";
import { useChanges, useList, type List, type Named, type Tool } from "../lists";
import { Markdown } from "../markdown";
import { written } from "../mcp";
import { Button, Copy, count, Failed, Link, ms, useLoad } from "../parts";
import { Questions } from "../questions";
import { CopyJSON, RunView } from "../result";
import { callTool, history, resume, type Run } from "../runs";
import type { Shown } from "../screens";
import { go, join, use } from "../store";
import { line, shown, visible } from "../text";
import type { Fault } from "../types";
import { Prompts } from "./prompts";
import { Resources, Templates } from "./resources";

const maxListed = 1000;
const longText = 800; // characters of a description, of which the beginning is shown; a line counts 60 more
const tabs = ["tools", "resources", "templates", "prompts"];

export function Tools(p: Shown) {
	const servers = p.state.servers;
	const server = p.words[1] ?? servers[0]?.name ?? "";
	const tab = tabs.includes(p.words[2] ?? "") ? p.words[2]! : "tools";
	const name = p.words[3];
	useChanges(server);
	useEffect(resume, []);
	if (servers.length === 0) return <p>There are no servers.</p>;
	return (
		<>
			<div class="bar">
				<ServerChoice servers={servers} server={server} to={(name) => join("s", name, tab)} />
				<nav aria-label="Features of the server">
					{tabs.map((t) => (
						<Link to={join("s", server, t)} current={t === tab}>
							{t}
						</Link>
					))}
				</nav>
			</div>
			{tab === "tools" && <ToolPanel server={server} name={name} />}
			{tab === "resources" && <Resources server={server} uri={name} />}
			{tab === "templates" && <Templates server={server} name={name} />}
			{tab === "prompts" && <Prompts server={server} name={name} />}
		</>
	);
}

// ServerChoice is the heading of a screen for one server, and leads to those of others.
export function ServerChoice(p: { servers: { name: string }[]; server: string; to: (name: string) => string }) {
	return (
		<h1>
			{p.servers.length > 1 ? (
				<>
					<label class="sr" for="server">
						Server
					</label>
					<select id="server" value={p.server} onChange={(e) => go(p.to(e.currentTarget.value))}>
						{p.servers.map((s) => (
							<option>{s.name}</option>
						))}
					</select>
				</>
			) : (
				visible(p.server)
			)}
		</h1>
	);
}

// Columns shows a list with a search field, and what is chosen in it. The address of an entry is back with its id.
export function Columns<T extends Named>(p: { what: string; list: List<T> & { again: () => void }; chosen?: string; id: (item: T) => string; back: string; mark?: (item: T) => ComponentChildren; children: ComponentChildren }) {
	const [find, setFind] = useState("");
	const box = useRef<HTMLInputElement>(null);
	const list = useRef<HTMLUListElement>(null);
	const wanted = find.toLowerCase().split(/\s+/);
	const { items = [], bad, error } = p.list;
	const loaded = p.list.items !== undefined;
	const to = (i: T) => p.back + join(p.id(i));
	const found = items.filter((i) => {
		const text = `${p.id(i)} ${i.name} ${i.title ?? ""} ${i.description ?? ""}`.toLowerCase();
		return wanted.every((w) => text.includes(w));
	});
	// A name that has all words comes before a description that has them.
	if (find !== "") found.sort((a, b) => Number(wanted.every((w) => p.id(b).toLowerCase().includes(w))) - Number(wanted.every((w) => p.id(a).toLowerCase().includes(w))));
	useLayoutEffect(() => {
		if (p.chosen === undefined) box.current?.focus();
	}, [p.chosen === undefined, loaded]);
	useLayoutEffect(() => {
		const move = (by: number) => {
			const at = found.findIndex((i) => p.id(i) === p.chosen);
			const next = found[Math.max(0, Math.min(found.length - 1, at + by))];
			if (next) go(to(next));
		};
		return bindKeys({ j: () => move(1), k: () => move(-1) });
	});
	useEffect(() => {
		list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
	}, [p.chosen, loaded]);
	return (
		<div class={"columns" + (p.chosen === undefined ? "" : " chosen")}>
			<section class="list" aria-label={"List of " + p.what}>
				<input
					ref={box}
					type="search"
					data-find
					value={find}
					placeholder="/ find"
					aria-label={"Find " + p.what}
					onInput={(e) => setFind(e.currentTarget.value)}
					onKeyDown={(e) => {
						if (e.key === "Enter" && found[0]) {
							e.preventDefault(); // the button that has the focus then must not get the key
							go(to(found[0]));
						} else if (e.key === "ArrowDown") {
							e.preventDefault();
							list.current?.querySelector<HTMLElement>("a")?.focus();
						}
					}}
				/>
				{error && (
					<Failed>
						{visible(error)} <Button onPress={p.list.again}>Try again</Button>
					</Failed>
				)}
				{!loaded && !error && <p class="dim">Loading…</p>}
				<ul
					ref={list}
					onKeyDown={(e) => {
						const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
						const links = [...(list.current?.querySelectorAll<HTMLElement>("a") ?? [])];
						const at = links.indexOf(e.target as HTMLElement);
						if (step === undefined || at < 0) return;
						e.preventDefault();
						(at + step < 0 ? box.current : links[at + step])?.focus();
					}}
				>
					{found.slice(0, maxListed).map((i) => (
						<li key={p.id(i)}>
							<Link to={to(i)} current={p.id(i) === p.chosen} class="item">
								<span class="name">{line(p.id(i), 120)}</span>
								{p.mark?.(i)}
								{i.title && i.title !== p.id(i) && <span class="dim sub">{line(i.title, 80)}</span>}
							</Link>
						</li>
					))}
				</ul>
				{loaded && (
					<p class="dim" role="status">
						{found.length === items.length ? "" : found.length + " of "}{count(items.length, p.what)}
						{found.length > maxListed && `, ${maxListed} of them shown`}
					</p>
				)}
				{!!bad && <p class="warn">Not shown: {count(bad, "items")} with a missing or repeated name. See the wire.</p>}
			</section>
			<Link to={p.back} class="back">
				← all {p.what}
			</Link>
			{p.children}
		</div>
	);
}

// hints are what a server says about a tool. They are not promises.
function hints(t: Tool): string[] {
	const a = t.annotations;
	if (!a) return [];
	if (a.readOnlyHint) return ["reads only"];
	const out = [];
	if (a.destructiveHint) out.push("destructive");
	else if (a.destructiveHint === false) out.push("adds only");
	if (a.idempotentHint) out.push("can be repeated");
	return out;
}

const mark = (hint: string, sign = "") => <span class={"mark " + (hint === "destructive" ? "bad" : "dim")}>{sign + hint}</span>;

function ToolPanel(p: { server: string; name?: string }) {
	const list = useList<Tool>(p.server, "tools");
	const tool = list.items?.find((t) => t.name === p.name);
	const only = list.items?.length === 1 ? list.items[0] : undefined;
	useEffect(() => {
		if (only && p.name === undefined) go(join("s", p.server, "tools", only.name), true);
	}, [only?.name]);
	return (
		<Columns
			what="tools"
			list={list}
			chosen={p.name}
			id={(t) => t.name}
			back={join("s", p.server, "tools")}
			mark={(t) => {
				const [hint] = hints(t);
				return hint === "destructive" ? mark(hint, "! ") : hint === "reads only" && mark(hint);
			}}
		>
			{tool ? (
				<Call key={p.server + "\n" + tool.name} server={p.server} tool={tool} />
			) : (
				p.name !== undefined && list.items && <p class="failed">There is no tool {visible(p.name)} now. It may have been removed.</p>
			)}
			{p.name === undefined && list.items && <p class="dim empty">Choose a tool: type a part of its name and press Enter.</p>}
		</Columns>
	);
}

// drafts keep what was typed for a tool while another one is shown.
const drafts = new Map<string, unknown>();

// Call has the form of a tool, and what came of its calls: the result, or what outcome makes of the chosen call.
export function Call(p: { server: string; tool: Tool; outcome?: (run?: Run) => ComponentChildren }) {
	const { server, tool } = p;
	const key = JSON.stringify([server, tool.name]);
	const schema = tool.inputSchema ?? { type: "object" };
	const { form, first, error } = useForm(schema);
	const [typed, setTyped] = useState<any>(() => drafts.get(key));
	const value = typed === undefined ? first : typed;
	const [faults, setFaults] = useState<Fault[]>([]);
	const [why, setWhy] = useState(""); // the values could not be checked
	const [checked, setChecked] = useState(false);
	const [asJSON, setAsJSON] = useState(false);
	const [broken, setBroken] = useState(false);
	const box = useRef<HTMLElement>(null);
	const runs = use(history(server, "tool", tool.name));
	const [shownRun, setShownRun] = useState<number>();
	const run = runs.find((r) => r.n === shownRun) ?? runs[0];
	const open = runs.filter((r) => r.status === "open");

	const set = (v: any) => {
		drafts.set(key, v);
		setTyped(v);
	};
	useLayoutEffect(() => {
		// The first field, or the button of a tool without one, has the focus as soon as there is a form.
		if (form) (box.current?.querySelector<HTMLElement>(".fields input, .fields textarea, .fields select") ?? box.current?.querySelector<HTMLElement>("button.main"))?.focus({ preventScroll: false });
	}, [form]);
	useEffect(() => {
		// Faults that are shown follow the values.
		if (!checked || value === undefined) return;
		const stop = new AbortController();
		const timer = setTimeout(() => check(schema, value, false, stop.signal).then((c) => setFaults(c.faults), () => undefined), 250);
		return () => {
			clearTimeout(timer);
			stop.abort();
		};
	}, [value, checked]);

	const args = value ?? {};
	const call = async (anyway: boolean) => {
		if (broken) return;
		if (!anyway) {
			try {
				const got = await check(schema, args);
				setChecked(true);
				setFaults(got.faults);
				setWhy("");
				if (got.faults.length > 0) {
					focusFault(box.current);
					return;
				}
			} catch (err) {
				setWhy((err as Error).message);
				return;
			}
		}
		setShownRun(callTool(server, tool, args).n);
	};
	useLayoutEffect(() => bindKeys({ e: () => setAsJSON(!asJSON), r: () => void call(false) }));
	const description = String(tool.description ?? "");
	const long = description.length + 60 * description.split("\n").length > longText;
	return (
		<>
			<section
				class="call"
				ref={box}
				aria-label={"Call " + line(tool.name, 60)}
				onKeyDown={onCtrlEnter(() => call(false))}
			>
				<h2>
					{line(tool.name, 120)} {tool.title && tool.title !== tool.name && <span class="dim">{line(tool.title, 80)}</span>}
				</h2>
				<p class="hints">
					{hints(tool).map((h) => mark(h))}
				</p>
				<div class={long ? "cut" : ""}>
					<Markdown text={description} />
				</div>
				{long && (
					<details>
						<summary>more</summary>
					</details>
				)}
				{error && <Failed>The form: {visible(error)}</Failed>}
				{form && <Arguments schema={schema} form={form} value={value} set={set} faults={faults} asJSON={asJSON || form.kind === "other"} label="Arguments" broken={setBroken} />}
				{why && <Failed>The arguments could not be checked: {visible(why)}</Failed>}
				{faults.length > 0 && (
					<p class="bad" role="status">
						{faults.length === 1 ? "One fault" : faults.length + " faults"}: nothing was sent.
					</p>
				)}
				<div class="row buttons">
					<Button kind="main" onPress={() => call(false)} disabled={broken || !form} title="ctrl-Enter">
						Call
					</Button>
					<Button onPress={() => call(true)} disabled={broken} title="Send the arguments without a check">
						Call anyway
					</Button>
					<Button onPress={() => setAsJSON(!asJSON)} disabled={!form || form.kind === "other"} title="e">
						{asJSON ? "Form" : "JSON"}
					</Button>
					<Button onPress={() => set(first ?? {})}>
						Reset
					</Button>
					{open.length > 0 && (
						<Button onPress={() => (run?.status === "open" ? run : open[0]!).cancel()}>
							Cancel
						</Button>
					)}
				</div>
				<Questions runs={open} about="call of " focus />
				<details>
					<summary>Schema</summary>
					<pre class="code" tabIndex={0}>
						{shown(tool)}
					</pre>
				</details>
			</section>
			<section class="result" aria-label={"Result of " + line(tool.name, 60)}>
				{p.outcome ? p.outcome(run) : run ? <Outcome run={run} runs={runs} tool={tool} show={setShownRun} /> : <p class="dim empty">The result comes here.</p>}
			</section>
		</>
	);
}

// Outcome shows a call and the ones before it.
function Outcome(p: { run: Run; runs: Run[]; tool: Tool; show: (n: number) => void }) {
	const { run, runs, tool } = p;
	const before = runs.slice(runs.indexOf(run) + 1).find((r) => r.result);
	return (
		<>
			<RunView run={run} before={before} outputSchema={tool.outputSchema} />
			{run.status !== "open" && <Paste run={run} tool={tool} />}
			{runs.length > 1 && (
				<p class="earlier">
					<span class="dim">calls: </span>
					{runs.slice(0, 12).map((r) => (
						<button type="button" class="plain" aria-pressed={r === run} onClick={() => p.show(r.n)} title={line(JSON.stringify(r.args), 300)}>
							{ms(r.ms)} {r.status}
						</button>
					))}
				</p>
			)}
		</>
	);
}

// Paste copies a call as text for other programs, which the program makes.
function Paste(p: { run: Run; tool: Tool }) {
	const { run, tool } = p;
	const texts = useLoad((stop) => post<{ cli?: string; curl?: string; test: string }>("/ui/paste", { server: run.server, tool: run.name, arguments: run.args, ...written(tool, run.args) }, stop), [run.n]).value;
	return (
		<p class="paste">
			<span class="dim">copy: </span>
			{texts &&
				([["CLI", texts.cli], ["curl", texts.curl], ["Go test", texts.test]] as const).map(
					([name, text]) =>
						text && (
							<Copy label={name + ": copy the call"} text={() => text}>
								{name}
							</Copy>
						),
				)}
			<CopyJSON run={run} />
		</p>
	);
}
