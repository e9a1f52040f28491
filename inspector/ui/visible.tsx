// Text of servers and people, with control and bidi characters visible, as the program shows it on a terminal.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

// hidden are characters that change how others look, or cannot be seen; a line break and a tab are shown as they are.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// visible replaces the hidden characters of a text by their names, for attributes.
export const visible = (text: string): string => text.replace(hidden, name);

const name = (c: string): string => "\\u{" + c.codePointAt(0)!.toString(16) + "}";

// Visible shows a text; hidden characters have a border.
export function Visible(p: { text: string }) {
	const parts: ComponentChildren[] = [];
	let at = 0;
	for (const m of p.text.matchAll(hidden)) {
		parts.push(p.text.slice(at, m.index), <span class="cp">{name(m[0])}</span>);
		at = m.index + m[0].length;
	}
	return at === 0 ? <bdi>{p.text}</bdi> : <bdi>{[...parts, p.text.slice(at)]}</bdi>;
}

// useTick draws a component again after each time while the page is visible, and returns the time.
export function useTick(every: number): number {
	const [now, set] = useState(Date.now());
	useEffect(() => {
		const t = setInterval(() => document.hidden || set(Date.now()), every);
		return () => clearInterval(t);
	}, [every]);
	return now;
}
