// Requests to the program, apart from MCP (mcp.ts), and its events.

// Refusal is an answer that is an error, in the words of the program.
export class Refusal extends Error {
	constructor(readonly status: number, message: string, readonly ways: string[] = []) {
		super(message);
	}
}

async function answer<T>(res: Response): Promise<T> {
	const text = await res.text();
	if (!res.ok) {
		let said = text.trim();
		let ways: string[] = [];
		try {
			const why = JSON.parse(text);
			said = why.detail ?? said;
			ways = why.ways ?? ways;
		} catch {
			// it is not JSON
		}
		throw new Refusal(res.status, said || `HTTP ${res.status}`, ways);
	}
	return (text === "" ? undefined : JSON.parse(text)) as T;
}

// get reads a document of the program.
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
	return answer<T>(await fetch(path, { signal: signal ?? null, headers: { Accept: "application/json" } }));
}

// post sends a document to the program. The header makes browsers ask first if the page is from elsewhere.
export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
	return answer<T>(
		await fetch(path, {
			method: "POST",
			signal: signal ?? null,
			headers: { "Content-Type": "application/json", "Patchbay-Page": "1" },
			body: JSON.stringify(body),
		}),
	);
}

// Listener gets the content of events by their names.
export type Listener = Partial<Record<"state" | "rows" | "inbox" | "metrics", (data: any) => void>>;

// listen opens the stream of events. The browser opens it again when it breaks, from the last id that it had. The
// function connected gets false while it is broken, and lost is called when the browser does not open it again.
export function listen(path: string, on: Listener, connected: (is: boolean) => void, lost?: () => void): () => void {
	const source = new EventSource(path);
	source.onopen = () => connected(true);
	source.onerror = () => {
		connected(false);
		if (source.readyState === EventSource.CLOSED) lost?.();
	};
	for (const [name, take] of Object.entries(on)) {
		source.addEventListener(name, (e) => take(JSON.parse((e as MessageEvent<string>).data)));
	}
	return () => source.close();
}
