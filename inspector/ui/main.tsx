// The page: its frame, and which screen is in it.
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { get, listen, Refusal } from "./api";
import { Entry, enter } from "./entry";
import { watchKeys } from "./keys";
import { Palette } from "./palette";
import { loads } from "./lazy";
import { Link } from "./parts";
import { screens } from "./screens";
import { asking } from "./runs";
import { connected, go, parts, path, said, state, use } from "./store";
import type { State } from "./types";

function Page() {
	const now = use(state);
	const at = use(path);
	const open = use(asking).reduce((n, r) => n + r.queries.length, now?.open ?? 0);
	const live = use(connected);
	use(loads);
	const words = parts(at);
	const shown = screens.filter((s) => !now || s.when(now));
	const screen = shown.find((s) => s.path === (words[0] ?? "")) ?? shown[0]!;
	useEffect(() => {
		document.title = `${screen.name} – ${now?.title ?? ""} – Patchbay`;
	}, [screen, now?.title]);
	if (!now) return <p class="loading">Loading…</p>;
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
							{s.path === "inbox" && open > 0 ? ` (${open})` : ""}
						</Link>
					))}
				</nav>
				<span class={"link " + (live ? "on" : "off")} role="status">
					{live ? "" : "no connection to the program; trying again"}
				</span>
			</header>
			<main id="main" tabIndex={-1} data-ready={screen.show.ready?.() === false ? undefined : screen.path || "home"}>
				<screen.show state={now} words={words} at={at} />
			</main>
			<Palette />
			<div class="sr" role="status" aria-live="polite">
				{use(said)}
			</div>
		</>
	);
}

// refuse shows why somebody is not in, or is not any more, and lets them come in.
function refuse(root: HTMLElement, why: unknown): void {
	render(<Entry key={String(why)} why={why} entered={() => void start()} />, root);
}

let keysWatched = false;

async function start(): Promise<void> {
	const root = document.getElementById("page")!;
	let why: unknown;
	await enter().catch((err) => (why = err));
	try {
		state.set(await get<State>("/ui/state")); // somebody who is in stays in when another link does not work
	} catch (err) {
		refuse(root, why ?? err);
		return;
	}
	if (location.pathname === "/" && state.now?.home === "tools" && state.now.servers.length === 1) go("/s/" + encodeURIComponent(state.now.servers[0]!.name), true);
	if (location.pathname === "/" && state.now?.recording !== undefined) go("/wire", true);
	// The browser gives up on events when the program refuses them: the session may have ended.
	const lost = () =>
		get<State>("/ui/state").then(
			() => setTimeout(follow, 1000),
			(err) => (err instanceof Refusal && err.status === 401 ? refuse(root, err) : setTimeout(lost, 1000)),
		);
	const follow = () => {
		const stop = listen("/ui/events?want=state", { state: (s: State) => state.set(s) }, (is) => connected.set(is), () => {
			stop();
			void lost();
		});
	};
	follow();
	if (!keysWatched) watchKeys();
	keysWatched = true;
	render(<Page />, root);
}

// A link that is opened in a tab that has the page already changes only what stands behind #.
addEventListener("hashchange", () => {
	if (location.hash.startsWith("#in=")) location.reload();
});
void start();
