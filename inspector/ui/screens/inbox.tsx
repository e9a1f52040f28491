// Questions of servers that wait for an answer: those of the calls of this page, and those of other callers, which the
// person may answer beside them.
import { useState } from "preact/hooks";
import { get, post } from "../api";
import type { Asked } from "../mcp";
import { ago, Failed, useLoad } from "../parts";
import { QuestionCard, Questions } from "../questions";
import { asking } from "../runs";
import type { Shown } from "../screens";
import { said, use } from "../store";
import { Table } from "../table";
import type { Question } from "../types";
import { useTick, Visible } from "../visible";

export function Inbox({ state }: Shown) {
	const now = useTick(5000);
	const mine = use(asking);
	const got = useLoad((stop) => get<{ questions: Question[] }>("/ui/inbox", stop), [state.open, now]);
	const [error, setError] = useState("");
	const others = got.value?.questions ?? [];
	const known = new Set(others.map((q) => q.server));
	// While a server asks here, its open question is that of the own call.
	const waiting = state.servers.filter((s) => s.questionSince && !known.has(s.name) && !mine.some((r) => r.server === s.name));
	const answer = async (q: Question, result: unknown) => {
		try {
			await post("/ui/answer/" + q.id, result);
			setError("");
			said.set("answered");
		} catch (err) {
			setError((err as Error).message);
		}
		got.again();
	};
	return (
		<>
			<h1>Inbox</h1>
			<h2>Questions to you</h2>
			{mine.length === 0 && <p class="dim">No call of this page waits for you.</p>}
			<Questions runs={mine} about="your call of " />
			<h2>Questions to other callers</h2>
			{error && <Failed>{error}</Failed>}
			{got.error && <Failed>{got.error}</Failed>}
			{others.length === 0 && waiting.length === 0 && <p class="dim">No server waits for another caller. Callers since 2026-07-28 get questions with the answer of a call, so they do not wait here.</p>}
			{others.map((q) => (
				<div key={q.id}>
					<p class="dim">
						<Visible text={q.principal && q.principal === state.principal ? `Yours: asked ${q.client || "another program"}` : `For ${q.principal || "a caller without a name"}${q.client ? `, who uses ${q.client}` : ""}`} />, for {ago(q.since, now)}. The first answer counts. The audit log has your name with yours.
					</p>
					<QuestionCard server={q.server || "a server"} about={"call of " + (q.about ?? "")} asked={{ method: q.method, params: q.params } as Asked} answer={(r) => answer(q, r)} />
				</div>
			))}
			{waiting.length > 0 && (
				<Table
					label="Questions that only their callers can answer"
					columns={["Server", "Has to answer", "For", "#Calls that wait"]}
					rows={waiting.map((s) => ({
						key: s.name,
						cells: [<Visible text={s.name} />, <Visible text={s.asked && s.asked === state.principal ? "you: on another page, or in another program of yours" : s.asked || (state.admin ? "a caller without a name" : "another caller")} />, ago(s.questionSince!, now), s.waiting ?? 0],
					}))}
				/>
			)}
		</>
	);
}
