// The prompts of a server: arguments with completion, and the messages.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Combobox, filled } from "../combobox";
import { onCtrlEnter } from "../keys";
import { useList, type Prompt } from "../lists";
import { Button } from "../parts";
import { Questions as Cards } from "../questions";
import { CopyJSON, RunView } from "../result";
import { getPrompt, history, type Run } from "../runs";
import { objects } from "../mcp";
import { join, use } from "../store";
import { line, visible } from "../text";
import { Columns } from "./tools";

export function Prompts(p: { server: string; name?: string }) {
	const list = useList<Prompt>(p.server, "prompts");
	const prompt = list.items?.find((t) => t.name === p.name);
	return (
		<Columns what="prompts" list={list} chosen={p.name} id={(t) => t.name} back={join("s", p.server, "prompts")}>
			{prompt ? (
				<Get key={p.server + "\n" + prompt.name} server={p.server} prompt={prompt} />
			) : (
				list.items && <p class="dim empty">{p.name === undefined ? "Choose a prompt." : `There is no prompt ${visible(p.name)} now.`}</p>
			)}
		</Columns>
	);
}

function Get(p: { server: string; prompt: Prompt }) {
	const { server, prompt } = p;
	const [args, setArgs] = useState<Record<string, string>>({});
	const [missing, setMissing] = useState("");
	const box = useRef<HTMLElement>(null);
	const runs = use(history(server, "prompt", prompt.name));
	const list = objects(prompt.arguments);
	useLayoutEffect(() => box.current?.querySelector<HTMLElement>("input, button.main")?.focus(), []);
	const get = (anyway = false) => {
		const lacks = list.filter((a) => a.required && !args[a.name]).map((a) => a.name);
		setMissing(lacks.join(", "));
		if (lacks.length > 0 && !anyway) return;
		getPrompt(server, prompt.name, filled(args));
	};
	return (
		<>
			<section
				class="call"
				ref={box}
				aria-label={"Get " + line(prompt.name, 60)}
				onKeyDown={onCtrlEnter(() => get())}
			>
				<h2>
					{line(prompt.name, 120)} {prompt.title && <span class="dim">{line(prompt.title, 80)}</span>}
				</h2>
				{prompt.description && <p>{visible(prompt.description)}</p>}
				{list.map((a) => (
					<Combobox
						key={a.name}
						server={server}
						about={{ type: "ref/prompt", name: prompt.name }}
						name={a.name}
						label={a.title || a.name}
						description={a.description}
						required={a.required}
						value={args[a.name] ?? ""}
						set={(v) => setArgs({ ...args, [a.name]: v })}
						all={args}
					/>
				))}
				{list.length === 0 && <p class="dim">No arguments.</p>}
				{missing && (
					<p class="bad" role="status">
						Missing: {visible(missing)}. Nothing was sent.
					</p>
				)}
				<div class="row buttons">
					<Button kind="main" onPress={() => get()} title="ctrl-Enter">
						Get
					</Button>
					{missing && <Button onPress={() => get(true)}>Get anyway</Button>}
				</div>
				<Questions runs={runs} />
			</section>
			<section class="result" aria-label={"Messages of " + line(prompt.name, 60)}>
				<Outcome runs={runs} />
			</section>
		</>
	);
}

// Questions shows what the server asks in calls that are under way, and a button that ends them.
export function Questions(p: { runs: Run[] }) {
	return (
		<>
			{p.runs
				.filter((r) => r.status === "open")
				.map((r) => (
					<div key={r.n}>
						<Cards runs={[r]} focus />
						<Button onPress={r.cancel}>Cancel</Button>
					</div>
				))}
		</>
	);
}

// Outcome shows the newest result of a prompt or a resource.
export function Outcome(p: { runs: Run[] }) {
	const run = p.runs[0];
	if (!run) return <p class="dim empty">The result comes here.</p>;
	return (
		<>
			<RunView run={run} before={p.runs.slice(1).find((r) => r.result)} />
			{run.status !== "open" && (
				<p class="paste">
					<span class="dim">copy: </span>
					<CopyJSON run={run} />
				</p>
			)}
		</>
	);
}
