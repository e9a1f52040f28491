// Questions of servers that wait for an answer: those of the calls of this page, and those of other callers.
import { ago, StateMark } from "../parts";
import type { Shown } from "../screens";
import { Table } from "../table";
import { useTick, Visible } from "../visible";

export function Inbox({ state }: Shown) {
	const now = useTick(1000);
	const waiting = state.servers.filter((s) => s.questionSince);
	return (
		<>
			<h1>Inbox</h1>
			<h2>Questions to other callers</h2>
			<Table
				label="Questions to other callers"
				columns={["Server", "State", "Has to answer", "For", "#Calls that wait"]}
				empty="No server waits for an answer of a caller."
				rows={waiting.map((s) => ({
					key: s.name,
					cells: [<Visible text={s.name} />, <StateMark state={s.state} />, <Visible text={s.asked || "a caller without a name"} />, ago(s.questionSince!, now), s.waiting ?? 0],
				}))}
			/>
			<p class="dim">These are questions of servers before 2026-07-28 that hold up other calls. Their callers answer them.</p>
		</>
	);
}
