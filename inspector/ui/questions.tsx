// Questions of servers, and their answers: a form, a page to visit, a message that a model would write.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { check, focusFault, FormFields, useForm } from "./form";
import { Address, Markdown } from "./markdown";
import { onCtrlEnter } from "./keys";
import type { Asked, Obj } from "./mcp";
import { Button, Failed } from "./parts";
import { Block } from "./result";
import type { Run } from "./runs";
import { line, shown, visible, webAddress } from "./text";
import type { Fault } from "./types";

// QuestionCard shows one question. The function answer gets the result; refuse is called for a question that the protocol
// has no refusal for. Without refuse it cannot be refused.
export function QuestionCard(p: { server: string; about: string; asked: Asked; answer: (result: Obj) => void; refuse?: () => void; focus?: boolean }) {
	const card = useRef<HTMLElement>(null);
	const { method, params } = p.asked;
	useLayoutEffect(() => {
		// Not a button: the person may be pressing a key that is meant for something else.
		if (p.focus) (card.current!.querySelector<HTMLElement>("input, textarea, select") ?? card.current!).focus();
	}, []);
	return (
		<section class="question" ref={card} tabIndex={-1} aria-label={"Question of " + line(p.server, 60)}>
			<p class="from">
				<strong>{visible(p.server)}</strong> {method === "sampling/createMessage" ? "wants a message of a model" : "asks"} · <span class="dim">{line(p.about, 80)}</span>
			</p>
			{method === "elicitation/create" && params.mode === "url" ? (
				<Visit {...p} />
			) : method === "elicitation/create" ? (
				<Fill {...p} />
			) : method === "sampling/createMessage" ? (
				<Write {...p} />
			) : (
				<>
					<p class="bad">This page cannot answer {visible(method)}.</p>
					<pre>{shown(params)}</pre>
					{p.refuse && <Button onPress={p.refuse}>End the call</Button>}
				</>
			)}
		</section>
	);
}

// Questions shows what servers ask in calls.
export const Questions = (p: { runs: Run[]; about?: string; focus?: boolean }) => (
	<>{p.runs.flatMap((r) => r.queries.map((q, i) => <QuestionCard key={q.n} server={r.server} about={(p.about ?? "") + r.name} asked={q.asked} answer={q.answer} refuse={q.refuse} focus={p.focus && i === 0} />))}</>
);

interface Card {
	asked: Asked;
	answer: (result: Obj) => void;
	refuse?: () => void;
	focus?: boolean; // it takes the focus: the person waits for it
}

const Refusals = (p: Card) => (
	<>
		<Button onPress={() => p.answer({ action: "decline" })}>Decline</Button>
		<Button onPress={() => p.answer({ action: "cancel" })} title="Close without a decision">
			Dismiss
		</Button>
	</>
);

// Fill asks for a form.
function Fill(p: Card) {
	const { params } = p.asked;
	const { form, first, error } = useForm(params.requestedSchema);
	const [typed, setTyped] = useState<any>();
	const value = typed === undefined ? first : typed;
	const [faults, setFaults] = useState<Fault[]>([]);
	const card = useRef<HTMLDivElement>(null);
	useLayoutEffect(() => {
		if (form && p.focus) card.current?.querySelector<HTMLElement>("input, textarea, select")?.focus();
	}, [form]);
	const accept = async (anyway: boolean) => {
		if (!anyway) {
			const got = await check(params.requestedSchema, value ?? {}, true).catch(() => ({ faults: [] as Fault[] }));
			setFaults(got.faults);
			if (got.faults.length > 0) {
				focusFault(card.current);
				return;
			}
		}
		p.answer({ action: "accept", content: value ?? {} });
	};
	return (
		<div
			ref={card}
			onKeyDown={onCtrlEnter(() => accept(false))}
		>
			<p class="message">{visible(params.message)}</p>
			{error && <Failed>{error}</Failed>}
			{form && <FormFields form={form} schema={params.requestedSchema} value={value} set={setTyped} faults={faults} />}
			<div class="row">
				<Button kind="main" onPress={() => accept(false)}>
					Accept
				</Button>
				{faults.length > 0 && <Button onPress={() => accept(true)}>Accept anyway</Button>}
				<Refusals {...p} />
			</div>
			<p class="dim">Do not give passwords or keys to a form: servers must ask for them on a page of their own.</p>
		</div>
	);
}

// Visit asks for consent to open a page.
function Visit(p: Card) {
	const { params } = p.asked;
	const url = webAddress(String(params.url));
	const [opened, setOpened] = useState(false);
	return (
		<>
			<p class="message">{visible(params.message)}</p>
			{url ? <Address url={url} /> : <Failed>The address is not one of http or https: {visible(params.url)}</Failed>}
			<div class="row">
				{url && (
					<Button
						kind="main"
						onPress={() => {
							open(url.href, "_blank", "noopener,noreferrer");
							setOpened(true);
							p.answer({ action: "accept" });
						}}
					>
						{opened ? "Opened" : "Open " + url.host + " and accept"}
					</Button>
				)}
				<Refusals {...p} />
			</div>
		</>
	);
}

// Write asks for a message that a model would write. A person writes it.
function Write(p: Card) {
	const { params } = p.asked;
	const [text, setText] = useState("");
	const list = (v: unknown): any[] => (Array.isArray(v) ? v : v === undefined ? [] : [v]);
	const hints = list(params.modelPreferences?.hints).map((h) => line(h?.name, 60));
	return (
		<>
			{params.systemPrompt !== undefined && (
				<div class="said">
					<span class="dim">system</span>
					<Markdown text={String(params.systemPrompt)} />
				</div>
			)}
			{list(params.messages).map((m) => (
				<div class="said">
					<span class="dim">{line(m?.role, 20)}</span>
					{list(m?.content).map((c) => (
						<Block block={c} />
					))}
				</div>
			))}
			<p class="dim">
				at most {visible(params.maxTokens)} tokens{hints.length > 0 && " · models such as " + hints.join(", ")}
				{params.temperature !== undefined && " · temperature " + visible(params.temperature)}
			</p>
			<div class="field">
				<label>
					Answer as the model
					<textarea rows={3} value={text} onInput={(e) => setText(e.currentTarget.value)} />
				</label>
			</div>
			<div class="row">
				<Button kind="main" disabled={text === ""} onPress={() => p.answer({ role: "assistant", content: { type: "text", text }, model: "a person", stopReason: "endTurn" })}>
					Send
				</Button>
				{p.refuse && (
					<Button onPress={p.refuse}>
						Decline and end the call
					</Button>
				)}
			</div>
		</>
	);
}
