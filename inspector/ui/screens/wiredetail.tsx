// The details of a row of the wire screen.
import type { Row } from "../types";

export function Details(p: { row: Row; close: () => void; show: (n: number) => void }) {
	return (
		<section class="wire-detail" aria-label={`Details of row ${p.row.n}`}>
			<button type="button" class="plain" onClick={p.close}>
				close
			</button>
		</section>
	);
}
