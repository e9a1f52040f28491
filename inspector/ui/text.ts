// Text of servers, made safe to look at.

// unseen are characters that hide, or change the order of what is shown: controls, bidirectional marks, zero widths,
// tags, and halves of pairs.
const unseen = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\p{Cs}/gu;

// visible returns a text with such characters shown as what they are.
export function visible(text: unknown): string {
	const s = typeof text === "string" ? text : text === undefined || text === null ? "" : String(text);
	return s.replace(/\r\n/g, "\n").replace(unseen, (c) => {
		const code = c.codePointAt(0)!;
		if (code < 0x20) return String.fromCharCode(0x2400 + code);
		if (code === 0x7f) return "\u2421";
		return "‹U+" + code.toString(16).toUpperCase().padStart(4, "0") + "›";
	});
}

// line is visible text in one line, cut when it is long.
export function line(text: unknown, most = 200): string {
	const s = visible(text).replace(/\s+/g, " ");
	return s.length > most ? s.slice(0, most) + "…" : s;
}

// shown returns a value as JSON for people, with characters that hide made visible.
export const shown = (v: unknown): string => visible(JSON.stringify(v, null, 2) ?? "");

// bytesOf decodes base64; undefined: it is not.
export function bytesOf(base64: unknown): Uint8Array<ArrayBuffer> | undefined {
	try {
		const text = atob(String(base64));
		const out = new Uint8Array(text.length);
		for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
		return out;
	} catch {
		return undefined;
	}
}

// webAddress returns the URL if it is one of http or https.
export function webAddress(text: string): URL | undefined {
	try {
		const url = new URL(text);
		return url.protocol === "http:" || url.protocol === "https:" ? url : undefined;
	} catch {
		return undefined;
	}
}
