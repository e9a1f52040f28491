// The page: its frame, and which screen is in it.
import { render } from "preact";
import { useEffect, useErrorBoundary, useReducer, useRef } from "preact/hooks";
import { get, listen, Refusal } from "./api";
import { Entry, enter } from "./entry";
import { watchKeys } from "./keys";
import { load as loadList } from "./lists";
import { Palette } from "./palette";
import { Button, Failed, Link } from "./parts";
import { screens, type Screen, type Show, type Shown } from "./screens";
import { asking } from "./runs";
import { connected, go, join, parts, path, said, state, use } from "./store";
import type { State } from "./types";
import { visible } from "./visible";

// screensFor returns the screens that have something to show, and the one at an address.
function screensFor(now: State, at: string): { all: Screen[]; screen: Screen } {
	const all = screens.filter((s) => s.when(now));
	return { all, screen: all.find((s) => s.path === (parts(at)[0] ?? "")) ?? all[0]! };
}

// load loads the script of a screen.
async function load(screen: Screen): Promise<void> {
	if (screen.show) return;
	try {
		screen.show = await screen.load();
	} catch (err) {
		screen.show = () => (
			<Failed>
				This screen could not be loaded: {(err as Error).message} <Button onPress={() => location.reload()}>Load the page again</Button>
			</Failed>
		);
	}
}

// Safe shows a screen, or why it cannot be drawn: the others stay usable.
function Safe({ Show, ...p }: Shown & { Show: Show }) {
	const [failed, again] = useErrorBoundary();
	useEffect(() => again, [p.at]);
	return failed ? <Failed>This screen could not be shown: {visible(String(failed))}</Failed> : <Show {...p} />;
}

function Page() {
	const now = use(state)!; // start has set it
	const at = use(path);
	const open = use(asking).reduce((n, r) => n + r.queries.length, now.open ?? 0);
	const live = use(connected);
	const [, draw] = useReducer((n: number) => n + 1, 0);
	const { all, screen } = screensFor(now, at);
	// Until a screen is loaded the one before stays.
	const shown = useRef({ screen, at });
	if (screen.show) shown.current = { screen, at };
	const Show = shown.current.screen.show;
	useEffect(() => void load(screen).then(() => draw(0)), [screen]);
	useEffect(() => {
		document.title = `${screen.name} – ${now.title} – Patchbay`;
	}, [screen, now.title]);
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
					{all.map((s) => (
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
			<main id="main" tabIndex={-1} data-ready={screen.show ? screen.path || "home" : undefined}>
				{Show && <Safe Show={Show} state={now} words={parts(shown.current.at)} at={shown.current.at} />}
			</main>
			<Palette />
			<div class="sr" role="status" aria-live="polite">
				{use(said)}
			</div>
		</>
	);
}

// refuse shows why somebody is not in, or is not any more, and lets them come in.
function refuse(why: unknown): void {
	render(<Entry key={String(why)} why={why} entered={() => void start()} />, root);
}

// watchFocus moves the focus when the control that has it goes: to the nearest part of the page that stays.
function watchFocus(): void {
	let way: HTMLElement[] = []; // from the control that has the focus up to the page
	addEventListener("focusin", (e) => (way = e.composedPath() as HTMLElement[]));
	new MutationObserver(() => {
		if (way[0]?.isConnected !== false || document.activeElement !== document.body) return;
		const stays = way.find((el) => el.isConnected)!;
		stays.tabIndex = stays.tabIndex; // written down, it can have the focus
		stays.focus({ preventScroll: true });
	}).observe(root, { childList: true, subtree: true });
}

const root = document.getElementById("page")!;

async function start(): Promise<void> {
	let why: unknown;
	// Somebody who is in stays in when another link does not work.
	const now = (await enter().catch((err) => void (why = err))) ?? (await get<State>("/ui/state").catch((err) => refuse(why ?? err)));
	if (!now) return;
	state.set(now);
	const first = now.servers[0]?.name ?? "";
	if (location.pathname === "/") go(now.recording !== undefined ? "/wire" : now.home === "tools" && now.servers.length === 1 ? join("s", first) : path.now, true);
	// The browser gives up on events when the program refuses them: the session may have ended.
	const lost = () =>
		get<State>("/ui/state").then(
			() => setTimeout(follow, 1000),
			(err) => (err instanceof Refusal && err.status === 401 ? refuse(err) : setTimeout(lost, 1000)),
		);
	const follow = () => {
		const stop = listen("/ui/events?want=state", { state: (s: State) => state.set(s) }, (is) => connected.set(is), () => {
			stop();
			void lost();
		});
	};
	follow();
	const { screen } = screensFor(now, path.now);
	if (screen.path === "s") void loadList(parts(path.now)[1] ?? first, "tools"); // before it is drawn
	await load(screen);
	render(<Page />, root);
}

// A link that is opened in a tab that has the page already changes only what stands behind #.
addEventListener("hashchange", () => {
	if (location.hash.startsWith("#in=")) location.reload();
});
watchKeys();
watchFocus();
void start();
