// Forms made of schemas. The program makes the model of a form and checks values (/ui/form, /ui/check); this file draws it.
// A value that is undefined is not set.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { post } from "./api";
import { isExact, isObject, parse, type Obj } from "./mcp";
import { Button, Failed, useLoad } from "./parts";
import { line, visible } from "./text";
import type { Fault, Field, Form } from "./types";

// loadForm returns the form of a schema.
export const loadForm = (schema: unknown, signal?: AbortSignal, at: string[] = []): Promise<Form> => post<Form>("/ui/form", { schema, at }, signal);

// Checked is the answer of /ui/check.
export interface Checked {
	faults: Fault[];
	more?: number;
	error?: string;
}

// check returns the faults of a value.
export const check = (schema: unknown, value: unknown, form = false, signal?: AbortSignal): Promise<Checked> => post<Checked>("/ui/check", { schema, value, form }, signal);

// initial returns the value that a field has at first; undefined: it is not set.
function initial(f: Field): any {
	if (f.default !== undefined) return f.default;
	if (!f.required) return undefined;
	return begun(f);
}

// fresh returns the value of a form at first.
export const fresh = (f: Form): any => initial({ ...f, required: true }) ?? {};

// begun returns the value that a field has when the person wants to fill it in.
export function begun(f: Field): any {
	if (f.default !== undefined) return f.default;
	switch (f.kind) {
		case "object": {
			const out: Obj = {};
			for (const part of f.fields ?? []) {
				const v = initial(part);
				if (v !== undefined) put(out, part.name, v);
			}
			return out;
		}
		case "list":
			return (f.fields ?? []).map((part) => begun({ ...part, required: true }) ?? null);
		case "multi-enum":
			return [];
		case "enum":
			return f.options?.length === 1 ? f.options[0]!.value : undefined;
		case "choice":
			return f.alternatives?.[0] ? begun({ ...f.alternatives[0], required: true }) : undefined;
	}
	return undefined;
}

// put sets a member, also one called __proto__.
function put(o: Obj, name: string, value: unknown): void {
	Object.defineProperty(o, name, { value, enumerable: true, configurable: true, writable: true });
}

function changed(o: unknown, name: string, value: unknown): Obj {
	const out: Obj = {};
	const old = isObject(o) ? o : {};
	for (const [k, v] of Object.entries(old)) if (k !== name) put(out, k, v);
		else if (value !== undefined) put(out, k, value);
	if (value !== undefined && !Object.hasOwn(old, name)) put(out, name, value);
	return out;
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

// step is a name as a part of a JSON pointer.
const step = (name: string | number): string => "/" + String(name).replace(/~/g, "~0").replace(/\//g, "~1");

// Context is what all fields of a form share.
interface Context {
	schema: unknown;
	faults: Fault[];
}

interface Shown {
	field: Field;
	path: string; // JSON pointer of the value
	value: any;
	set: (v: any) => void;
	of: Context;
	label?: string;
	bare?: boolean; // without a frame: the first level
}

const title = (f: Field): string => line(f.title || f.name, 100) || "value";

const words: Record<string, string> = { "multi-enum": "choices", enum: "choice", other: "JSON", list: "list" };

// hint tells which values a field takes.
function hint(f: Field): string {
	const parts = [f.format || words[f.kind] || f.kind];
	if (f.bounds) parts.push(f.bounds);
	if (f.pattern) parts.push("like " + line(f.pattern, 80));
	if (f.default !== undefined) parts.push("default " + line(JSON.stringify(f.default), 60));
	return parts.join(", ");
}

// faultsAt returns the faults of a value; with below, also those of its parts.
const faultsAt = (of: Context, path: string, below: boolean): Fault[] => of.faults.filter((f) => f.path === path || (below && f.path.startsWith(path + "/")));

function Faults(p: { list: Fault[]; id: string; from: string }) {
	if (p.list.length === 0) return null;
	return (
		<ul class="faults" id={p.id}>
			{p.list.map((f) => (
				<li>
					<span aria-hidden="true">✖ </span>
					{f.path !== p.from && <code>{line(f.path.slice(p.from.length), 80)} </code>}
					{visible(f.text)}
				</li>
			))}
		</ul>
	);
}

// FormFields draws the fields of a form.
export function FormFields(p: { form: Form; schema: unknown; value: any; set: (v: any) => void; faults: Fault[] }) {
	const of = { schema: p.schema, faults: p.faults };
	const top = faultsAt(of, "", false);
	return (
		<div class="fields">
			{p.form.error && <p class="warn">The values are not checked: {visible(p.form.error)}</p>}
			<Faults list={top} id="" from="" />
			<Part field={p.form} path="" value={p.value} set={p.set} of={of} bare />
			{p.form.kind === "object" && !p.form.fields?.length && !p.form.rest && !p.form.more && <p class="dim">No arguments.</p>}
		</div>
	);
}

// Part draws one field.
function Part(p: Shown) {
	const { field } = p;
	const [opened, setOpened] = useState<Field>();
	if (field.more && !opened) return <Unopened {...p} open={setOpened} />;
	const shown = opened ? { ...opened, name: field.name, title: field.title, description: field.description, required: field.required } : field;
	const all = { ...p, field: shown };
	switch (shown.kind) {
		case "object":
			return <Members {...all} />;
		case "list":
			return <Elements {...all} />;
		case "choice":
			return <Choice {...all} />;
		case "multi-enum":
			return <Several {...all} />;
		default:
			return <Simple {...all} />;
	}
}

// Unopened is a field whose parts the program has not sent: a schema may contain itself.
function Unopened(p: Shown & { open: (f: Field) => void }) {
	const [why, setWhy] = useState("");
	const load = async () => {
		try {
			p.open(await loadForm(p.of.schema, undefined, p.field.more));
		} catch (err) {
			setWhy((err as Error).message);
		}
	};
	useEffect(() => {
		if (p.value !== undefined) void load();
	}, []);
	return (
		<Frame {...p}>
			<Button onPress={load}>Open {p.label ?? title(p.field)}</Button>
			{why && <Failed>{why}</Failed>}
		</Frame>
	);
}

// Frame is the border, the name and the description of a field with parts.
function Frame(p: Shown & { children: ComponentChildren; buttons?: ComponentChildren }) {
	const id = useId();
	const faults = p.bare ? [] : faultsAt(p.of, p.path, false);
	if (p.bare) return <>{p.children}</>;
	return (
		<fieldset class="part" aria-describedby={id + "-about"}>
			<legend>
				{p.label ?? title(p.field)}
				{p.field.required && <Star />} <span class="dim hint">{hint(p.field)}</span>
			</legend>
			<div id={id + "-about"}>
				{p.field.description && <p class="about">{visible(p.field.description)}</p>}
				<Faults list={faults} id={id + "-faults"} from={p.path} />
			</div>
			{p.children}
			{p.buttons}
		</fieldset>
	);
}

// Star marks a field that is required.
export const Star = () => (
	<span class="star" title="required">
		<span aria-hidden="true"> *</span>
		<span class="sr"> required</span>
	</span>
);

// Absent is an optional field with parts that is not set.
function Absent(p: Shown & { add?: () => void }) {
	const faults = faultsAt(p.of, p.path, true);
	return (
		<div class="field absent">
			<Button
				onPress={() => {
					p.set(begun(p.field));
					p.add?.();
				}}
			>
				Add {p.label ?? title(p.field)}
			</Button>{" "}
			<span class="dim hint">
				{hint(p.field)}
				{p.field.required ? ", required" : ""}
			</span>
			{p.field.description && <p class="about">{visible(p.field.description)}</p>}
			<Faults list={faults} id="" from={p.path} />
		</div>
	);
}

const Unset = (p: Shown & { open?: boolean }) =>
	p.field.required || (p.value === undefined && !p.open) || p.bare ? null : (
		<Button kind="plain" label={"Unset " + (p.label ?? title(p.field))} onPress={() => p.set(undefined)}>
			unset
		</Button>
	);

// Members draws an object.
function Members(p: Shown) {
	const [name, setName] = useState("");
	const id = useId();
	if (p.value === undefined && !p.bare) return <Absent {...p} />;
	if (p.value !== undefined && !isObject(p.value)) return <Simple {...p} field={{ ...p.field, kind: "other" }} />;
	const value: Obj = p.value ?? {};
	const fields = p.field.fields ?? [];
	const others = Object.keys(value).filter((k) => !fields.some((f) => f.name === k));
	const rest: Field = p.field.rest ?? { name: "", kind: "other" };
	const get = (of: string) => (Object.hasOwn(value, of) ? value[of] : undefined);
	return (
		<Frame {...p} buttons={<Unset {...p} />}>
			{fields.map((f) => (
				<Part key={f.name} field={f} path={p.path + step(f.name)} value={get(f.name)} set={(v) => p.set(changed(value, f.name, v))} of={p.of} />
			))}
			{others.map((k) => (
				<div class="extra" key={"+" + k}>
					<Part field={{ ...rest, name: k, title: undefined, required: true }} path={p.path + step(k)} value={get(k)} set={(v) => p.set(changed(value, k, v === undefined ? null : v))} of={p.of} label={line(k, 80)} />
					<Button kind="plain" label={"Remove " + line(k, 80)} onPress={() => p.set(changed(value, k, undefined))}>
						remove
					</Button>
				</div>
			))}
			{p.field.rest && (
				<div class="row">
					<label for={id}>Another member</label>
					<input id={id} value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="name" size={12} />
					<Button
						disabled={Object.hasOwn(value, name) || fields.some((f) => f.name === name)}
						onPress={() => {
							p.set(changed(value, name, begun({ ...rest, required: true }) ?? ""));
							setName("");
						}}
						label={"Add the member " + name}
					>
						Add
					</Button>
				</div>
			)}
		</Frame>
	);
}

// Elements draws a list.
function Elements(p: Shown) {
	const box = useRef<HTMLDivElement>(null);
	if (p.value === undefined && !p.bare) return <Absent {...p} />;
	if (p.value !== undefined && !Array.isArray(p.value)) return <Simple {...p} field={{ ...p.field, kind: "other" }} />;
	const value: any[] = p.value ?? [];
	const name = p.label ?? title(p.field);
	const swap = (i: number, v: any) => p.set(value.map((old, n) => (n === i ? (v === undefined ? null : v) : old)));
	const at = (i: number): Field => p.field.fields?.[i] ?? p.field.element ?? { name: "", kind: "other" };
	const add = () => {
		p.set([...value, begun({ ...at(value.length), required: true }) ?? (at(value.length).kind === "string" ? "" : null)]);
		// The new field gets the focus.
		setTimeout(() => box.current?.lastElementChild?.querySelector<HTMLElement>("input, textarea, select, button")?.focus());
	};
	return (
		<Frame
			{...p}
			buttons={
				<div class="row">
					<Button onPress={add}>
						Add to {name}
					</Button>
					<Unset {...p} />
				</div>
			}
		>
			<div ref={box} class="elements">
				{value.map((v, i) => (
					<div class="extra" key={i}>
						<Part field={{ ...at(i), required: true }} path={p.path + step(i)} value={v ?? undefined} set={(to) => swap(i, to)} of={p.of} label={at(i).title && p.field.fields?.[i] ? title(at(i)) : `${name} ${i + 1}`} />
						<Button kind="plain" label={`Remove ${name} ${i + 1}`} onPress={() => p.set(value.filter((_, n) => n !== i))}>
							remove
						</Button>
					</div>
				))}
			</div>
		</Frame>
	);
}

// kindOf returns the kind of field that a value is for.
function accepts(f: Field, v: unknown): boolean {
	switch (f.kind) {
		case "string":
			return typeof v === "string";
		case "number":
		case "integer":
			return typeof v === "number" || isExact(v);
		case "boolean":
			return typeof v === "boolean";
		case "enum":
			return f.options?.some((o) => same(o.value, v)) ?? false;
		case "list":
		case "multi-enum":
			return Array.isArray(v);
		case "object":
			// Members with one possible value tell the alternatives apart.
			return isObject(v) && (f.fields ?? []).every((m) => (m.options?.length !== 1 || !Object.hasOwn(v, m.name) || same(m.options[0]!.value, v[m.name])) && (!m.required || Object.hasOwn(v, m.name)));
	}
	return true;
}

// label names an alternative of a choice.
function alternative(f: Field, i: number): string {
	const fixed = f.fields?.find((m) => m.options?.length === 1);
	return line(f.title || (fixed ? `${fixed.name}: ${fixed.options![0]!.title}` : (f.format || words[f.kind] || f.kind) + (f.fields?.length ? " of " + f.fields.map((m) => m.name).join(", ") : "")), 80) || `form ${i + 1}`;
}

// Choice draws a value that has one of several forms.
function Choice(p: Shown) {
	const id = useId();
	const list = p.field.alternatives ?? [];
	const [at, setAt] = useState(() => (p.value === undefined ? 0 : Math.max(0, list.findIndex((f) => accepts(f, p.value)))));
	const [open, setOpen] = useState(p.bare || p.field.required);
	if (p.value === undefined && !open) return <Absent {...p} add={() => setOpen(true)} />;
	const chosen = list[at] ?? list[0]!;
	return (
		<Frame {...p} buttons={<Unset {...p} set={() => (setOpen(false), p.set(undefined))} open />}>
			<div class="row">
				<label for={id}>Form of {p.bare ? "the arguments" : (p.label ?? title(p.field))}</label>
				<select
					id={id}
					value={String(at)}
					onChange={(e) => {
						const next = Number(e.currentTarget.value);
						setAt(next);
						const fresh = begun({ ...list[next]!, required: true });
						// What both have stays.
						p.set(isObject(fresh) && isObject(p.value) ? { ...Object.fromEntries(Object.entries(p.value).filter(([k]) => list[next]!.fields?.some((f) => f.name === k && !f.options))), ...fresh } : fresh);
					}}
				>
					{list.map((f, i) => (
						<option value={String(i)}>{alternative(f, i)}</option>
					))}
				</select>
			</div>
			<Part key={at} field={{ ...chosen, required: true, title: undefined, description: chosen.description === p.field.description ? undefined : chosen.description }} path={p.path} value={p.value} set={p.set} of={{ ...p.of, faults: p.of.faults.filter((f) => p.bare || f.path !== p.path) }} label={p.bare ? undefined : alternative(chosen, at)} bare={p.bare} />
		</Frame>
	);
}

// Several draws a list of choices.
function Several(p: Shown) {
	if (p.value === undefined) return <Absent {...p} />;
	const value: unknown[] = Array.isArray(p.value) ? p.value : [];
	return (
		<Frame {...p} buttons={<Unset {...p} />}>
			<div class="row">
				{p.field.options?.map((o) => (
					<label>
						<input
							type="checkbox"
							checked={value.some((v) => same(v, o.value))}
							onChange={(e) => p.set(e.currentTarget.checked ? [...value, o.value] : value.filter((v) => !same(v, o.value)))}
						/>{" "}
						{line(o.title, 100)}
					</label>
				))}
			</div>
		</Frame>
	);
}

// Simple draws a field with one control.
function Simple(p: Shown) {
	const id = useId();
	const { field } = p;
	const faults = faultsAt(p.of, p.path, true);
	const about = `${id}-about${faults.length > 0 ? ` ${id}-faults` : ""}`;
	const common = { id, "aria-describedby": about, "aria-invalid": faults.length > 0, "aria-required": field.required || undefined };
	return (
		<div class={"field" + (faults.length > 0 ? " wrong" : "")}>
			<label for={id}>
				{p.label ?? title(field)}
				{field.required && !p.label && <Star />}
			</label>
			{field.title && !p.label && <code class="dim">{line(field.name, 80)}</code>}
			<div class="control">
				<Control {...p} common={common} />
				<Unset {...p} />
			</div>
			<div class="about" id={id + "-about"}>
				{field.description && visible(field.description) + " "}
				<span class="dim hint">{hint(field)}</span>
			</div>
			<Faults list={faults} id={id + "-faults"} from={p.path} />
		</div>
	);
}

// exampleOf is what an empty field shows.
const exampleOf = (f: Field): string => (f.example === undefined ? "" : "for example " + line(typeof f.example === "string" ? f.example : JSON.stringify(f.example), 60));

function Control(p: Shown & { common: Obj }) {
	const { field, value, set, common } = p;
	const placeholder = exampleOf(field);
	const options = field.kind === "boolean" ? [true, false].map((v) => ({ value: v, title: String(v) })) : (field.options ?? []);
	if (field.kind === "boolean" || field.kind === "enum") {
		const at = options.findIndex((o) => same(o.value, value));
		return (
			<select {...common} value={value === undefined ? "" : String(at)} onChange={(e) => set(e.currentTarget.value === "" ? undefined : options[Number(e.currentTarget.value)]?.value)}>
				<option value="">{field.required ? "choose…" : "not set"}</option>
				{value !== undefined && at < 0 && <option value="-1">{line(JSON.stringify(value), 60)}</option>}
				{options.map((o, i) => (
					<option value={String(i)}>{line(o.title, 100)}</option>
				))}
			</select>
		);
	}
	if (field.kind === "string" && (value === undefined || typeof value === "string")) {
		const text = { ...common, placeholder, value: value ?? "", spellcheck: false };
		if (field.format === "password") return <input type="password" autocomplete="off" {...text} onInput={(e) => set(e.currentTarget.value)} />;
		return <textarea rows={1} class="string" {...text} onInput={(e) => set(e.currentTarget.value)} />;
	}
	return <Typed {...p} placeholder={placeholder} />;
}

const number = /^\s*-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?\s*$/;

// read turns what is typed into a value. What is neither a number nor JSON is sent as text, with the fault that it is.
function read(kind: string, text: string): any {
	if (text.trim() === "") return undefined;
	if (kind === "number" || kind === "integer") return number.test(text) ? parse(text) : text;
	try {
		return parse(text);
	} catch {
		return text;
	}
}

// Typed is a box for numbers and JSON: it keeps what is typed while that is not a value yet.
function Typed(p: Shown & { common: Obj; placeholder: string }) {
	const { kind } = p.field;
	const show = (v: unknown): string => (v === undefined ? "" : typeof v === "string" && (kind === "number" || kind === "integer") ? v : JSON.stringify(v, null, kind === "other" ? 1 : 0));
	const [text, setText] = useState(() => show(p.value));
	const current = same(read(kind, text), p.value) ? text : show(p.value);
	const props = {
		...p.common,
		placeholder: p.placeholder,
		spellcheck: false,
		value: current,
		onInput: (e: { currentTarget: { value: string } }) => {
			setText(e.currentTarget.value);
			p.set(read(kind, e.currentTarget.value));
		},
	};
	if (kind === "number" || kind === "integer") return <input inputMode={kind === "integer" ? "numeric" : "decimal"} autocomplete="off" {...props} />;
	const asText = typeof p.value === "string" && text.trim() !== "" && !text.trim().startsWith('"');
	return (
		<>
			<textarea rows={2} class="json" {...props} />
			{asText && <span class="warn">not JSON: sent as text</span>}
		</>
	);
}

// focusFault moves the focus to the first field with a fault, as soon as it is drawn.
export const focusFault = (of: HTMLElement | null): unknown => setTimeout(() => of?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus(), 50);

// Arguments is a form with its JSON, one at a time.
export function Arguments(p: { schema: unknown; form: Form; value: any; set: (v: any) => void; faults: Fault[]; asJSON: boolean; label: string; broken: (is: boolean) => void }) {
	const id = useId();
	const [text, setText] = useState("");
	const [why, setWhy] = useState("");
	useEffect(() => {
		if (!p.asJSON) return;
		setText(JSON.stringify(p.value ?? {}, null, 2));
		setWhy("");
		p.broken(false);
	}, [p.asJSON]);
	if (!p.asJSON && p.form.kind !== "other") return <FormFields form={p.form} schema={p.schema} value={p.value} set={p.set} faults={p.faults} />;
	return (
		<div class={"field" + (why || p.faults.length > 0 ? " wrong" : "")}>
			<label for={id}>{p.label} as JSON</label>
			<textarea
				id={id}
				class="json"
				rows={8}
				spellcheck={false}
				aria-invalid={why !== ""}
				aria-describedby={id + "-why"}
				value={text}
				onInput={(e) => {
					setText(e.currentTarget.value);
					try {
						p.set(parse(e.currentTarget.value));
						setWhy("");
						p.broken(false);
					} catch (err) {
						setWhy((err as Error).message);
						p.broken(true);
					}
				}}
			/>
			<div id={id + "-why"}>
				{why && <p class="bad">{visible(why)}</p>}
				<Faults list={p.faults} id="" from="" />
			</div>
		</div>
	);
}

// useForm returns the form of a schema, and its value as long as nothing is typed: it is drawn with that, so nothing that is
// typed fast comes before or behind it.
export function useForm(schema: unknown): { form?: Form; first?: any; error?: string } {
	const text = useMemo(() => JSON.stringify(schema), [schema]);
	const { value: form, error } = useLoad((signal) => loadForm(schema, signal), [text]);
	return { form, first: useMemo(() => form && fresh(form), [form]), error };
}
