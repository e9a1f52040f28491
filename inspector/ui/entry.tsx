// How people come in: by a link, or with the credential that they have for the program.
import { useState } from "preact/hooks";
import { post, Refusal } from "./api";
import { Failed } from "./parts";

// enter trades the code of a link for a cookie. The code stands behind #, so no server log has it.
export async function enter(): Promise<void> {
	const code = /^#in=(.+)$/.exec(location.hash)?.[1];
	if (code === undefined) return;
	history.replaceState(null, "", location.pathname + location.search);
	await post("/ui/in", { code });
}

// Entry says why somebody is not in, and takes a credential where the program knows some.
export function Entry(p: { why: unknown; entered: () => void }) {
	const [why, setWhy] = useState(p.why);
	const [busy, setBusy] = useState(false);
	const ways = p.why instanceof Refusal ? p.why.ways : [];
	const send = async (body: Record<string, string>) => {
		setBusy(true);
		try {
			await post("/ui/in", body);
			p.entered();
		} catch (err) {
			setWhy(err);
		} finally {
			setBusy(false);
		}
	};
	const submit = (names: string[]) => (e: SubmitEvent) => {
		e.preventDefault();
		const data = new FormData(e.currentTarget as HTMLFormElement);
		void send(Object.fromEntries(names.map((n) => [n, String(data.get(n) ?? "")])));
	};
	return (
		<main id="main" class="entry" data-ready="refused">
			<h1>Patchbay</h1>
			<Failed>{why instanceof Error ? why.message : String(why)}</Failed>
			{ways.includes("key") && (
				<form onSubmit={submit(["key"])}>
					<label>
						API key or token <input name="key" type="password" autocomplete="off" required />
					</label>
					<button type="submit" disabled={busy}>
						Come in with the key
					</button>
				</form>
			)}
			{ways.includes("password") && (
				<form onSubmit={submit(["user", "password"])}>
					<label>
						Name <input name="user" autocomplete="username" required />
					</label>
					<label>
						Password <input name="password" type="password" autocomplete="current-password" required />
					</label>
					<button type="submit" disabled={busy}>
						Come in with the password
					</button>
				</form>
			)}
			{ways.includes("certificate") && (
				<button type="button" disabled={busy} onClick={() => void send({})}>
					Come in with the certificate of this browser
				</button>
			)}
		</main>
	);
}
