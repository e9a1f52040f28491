// Screens whose script is loaded when they are opened. Their files import main, so they have nothing that it has.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button, Failed } from "./parts";
import { Value } from "./store";

// loads counts the scripts that were loaded.
export const loads = new Value(0);

// Lazy is a screen that loads itself, and tells whether it has.
export interface Lazy<P> {
	(p: P): JSX.Element;
	ready?: () => boolean;
}

// lazy makes a screen of what load gives.
export function lazy<P extends object>(load: () => Promise<(p: P) => JSX.Element>): Lazy<P> {
	let loaded: ((p: P) => JSX.Element) | undefined;
	const show: Lazy<P> = (p) => {
		const [error, setError] = useState("");
		useEffect(() => {
			if (loaded) return;
			load().then(
				(got) => {
					loaded = got;
					loads.set(loads.now + 1);
				},
				(err: Error) => setError(err.message),
			);
		}, []);
		const Show = loaded;
		if (Show) return <Show {...p} />;
		if (!error) return <p class="dim">Loading…</p>;
		return (
			<Failed>
				This screen could not be loaded: {error} <Button onPress={() => location.reload()}>Load the page again</Button>
			</Failed>
		);
	};
	show.ready = () => loaded !== undefined;
	return show;
}
