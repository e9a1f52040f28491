// A table that becomes a list of cards where it is narrow. The roles are written down, since a browser forgets them when
// the parts of a table are laid out otherwise.
import type { ComponentChildren } from "preact";
import { Visible } from "./visible";

export interface Row {
	key: string;
	cells: ComponentChildren[]; // the first is the name of the row
	below?: ComponentChildren; // over the whole width
}

// Table shows rows. Columns whose name begins with # have numbers.
export function Table(p: { label: string; columns: string[]; rows: Row[]; empty?: string }) {
	const names = p.columns.map((c) => c.replace(/^#/, ""));
	const kind = (i: number): string => (p.columns[i]!.startsWith("#") ? "number" : "");
	if (p.rows.length === 0) return <p class="dim">{p.empty ?? "Nothing yet."}</p>;
	return (
		<table class="cards" role="table" aria-label={p.label}>
			<thead role="rowgroup">
				<tr role="row">
					{names.map((n, i) => (
						<th key={n} scope="col" role="columnheader" class={kind(i)}>
							{n}
						</th>
					))}
				</tr>
			</thead>
			<tbody role="rowgroup">
				{p.rows.map((r) => [
					<tr key={r.key} role="row">
						{r.cells.map((c, i) =>
							i === 0 ? (
								<th key={i} scope="row" role="rowheader">
									{c}
								</th>
							) : (
								<td key={i} role="cell" class={kind(i)} data-name={names[i]}>
									{c}
								</td>
							),
						)}
					</tr>,
					r.below ? (
						<tr key={r.key + " below"} role="row" class="below">
							<td role="cell" colSpan={names.length}>
								{r.below}
							</td>
						</tr>
					) : null,
				])}
			</tbody>
		</table>
	);
}

// Answer is an answer of the program as a table: of /ui/judge and /ui/replay. A cell that begins with ! stands out.
export interface Answer {
	summary: string;
	notes?: string[];
	columns: string[];
	rows: string[][];
}

// Told shows an answer.
export function Told({ of, told: v }: { of: string; told: Answer | undefined }) {
	return (
		<>
			<div role="status">
				{[v?.summary ?? "", ...(v?.notes ?? [])].map((n) => (
					<p key={n}>
						<Visible text={n} />
					</p>
				))}
			</div>
			{v && v.rows.length > 0 && <Table label={of} columns={v.columns} rows={v.rows.map((r, i) => ({ key: "" + i, cells: r.map((c) => <span class={c[0] === "!" ? "bad" : ""}><Visible text={c} /></span>) }))} />}
		</>
	);
}
