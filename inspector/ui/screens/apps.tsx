// Views of MCP Apps: a tool with a view is called in its form, and its view shows the result. Beside it stand the messages
// between the two, and what the view may load.
import "../main";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post } from "../api";
import { Bridge, linkOf, type Message, type Question } from "../bridge";
import { useChanges, useList, type Tool } from "../lists";
import { Address } from "../markdown";
import { client, isObject, parse, type Obj } from "../mcp";
import { Button, Facts, Failed, useLoad } from "../parts";
import { Questions } from "../questions";
import { asking, type Run } from "../runs";
import type { Shown } from "../screens";
import { join, said, state, use, Value } from "../store";
import { bytesOf, line, shown, visible } from "../text";
import { Call, Columns, ServerChoice } from "./tools";

const mimeType = "text/html;profile=mcp-app";
const maxHeight = 1200; // pixels of a view

// asModel: the screen offers what a model may call, and shows what a model gets.
const asModel = new Value(false);

export function Apps(p: Shown) {
	const servers = p.state.servers;
	const server = p.words[1] ?? servers[0]?.name ?? "";
	const list = useList<Tool>(server, "tools");
	useChanges(server);
	const model = use(asModel);
	const items = list.items?.filter((t) => linkOf(t).view !== undefined && (!model || linkOf(t).model));
	const tool = items?.find((t) => t.name === p.words[2]);
	const now = useRef<Tool[]>([]);
	now.current = list.items ?? [];
	if (servers.length === 0) return <p>There are no servers.</p>;
	if (!p.state.sandbox) {
		return (
			<>
				<h1>Apps</h1>
				<p>Views of apps are not shown on this page: {p.state.noSandbox}.</p>
			</>
		);
	}
	return (
		<>
			<div class="bar">
				<ServerChoice servers={servers} server={server} to={(name) => join("apps", name)} />
				<button type="button" role="switch" aria-checked={model} onClick={() => asModel.set(!model)}>
					As a model
				</button>
			</div>
			<Columns what="tools with a view" list={{ ...list, items }} chosen={p.words[2]} id={(t) => t.name} back={join("apps", server)} mark={(t) => !linkOf(t).model && <span class="mark dim">for views alone</span>}>
				{tool ? (
					<Call key={server + "\n" + tool.name} server={server} tool={tool} outcome={(run) => (run ? <View key={run.n} run={run} tool={tool} tools={() => now.current} /> : <p class="dim empty">The view comes here when the tool is called.</p>)} />
				) : (
					<p class="dim empty">{items?.length === 0 ? "There is no tool with a view." : p.words[2] === undefined ? "Choose a tool." : items && "There is no such tool now."}</p>
				)}
			</Columns>
		</>
	);
}

// Loaded is a view that can be shown.
interface Loaded {
	html: string;
	ui: Obj; // its _meta.ui
	src: string;
	policy: string;
	csp: Obj | null;
}

// load reads a view, and asks the program how it may be shown.
async function load(server: string, uri: string, signal: AbortSignal): Promise<Loaded> {
	const { contents } = await client(server).rounds("resources/read", { uri }, { signal });
	const c: Obj | undefined = Array.isArray(contents) ? contents.find((c) => c?.uri === uri) ?? contents[0] : undefined;
	const kind = String(c?.mimeType).replace(/\s/g, "").toLowerCase();
	if (!c || kind !== mimeType) throw new Error(`${uri} has the MIME type ${c?.mimeType}, and a view has ${mimeType}`);
	const bytes = c.blob === undefined ? undefined : bytesOf(c.blob);
	const html = bytes ? new TextDecoder().decode(bytes) : c.text;
	if (typeof html !== "string") throw new Error(`${uri} has no text`);
	const ui: unknown = c._meta?.ui ?? {};
	const how = await post<{ src: string; policy: string; csp: Obj | null }>("/ui/view", ui, signal);
	return { html, ui: isObject(ui) ? ui : {}, ...how };
}

function View(p: { run: Run; tool: Tool; tools: () => Tool[] }) {
	const got = useLoad((stop) => load(p.run.server, linkOf(p.tool).view!, stop), []);
	if (got.error) {
		return (
			<Failed>
				The view cannot be shown: {visible(got.error)} <Button onPress={got.again}>Try again</Button>
			</Failed>
		);
	}
	return got.value ? <Frame {...p} view={got.value} /> : <p class="dim">Loading…</p>;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const locales = [...new Set([navigator.language, "en-US", "de-DE", "ja-JP", "ar-EG"])];
const widths = [0, 320, 390, 768];

function Frame(p: { run: Run; tool: Tool; tools: () => Tool[]; view: Loaded }) {
	const { run, tool, view } = p;
	const frame = useRef<HTMLIFrameElement>(null);
	const [, draw] = useState(0);
	const [theme, setTheme] = useState(dark.matches ? "dark" : "light");
	const [locale, setLocale] = useState(locales[0]!);
	const [width, setWidth] = useState(0);
	const [size, setSize] = useState<{ width?: number; height?: number }>({});
	const [stopped, setStopped] = useState("");
	const [round, setRound] = useState(0);
	const container = (w: number) => ({ width: w || frame.current?.clientWidth, maxHeight });
	const context = () => ({
		toolInfo: { tool },
		theme,
		displayMode: "inline",
		availableDisplayModes: ["inline"],
		containerDimensions: container(width),
		locale,
		timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
		userAgent: "patchbay/" + state.now?.version,
		platform: "web",
	});
	const latest = useRef(context);
	latest.current = context;
	const bridge = useRef<Bridge | undefined>(undefined);
	useLayoutEffect(() => {
		let timer = 0;
		const changed = () => (timer ||= window.setTimeout(() => ((timer = 0), draw((n) => n + 1)), 50));
		const b = new Bridge({ server: run.server, tool, tools: p.tools, origin: state.now!.sandbox!, html: view.html, granted: view.csp ?? {}, context: () => latest.current(), changed, sized: setSize, stopped: setStopped });
		bridge.current = b;
		setStopped("");
		const over = b.show(frame.current!);
		frame.current!.src = view.src;
		b.give(run);
		return () => {
			over();
			clearTimeout(timer);
		};
	}, [round]);
	useEffect(() => bridge.current?.give(run), [run]);
	useLayoutEffect(() => {
		if (!frame.current) return;
		frame.current.style.height = Math.min(maxHeight, Math.max(80, size.height ?? 320)) + "px";
		frame.current.style.width = width ? width + "px" : "";
	});
	const b = bridge.current;
	const model = use(asModel);
	const mine = use(asking).filter((r) => b?.calls.some((c) => c.n === r.n));
	return (
		<>
			<div class="row">
				<Choice label="Theme" value={theme} of={["light", "dark"]} set={(v) => (setTheme(v), b?.change({ theme: v }))} />
				<Choice label="Locale" value={locale} of={locales} set={(v) => (setLocale(v), b?.change({ locale: v }))} />
				<Choice label="Width" value={String(width)} of={widths.map(String)} name={(w) => (w === "0" ? "all" : w + " px")} set={(v) => (setWidth(Number(v)), b?.change({ containerDimensions: container(Number(v)) }))} />
				<Button onPress={() => setRound(round + 1)}>Load again</Button>
			</div>
			{stopped ? (
				<Failed>The view was stopped: {visible(stopped)}.</Failed>
			) : (
				<div class={"view scroll" + (view.ui.prefersBorder === false ? "" : " bordered")} tabIndex={0} role="group" aria-label={"View of " + line(tool.name, 60)}>
					<iframe key={round} ref={frame} title={"View of " + line(tool.name, 60)} sandbox="allow-scripts allow-same-origin allow-forms" />
				</div>
			)}
			{b?.question && <Ask key={b.messages.length} question={b.question} server={run.server} />}
			<Questions runs={mine} about="call by the view of " />
			<p class="dim" role="status">
				{size.height === undefined ? "The view has not told its size." : `The view asks for ${size.width ?? "any"} × ${size.height} px.`}
			</p>
			{model && <ForModel run={run} told={b?.forModel} />}
			<Rights view={view} />
			<h3>Messages ({b ? b.messages.length + b.lost : 0})</h3>
			<ul class="messages">{b?.messages.map((m) => <Line key={m.n} message={m} />)}</ul>
		</>
	);
}

// ForModel shows what a host gives to its model of a call with a view (extensions/apps, 2026-01-26, Data Passing).
const ForModel = (p: { run: Run; told?: Obj }) => (
	<section aria-label="What a model gets">
		<h3>What a model gets</h3>
		<pre class="code" tabIndex={0}>
			{shown(p.run.result?.content ?? p.run.error ?? [])}
			{p.told && "\n\nof the view:\n" + shown(p.told)}
		</pre>
	</section>
);

function Choice(p: { label: string; value: string; of: string[]; name?: (v: string) => string; set: (v: string) => void }) {
	return (
		<label>
			{p.label}{" "}
			<select value={p.value} onChange={(e) => p.set(e.currentTarget.value)}>
				{p.of.map((v) => (
					<option value={v}>{p.name?.(v) ?? v}</option>
				))}
			</select>
		</label>
	);
}

// Ask asks what a view wants of the person. Its buttons work after a moment, so a click that is meant for the view does not
// meet them.
function Ask(p: { question: Question; server: string }) {
	const { what, text, answer } = p.question;
	const [ready, setReady] = useState(false);
	useEffect(() => {
		said.set("The view asks you");
		const timer = setTimeout(() => setReady(true), 500);
		return () => clearTimeout(timer);
	}, []);
	return (
		<section class="question" aria-label="Question of the view">
			<p class="from">
				The view of <strong>{visible(p.server)}</strong> {what === "open-link" ? "wants to open a page in a new tab:" : "wants to send this message as yours. There is no conversation here, so it is only kept below:"}
			</p>
			{what === "open-link" ? <Address url={new URL(text)} /> : <pre class="code">{visible(text)}</pre>}
			<div class="row">
				<Button kind="main" disabled={!ready} onPress={() => answer(true)}>
					{what === "open-link" ? "Open" : "Send"}
				</Button>
				<Button disabled={!ready} onPress={() => answer(false)}>
					Decline
				</Button>
			</div>
		</section>
	);
}

const kinds: [string, string][] = [
	["connectDomains", "connections"],
	["resourceDomains", "scripts, styles, pictures"],
	["frameDomains", "frames"],
	["baseUriDomains", "base of addresses"],
];

// Rights shows what a view asked for, and what it got.
function Rights(p: { view: Loaded }) {
	const { ui, csp, policy } = p.view;
	const features = isObject(ui.permissions) ? Object.keys(ui.permissions) : [];
	const asked = kinds.filter(([name]) => csp?.[name]?.length);
	return (
		<details>
			<summary>
				{asked.length === 0 ? "The view loads nothing from elsewhere" : "The view may use other hosts: " + asked.map(([, name]) => name).join("; ")}
				{features.length > 0 && `; not granted: ${features.map((f) => line(f, 30)).join(", ")}`}
			</summary>
			<Facts list={[...asked.map(([name, text]): [string, string] => [text, csp![name].map(visible).join(" ")]), ...(ui.domain === undefined ? [] : [["own domain, not granted", line(ui.domain)] as [string, string]]), ["policy", <code>{policy}</code>]]} />
		</details>
	);
}

// Line is a message, with its text when it is opened.
function Line(p: { message: Message }) {
	const [open, setOpen] = useState(false);
	const { from, what, text, fault } = p.message;
	const pretty = () => {
		try {
			return shown(parse(text));
		} catch {
			return visible(text); // it is cut
		}
	};
	return (
		<li>
			<details onToggle={(e) => setOpen(e.currentTarget.open)}>
				<summary>
					<span class="dim">{from === "view" ? "view →" : "→ view"}</span> {line(what, 80)} {fault && <span class="bad">refused: {line(fault, 200)}</span>}
				</summary>
				{open && (
					<pre class="code" tabIndex={0}>
						{pretty()}
					</pre>
				)}
			</details>
		</li>
	);
}
