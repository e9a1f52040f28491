// The tasks that calls of this page became.
import { useEffect, useState } from "preact/hooks";
import { ago, Button, Link } from "../parts";
import { QuestionCard } from "../questions";
import { ErrorView, ProgressView, ResultView, Status } from "../result";
import { tasks, type Run } from "../runs";
import { join, use } from "../store";
import { line, visible } from "../text";

// left tells how long a task is kept.
function left(run: Run, now: number): string {
	const { ttlMs, createdAt } = run.task!;
	if (ttlMs === null || ttlMs === undefined) return "kept";
	const s = Math.round((Date.parse(createdAt) + ttlMs - now) / 1000);
	return Number.isNaN(s) ? "–" : s <= 0 ? "over" : s < 120 ? s + " s" : Math.round(s / 60) + " min";
}

export function Tasks() {
	const list = use(tasks);
	const [now, setNow] = useState(Date.now());
	const [shown, setShown] = useState<number>();
	useEffect(() => {
		const timer = setInterval(() => setNow(Date.now()), 1000);
		return () => clearInterval(timer);
	}, []);
	const run = list.find((r) => r.n === shown);
	return (
		<>
			<h1>Tasks</h1>
			{list.length === 0 && <p class="dim">No call of this page has become a task.</p>}
			{list.flatMap((r) => r.queries.map((q, i) => <QuestionCard key={r.n + "." + i} server={r.server} about={r.name} asked={q.asked} answer={q.answer} refuse={q.refuse} />))}
			{list.length > 0 && (
				<div class="scroll" tabIndex={0} role="region" aria-label="Tasks">
					<table>
						<thead>
							<tr>
								<th scope="col">tool</th>
								<th scope="col">server</th>
								<th scope="col">state</th>
								<th scope="col">age</th>
								<th scope="col">kept for</th>
								<th scope="col">id</th>
								<th scope="col">actions</th>
							</tr>
						</thead>
						<tbody>
							{list.map((r) => (
								<tr key={r.n}>
									<td>
										<Link to={join("s", r.server, "tools", r.name)}>{line(r.name, 80)}</Link>
										{r.restored && <span class="dim"> from before the page was loaded again</span>}
									</td>
									<td>{visible(r.server)}</td>
									<td>
										<Status run={r} />
										<ProgressView run={r} />
									</td>
									<td>{ago(r.task!.createdAt, now)}</td>
									<td>{left(r, now)}</td>
									<td>
										<code>{line(r.task!.taskId, 40)}</code>
									</td>
									<td>
										{r.status === "open" ? (
											<Button label={"Cancel the task of " + line(r.name, 60)} onPress={r.cancel}>
												cancel
											</Button>
										) : (
											<Button label={"Result of " + line(r.name, 60)} onPress={() => setShown(r.n === shown ? undefined : r.n)}>
												result
											</Button>
										)}
									</td>
								</tr>
							))}
						</tbody>
					</table>
				</div>
			)}
			{run && (
				<section class="result" aria-label={"Result of " + line(run.name, 60)}>
					<h2>
						{line(run.name, 80)} <Status run={run} />
					</h2>
					{run.error ? <ErrorView error={run.error} status={run.status} /> : <ResultView run={run} />}
				</section>
			)}
		</>
	);
}
