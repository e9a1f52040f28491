// Recordings: what is on the wire now, and files; and what other rules would do with their calls.
import { useState } from "preact/hooks";
import { get, post } from "../api";
import { Copy, count, Failed, Link, size, TextField, useLoad } from "../parts";
import type { Shown } from "../screens";
import { Table, Told, type Answer } from "../table";
import { words } from "../text";

// Files is the answer of /ui/recordings.
interface Files {
	folder?: string;
	mock?: string;
	files: { name: string; bytes: number; at: string; mock?: string }[];
	left?: number;
}

export function Recordings({ state }: Shown) {
	const got = useLoad((stop) => get<Files>("/ui/recordings", stop), []);
	const f = got.value;
	if (!f) return got.error === undefined ? <p>Loading…</p> : <Failed>{got.error}</Failed>;
	const now = state.recording === undefined ? "the wire now" : "this recording";
	const line = (name: string, bytes: string, at: string, mock?: string) => {
		const file = name === "" ? "" : "file=" + encodeURIComponent(name);
		return {
			key: name,
			cells: [
				<Link to={"/wire?" + file}>{name || now}</Link>,
				bytes,
				at,
				<a href={"/ui/trace?" + file} download aria-label={"Download " + (name || now)}>
					Download
				</a>,
				mock === undefined ? (
					<span class="dim">Download it, then patchbay mock FILE</span>
				) : (
					<Copy text={() => mock} label={"Copy the command that mocks " + (name || now)}>
						Mock this
					</Copy>
				),
			],
		};
	};
	return (
		<>
			<h1>Recordings</h1>
			<p class="dim">{f.folder === undefined ? "--record DIR keeps what is on the wire in files." : "The newest files of " + f.folder}</p>
			<Table label="Recordings" columns={["Recording", "#Size", "Last frame", "Frames", "Mock"]} rows={[line("", "", "", f.mock), ...f.files.map((x) => line(x.name, size(x.bytes), new Date(x.at).toLocaleString("sv"), x.mock))]} />
			{f.left !== undefined && <p class="dim">Not listed: {count(f.left, "older files")}.</p>}
			{state.can.judge && <Trial now={now} files={f.files.map((x) => x.name)} />}
		</>
	);
}

// Trial asks what other rules would do.
function Trial({ now, files }: { now: string; files: string[] }) {
	const [text, setText] = useState<Record<string, string>>({ file: "", policy: "", principal: "", roles: "", server: "" });
	const [got, setGot] = useState<{ value?: Answer; error?: string }>({});
	const judge = async (e: Event) => {
		e.preventDefault();
		try {
			setGot({ value: await post<Answer>("/ui/judge", { ...text, roles: words(text.roles!) }) });
		} catch (err) {
			setGot({ error: (err as Error).message });
		}
	};
	const set = (name: string) => (e: { currentTarget: { value: string } }) => setText({ ...text, [name]: e.currentTarget.value });
	const field = (name: string, label: string, example: string) => <TextField label={label} value={text[name]} set={(v) => setText({ ...text, [name]: v })} example={example} />;
	return (
		<>
			<h2>New policy on this traffic</h2>
			<p class="dim">Shows what other rules would do with the recorded calls. Nothing is sent to a server, and the policy of this program stays.</p>
			<form onSubmit={judge} aria-label="Policy">
				<div class="filters">
					<label>
						Recording
						<select value={text.file} onChange={set("file")}>
							{["", ...files].map((n) => (
								<option key={n} value={n}>
									{n || now}
								</option>
							))}
						</select>
					</label>
					{field("principal", "Principal of all calls", "anonymous, or apikey#ada")}
					{field("roles", "Roles", "of the principal")}
					{field("server", "Server", "if the recording is of one")}
				</div>
				<div class="stack">
					<label>
						Policy, as in its file
						<textarea class="json" rows={6} spellcheck={false} value={text.policy} placeholder={'rules:\n  - {name: one, when: \'server == "db"\', effect: allow}'} onInput={set("policy")} />
					</label>
				</div>
				<p>
					<button type="submit" class="main" disabled={text.policy === ""}>
						Decide
					</button>
				</p>
			</form>
			{got.error && <Failed>{got.error}</Failed>}
			<Told of="Decisions" told={got.value} />
		</>
	);
}
