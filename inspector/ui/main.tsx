// The page: its frame, and which screen is in it.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { get, listen, post, Refusal } from "./api";
import { watchKeys } from "./keys";
import { Palette } from "./palette";
import { Failed, Link } from "./parts";
import { screens } from "./screens";
import { connected, go, inbox, parts, path, said, state, use } from "./store";
import type { State } from "./types";

// enter trades the code of a link for a cookie. The code stands behind #, so no server log has it.
async function enter(): Promise<void> {
	const code = /^#in=(.+)$/.exec(location.hash)?.[1];
	if (code === undefined) return;
	history.replaceState(null, "", location.pathname + location.search);
	await post("/ui/in", { code });
}

function Page() {
	const now = use(state);
	const at = use(path);
	const open = use(inbox);
	const live = use(connected);
	const words = parts(at);
	const screen = screens.find((s) => s.path === (words[0] ?? "")) ?? screens.find((s) => s.path === (now?.home === "tools" ? "s" : ""))!;
	useEffect(() => {
		document.title = `${screen.name} – ${now?.title ?? ""} – Patchbay`;
	}, [screen, now?.title]);
	if (!now) return <p class="loading">Loading…</p>;
	const shown = screens.filter((s) => s.rail && s.when(now));
	return (
		<>
			<a class="skip" href="#main">
				Skip to the content
			</a>
			<header>
				<Link to="/" class="brand">
					Patchbay
				</Link>
				<span class="place">
					{now.title} <span class="dim">{now.version}</span>
				</span>
				<nav aria-label="Screens">
					{shown.map((s) => (
						<Link key={s.path} to={s.path === "" ? "/" : "/" + s.path} current={s === screen}>
							{s.name}
							{s.path === "inbox" && open.length > 0 ? ` (${open.length})` : ""}
						</Link>
					))}
				</nav>
				<span class={"link " + (live ? "on" : "off")} role="status">
					{live ? "" : "no connection to the program; trying again"}
				</span>
			</header>
			<main id="main" tabIndex={-1} data-ready={screen.path || "home"}>
				<screen.show state={now} words={words} at={at} />
			</main>
			<Palette />
			<div class="sr" role="status" aria-live="polite">
				{use(said)}
			</div>
		</>
	);
}

async function start(): Promise<void> {
	const root = document.getElementById("page")!;
	try {
		await enter();
		state.set(await get<State>("/ui/state"));
	} catch (err) {
		const why = err instanceof Refusal && err.status === 401 ? "This page needs a link from the program: patchbay page" : (err as Error).message;
		render(
			<main id="main" data-ready="refused">
				<h1>Patchbay</h1>
				<Failed>{why}</Failed>
			</main>,
			root,
		);
		return;
	}
	if (location.pathname === "/" && state.now?.home === "tools" && state.now.servers.length === 1) go("/s/" + encodeURIComponent(state.now.servers[0]!.name), true);
	listen("/ui/events?want=state,inbox", { state: (s: State) => state.set(s), inbox: (q) => inbox.set(q) }, (is) => connected.set(is));
	watchKeys();
	render(<Page />, root);
}

void start();
