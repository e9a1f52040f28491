// A text field with the completions that a server offers.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Star } from "./form";
import { client, type Obj } from "./mcp";
import { line, visible } from "./text";

// filled returns the arguments that have a value, without one of them.
export const filled = (all: Record<string, string>, but?: string): Record<string, string> => Object.fromEntries(Object.entries(all).filter(([k, v]) => k !== but && v !== ""));

// Combobox completes an argument of a prompt or a variable of a template. After the first answer without the capability
// it is a plain field.
export function Combobox(p: { server: string; about: Obj; name: string; label: string; value: string; set: (v: string) => void; all: Record<string, string>; required?: boolean; description?: string }) {
	const id = useId();
	const [options, setOptions] = useState<string[]>([]);
	const [open, setOpen] = useState(false);
	const [at, setAt] = useState(-1);
	const stop = useRef<AbortController>(undefined);
	const timer = useRef<number>(undefined);
	const ask = (value: string) => {
		stop.current?.abort();
		clearTimeout(timer.current);
		const own = (stop.current = new AbortController());
		timer.current = setTimeout(() => {
			client(p.server)
				.complete(p.about, p.name, value, filled(p.all, p.name), own.signal)
				.then(
					(values) => {
						if (own.signal.aborted) return;
						setOptions(values.map(String));
						setAt(-1);
						setOpen(values.length > 0);
					},
					() => own.signal.aborted || setOptions([]),
				);
		}, 120) as unknown as number;
	};
	const close = () => {
		stop.current?.abort();
		clearTimeout(timer.current);
		setOpen(false);
		setAt(-1);
	};
	useEffect(() => close, []);
	const choose = (v: string) => {
		p.set(v);
		close();
	};
	useEffect(() => {
		if (open && at >= 0) document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: "nearest" });
	}, [at]);
	return (
		<div class="field">
			<label for={id}>
				{line(p.label, 100)}
				{p.required && <Star />}
			</label>
			<div class="combobox">
				<input
					id={id}
					role="combobox"
					aria-expanded={open}
					aria-controls={id + "-list"}
					aria-autocomplete="list"
					aria-activedescendant={open && at >= 0 ? `${id}-${at}` : undefined}
					aria-describedby={id + "-about"}
					aria-required={p.required || undefined}
					autocomplete="off"
					spellcheck={false}
					value={p.value}
					onInput={(e) => {
						p.set(e.currentTarget.value);
						ask(e.currentTarget.value);
					}}
					onBlur={close}
					onKeyDown={(e) => {
						if (e.key === "ArrowDown" && !open) {
							e.preventDefault();
							ask(p.value);
						} else if (open && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
							e.preventDefault();
							setAt(e.key === "ArrowDown" ? (at + 1) % options.length : (at <= 0 ? options.length : at) - 1);
						} else if (open && at >= 0 && e.key === "Enter" && !e.ctrlKey && !e.metaKey) {
							e.preventDefault();
							choose(options[at]!);
						} else if (open && e.key === "Escape") {
							e.preventDefault();
							close();
						}
					}}
				/>
				<ul id={id + "-list"} role="listbox" aria-label={"Completions of " + line(p.label, 60)} hidden={!open}>
					{options.map((o, i) => (
						<li key={o} id={`${id}-${i}`} role="option" aria-selected={i === at} onMouseDown={(e) => e.preventDefault()} onClick={() => choose(o)}>
							{line(o, 200)}
						</li>
					))}
				</ul>
			</div>
			<div class="about" id={id + "-about"}>
				{p.description && visible(p.description)}
			</div>
		</div>
	);
}
