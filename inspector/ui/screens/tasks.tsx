// The tasks that calls of this page became.
import { useEffect, useState } from "preact/hooks";
import { ago, Button, Link } from "../parts";
import { Questions } from "../questions";
import { ProgressView, RunView, Status } from "../result";
import { resume, tasks, type Run } from "../runs";
import { join, use } from "../store";
import { Table } from "../table";
import { line, visible } from "../text";
import { useTick } from "../visible";

// left tells how long a task is kept.
function left(run: Run, now: number): string {
	const { ttlMs, createdAt } = run.task!;
	if (ttlMs === null || ttlMs === undefined) return "kept";
	const s = Math.round((Date.parse(createdAt) + ttlMs - now) / 1000);
	return Number.isNaN(s) ? "–" : s <= 0 ? "over" : s < 120 ? s + " s" : Math.round(s / 60) + " min";
}

export function Tasks() {
	const list = use(tasks);
	const now = useTick(1000);
	const [shown, setShown] = useState<number>();
	useEffect(resume, []);
	const run = list.find((r) => r.n === shown);
	return (
		<>
			<h1>Tasks</h1>
			<Questions runs={list} />
			<Table
				label="Tasks"
				empty="No call of this page has become a task."
				columns={["tool", "server", "state", "age", "kept for", "id", "actions"]}
				rows={list.map((r) => ({
					key: String(r.n),
					cells: [
						<>
							<Link to={join("s", r.server, "tools", r.name)}>{line(r.name, 80)}</Link>
							{r.restored && <span class="dim"> from before the page was loaded again</span>}
						</>,
						visible(r.server),
						<>
							<Status run={r} />
							<ProgressView run={r} />
						</>,
						ago(r.task!.createdAt, now),
						left(r, now),
						<code>{line(r.task!.taskId, 40)}</code>,
						r.status === "open" ? (
							<Button label={"cancel the task of " + line(r.name, 60)} onPress={r.cancel}>
								cancel
							</Button>
						) : (
							<Button label={"result of " + line(r.name, 60)} onPress={() => setShown(r.n === shown ? undefined : r.n)}>
								result
							</Button>
						),
					],
				}))}
			/>
			{run && (
				<section class="result" aria-label={"Result of " + line(run.name, 60)}>
					<RunView run={run} />
				</section>
			)}
		</>
	);
}
