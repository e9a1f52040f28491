// How people come in: by a link, or with the credential that they have for the program.
import { useRef, useState } from "preact/hooks";
import { post, Refusal } from "./api";
import { Failed } from "./parts";
import { go } from "./store";
import type { State } from "./types";

// enter trades the code of a link for a cookie, or that of an authorization server. The code of a link stands behind #,
// so no server log has it. For a link the program answers with the state.
export async function enter(): Promise<State | undefined> {
	if (location.pathname === "/in") {
		const back = location.search;
		go("/", true);
		if (back) go((await post<{ screen: string }>("/ui/in", { back })).screen, true);
	}
	const code = /^#in=(.+)$/.exec(location.hash)?.[1];
	if (code === undefined) return undefined;
	history.replaceState(null, "", location.pathname + location.search);
	return (await post<{ state: State }>("/ui/in", { code })).state;
}

// Entry says why somebody is not in, and takes a credential where the program knows some.
export function Entry(p: { why: unknown; entered: () => void }) {
	const [why, setWhy] = useState(p.why);
	const busy = useRef(false); // a button that were disabled would lose the focus
	const ways = p.why instanceof Refusal ? p.why.ways : [];
	const once = async (work: () => Promise<unknown>) => {
		if (busy.current) return;
		busy.current = true;
		await work().catch(setWhy);
		busy.current = false;
	};
	const send = (body: Record<string, string>) => once(() => post("/ui/in", body).then(p.entered));
	const login = () => once(async () => location.assign((await post<{ page: string }>("/ui/login", { screen: location.pathname + location.search })).page));
	const submit = (names: string[]) => (e: SubmitEvent) => {
		e.preventDefault();
		const data = new FormData(e.currentTarget as HTMLFormElement);
		void send(Object.fromEntries(names.map((n) => [n, String(data.get(n) ?? "")])));
	};
	return (
		<main id="main" class="entry" data-ready="refused">
			<h1>Patchbay</h1>
			<Failed>{why instanceof Error ? why.message : String(why)}</Failed>
			{ways.includes("login") && (
				<button type="button" onClick={() => void login()}>
					Log in
				</button>
			)}
			{ways.includes("key") && (
				<form onSubmit={submit(["key"])}>
					<label>
						API key or token <input name="key" type="password" autocomplete="off" required />
					</label>
					<button type="submit">
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
					<button type="submit">
						Come in with the password
					</button>
				</form>
			)}
			{ways.includes("certificate") && (
				<button type="button" onClick={() => void send({})}>
					Come in with the certificate of this browser
				</button>
			)}
		</main>
	);
}
