// Markdown of servers as elements: headings, paragraphs, lists, quotes, code, tables, emphasis and links. HTML is text,
// pictures are links, and a link asks before it leads away.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button, Copy } from "./parts";
import { visible, webAddress } from "./text";

const maxLength = 200_000; // characters that are read as Markdown; longer text is shown as it is
const maxDepth = 6; // of quotes, lists and emphasis

// Markdown shows a text.
export function Markdown(p: { text: string }) {
	return useMemo(() => {
		const text = visible(p.text);
		return text.length > maxLength ? <pre>{text}</pre> : <div class="markdown">{blocks(text.split("\n"), 0)}</div>;
	}, [p.text]);
}

const fence = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const item = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const heading = /^ {0,3}(#{1,6})\s+(.*)$/;
const rule = /^ {0,3}([-*_])( *\1){2,} *$/;
const tableRule = /^[ |:-]+$/;

const cells = (row: string): string[] =>
	row
		.trim()
		.replace(/^\||\|$/g, "")
		.split("|")
		.map((c) => c.trim());

// blocks returns the elements of lines.
function blocks(lines: string[], depth: number): JSX.Element[] {
	const out: JSX.Element[] = [];
	if (depth > maxDepth) return [<pre>{lines.join("\n")}</pre>];
	for (let i = 0; i < lines.length; ) {
		const line = lines[i]!;
		const begin = i;
		let m: RegExpExecArray | null;
		if (line.trim() === "") {
			i++;
		} else if ((m = fence.exec(line))) {
			const end = m[1]!;
			for (i++; i < lines.length && !lines[i]!.trimStart().startsWith(end); ) i++;
			out.push(<pre class="code">{lines.slice(begin + 1, i).join("\n")}</pre>);
			i++;
		} else if ((m = heading.exec(line))) {
			// It is not a heading of the page: its levels are those of the server.
			out.push(<p class={"heading h" + m[1]!.length}>{spans(m[2]!.replace(/ #+$/, ""), 0)}</p>);
			i++;
		} else if (rule.test(line)) {
			out.push(<hr />);
			i++;
		} else if (/^ {0,3}>/.test(line)) {
			while (i < lines.length && /^ {0,3}>/.test(lines[i]!)) i++;
			const inner = lines.slice(begin, i).map((l) => l.replace(/^ {0,3}> ?/, ""));
			out.push(<blockquote>{blocks(inner, depth + 1)}</blockquote>);
		} else if (item.test(line)) {
			const [list, next] = listAt(lines, i, depth);
			out.push(list);
			i = next;
		} else if (line.includes("|") && i + 1 < lines.length && lines[i + 1]!.includes("-") && tableRule.test(lines[i + 1]!)) {
			for (i += 2; i < lines.length && lines[i]!.includes("|"); ) i++;
			const head = cells(line);
			out.push(
				<div class="scroll" tabIndex={0} role="region" aria-label="Table">
					<table>
						<thead>
							<tr>
								{head.map((c) => (
									<th scope="col">{spans(c, 0)}</th>
								))}
							</tr>
						</thead>
						<tbody>
							{lines.slice(begin + 2, i).map((l) => {
								const row = cells(l);
								return (
									<tr>
										{head.map((_, n) => (
											<td>{spans(row[n] ?? "", 0)}</td>
										))}
									</tr>
								);
							})}
						</tbody>
					</table>
				</div>,
			);
		} else {
			const starts = (l: string) => l.trim() === "" || fence.test(l) || heading.test(l) || /^ {0,3}>/.test(l) || item.test(l);
			for (i++; i < lines.length && !starts(lines[i]!); ) i++;
			// Servers that do not think of Markdown end lines where they mean it.
			const text = lines.slice(begin, i);
			out.push(<p>{text.flatMap((l, n) => (n > 0 ? [<br />, ...spans(l, 0)] : spans(l, 0)))}</p>);
		}
	}
	return out;
}

// listAt returns the list that begins at a line, and the line after it.
function listAt(lines: string[], at: number, depth: number): [JSX.Element, number] {
	const first = item.exec(lines[at]!)!;
	const indent = first[1]!.length;
	const ordered = /\d/.test(first[2]!);
	const items: string[][] = [];
	let i = at;
	for (; i < lines.length; i++) {
		const line = lines[i]!;
		const m = item.exec(line);
		if (m && m[1]!.length <= indent + 1) {
			if (m[1]!.length < indent || /\d/.test(m[2]!) !== ordered) break;
			items.push([m[3]!]);
		} else if (line.trim() === "") {
			const next = lines[i + 1];
			if (next === undefined || (!item.test(next) && !/^ {2,}\S/.test(next))) break;
			items.at(-1)!.push("");
		} else if (m || /^ {2,}\S/.test(line)) {
			items.at(-1)!.push(line.slice(Math.min(indent + 2, line.length - line.trimStart().length)));
		} else if (items.at(-1)!.at(-1) !== "") {
			items.at(-1)!.push(line);
		} else break;
	}
	const inside = items.map((l) => <li>{l.length === 1 ? spans(l[0]!, 0) : blocks(l, depth + 1)}</li>);
	return [ordered ? <ol start={parseInt(first[2]!)}>{inside}</ol> : <ul>{inside}</ul>, i];
}

const span = /(?<!`)(`+)(?!`)([^`]|[^`][^]{0,1000}?[^`])\1(?!`)|!?\[([^[\]]{0,500})\]\(\s*<?([^\s<>()]{1,2000}(?:\([^\s()]{0,200}\)[^\s<>()]{0,2000})?)>?(?:\s+"[^"]{0,300}")?\s*\)|(\*\*|__)(?=\S)([^]{0,1000}?\S)\5|(?<![\w*])([*_])(?=\S)([^*_]{0,1000}[^\s*_])\7(?![\w*])|\bhttps?:\/\/[^\s<>"'`)\]]{1,2000}|\\([!-/:-@[-`{-~])/g;

// spans returns the elements of a line.
function spans(text: string, depth: number): ComponentChildren[] {
	if (depth > maxDepth || text.length > 5000) return [text];
	const out: ComponentChildren[] = [];
	let last = 0;
	for (const m of text.matchAll(span)) {
		out.push(text.slice(last, m.index));
		last = m.index + m[0].length;
		if (m[2] !== undefined) out.push(<code>{m[2].trim() || m[2]}</code>);
		else if (m[4] !== undefined) out.push(<Outside url={m[4]}>{m[3] || m[4]}</Outside>);
		else if (m[6] !== undefined) out.push(<strong>{spans(m[6], depth + 1)}</strong>);
		else if (m[8] !== undefined) out.push(<em>{spans(m[8], depth + 1)}</em>);
		else if (m[9] !== undefined) out.push(m[9]);
		else {
			const end = /[.,;:!?]+$/.exec(m[0])?.[0] ?? "";
			const url = m[0].slice(0, m[0].length - end.length);
			out.push(<Outside url={url}>{url}</Outside>, end);
		}
	}
	out.push(text.slice(last));
	return out;
}

// Outside is a link that leads out of the page, after a confirmation that shows where to. Addresses other than of http and
// https are text.
export function Outside(p: { url: string; children: ComponentChildren }) {
	const [asks, setAsks] = useState(false);
	const url = webAddress(p.url);
	if (!url) {
		return (
			<>
				{p.children} <span class="dim">(not a web address: {visible(p.url.slice(0, 200))})</span>
			</>
		);
	}
	return (
		<>
			<button type="button" class="outside" onClick={() => setAsks(true)} title={visible(url.href)}>
				{p.children}
				<span aria-hidden="true"> ↗</span>
			</button>
			{asks && <Leave url={url} onEnd={() => setAsks(false)} />}
		</>
	);
}

// Address shows a URL with its host in bold, and a warning about names that may look like others.
export function Address(p: { url: URL }) {
	const { protocol, username, password, host, hostname, pathname, search, hash } = p.url;
	const user = username === "" ? "" : username + (password === "" ? "" : ":" + password) + "@";
	return (
		<>
			<p class="address">
				<code>
					{protocol}//{user}
					<strong>{host}</strong>
					{pathname + search + hash}
				</code>
			</p>
			{hostname.split(".").some((l) => l.startsWith("xn--")) && <p class="warn">The name has letters of other alphabets, which can look like those of a name that you know.</p>}
			{user !== "" && <p class="warn">The part before @ is not the site. The site is {host}.</p>}
		</>
	);
}

// Leave asks whether to open a page of elsewhere.
function Leave(p: { url: URL; onEnd: () => void }) {
	const dialog = useRef<HTMLDialogElement>(null);
	const close = () => dialog.current!.close(); // gives the focus back to the link
	useEffect(() => dialog.current?.showModal(), []);
	return (
		<dialog ref={dialog} aria-label={"Open a page of " + p.url.host} onClose={p.onEnd}>
			<p>
				Open a page of <strong>{p.url.host}</strong> in a new tab?
			</p>
			<Address url={p.url} />
			<div class="row">
				<Button
					kind="main"
					onPress={() => {
						open(p.url.href, "_blank", "noopener,noreferrer");
						close();
					}}
				>
					Open {p.url.host}
				</Button>
				<Copy text={() => p.url.href}>Copy the address</Copy>
				<Button onPress={close}>Stay here</Button>
			</div>
		</dialog>
	);
}
