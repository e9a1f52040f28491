// Text of servers, made safe to look at.
import { visible as named } from "./visible";

// visible returns a text with characters that hide, or change the order of what is shown, as their names.
export const visible = (text: unknown): string => named(text === undefined || text === null ? "" : String(text).replace(/\r\n/g, "\n"));

// line is visible text in one line, cut when it is long.
export function line(text: unknown, most = 200): string {
	const s = visible(text).replace(/\s+/g, " ");
	return s.length > most ? s.slice(0, most) + "…" : s;
}

// words splits a text at spaces and commas.
export const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

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
