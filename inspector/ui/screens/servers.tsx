// The servers of a gateway, with their state.
import { Link, StateMark, ago } from "../parts";
import type { Shown } from "../screens";
import { join } from "../store";

export function Servers({ state }: Shown) {
	return (
		<>
			<h1>Servers</h1>
			<table>
				<thead>
					<tr>
						<th scope="col">Server</th>
						<th scope="col">State</th>
						<th scope="col">Since</th>
					</tr>
				</thead>
				<tbody>
					{state.servers.map((s) => (
						<tr key={s.name}>
							<th scope="row">
								<Link to={join("s", s.name)}>{s.name}</Link>
							</th>
							<td>
								<StateMark state={s.state} />
							</td>
							<td>{ago(s.since)}</td>
						</tr>
					))}
				</tbody>
			</table>
		</>
	);
}
