// The rows of the wire screen: a part of all rows that fit the filter, without gaps, by their numbers. More are loaded at
// either end when somebody scrolls there.
import { get, listen } from "./api";
import type { Row } from "./types";

// Changes is an event with rows.
interface Changes {
	rows: Row[];
	gone?: number[];
	seq: number;
	lost?: number;
	skipped?: number; // frames before these that are left out, as they were too many
	reset?: boolean;
	note?: string; // what was left out before it came here
}

// RowPage is the answer of /ui/rows.
export interface RowPage {
	epoch: string;
	seq: number;
	oldest: number;
	start?: string;
	rows: Row[];
	more: boolean;
	faults?: string[];
	note?: string; // what was left out
}

const most = 100_000; // rows that are kept
const step = 500; // rows in a request
const screenful = 100; // rows
const pace = 1000; // ms between two requests for the newest rows

export class WireList {
	rows: Row[] = [];
	before = false; // there may be older rows
	after = false; // there are newer rows, which are not loaded
	start = ""; // time of the first frame of all
	faults: string[] = []; // of a recording
	note = ""; // what was left out
	error = "";
	loading = true;
	stays = false; // somebody looks at a part, so nothing of it is dropped
	moved = 0; // rows that were added or removed at the top since the last look, for the place of the list

	#filter = "";
	#file = ""; // part of the address, see ofFile
	#stop = new AbortController();
	#close: () => void = () => {};
	#drawn = false;
	#seq = 0; // the newest frame of the program that an event was about
	#had = 0; // the newest frame that an answer with the newest rows was about
	#floor = 0; // rows up to this one are not the first of the list
	#catching: AbortSignal | undefined; // of the list that catchUp works on

	constructor(private draw: () => void) {}

	// begin shows the rows that fit a filter. A recording, or a file, is shown from its beginning.
	async begin(filter: string, recording: boolean, file = ""): Promise<void> {
		this.end();
		this.#filter = filter;
		this.#file = file;
		this.#stop = new AbortController();
		const signal = this.#stop.signal;
		this.loading = true;
		this.#changed();
		try {
			const page = await this.#load(recording ? "&after=0" : "", signal);
			if (signal.aborted) return;
			this.#seq = page.seq;
			this.error = "";
			this.loading = false;
			this.start = page.start ?? "";
			this.faults = page.faults ?? [];
			this.note = page.note ?? "";
			if (recording) this.#first(page);
			else {
				this.#last(page);
				this.#follow(page, signal);
			}
		} catch (err) {
			if (signal.aborted) return;
			this.loading = false;
			this.error = (err as Error).message;
		}
		this.#changed();
	}

	end(): void {
		this.#stop.abort();
		this.#close();
		this.#close = () => {};
	}

	#load(where: string, signal: AbortSignal): Promise<RowPage> {
		return get<RowPage>(`/ui/rows?limit=${step}&q=${encodeURIComponent(this.#filter)}${where}${this.#file}`, signal);
	}

	#follow(page: RowPage, signal: AbortSignal): void {
		const path = `/ui/events?want=rows&q=${encodeURIComponent(this.#filter)}&after=${page.epoch}-${page.seq}`;
		this.#close = listen(
			path,
			{
				rows: (c: Changes) => {
					if (signal.aborted) return;
					if (c.reset) void this.begin(this.#filter, false);
					else this.take(c);
				},
			},
			() => {},
			// The browser does not open a stream again that the program has refused.
			() => setTimeout(() => signal.aborted || void this.begin(this.#filter, false), 1000),
		);
	}

	// take takes what has changed.
	take(c: Changes): void {
		const missed = (c.lost ?? 0) + (c.skipped ?? 0);
		const from = this.#seq + missed;
		this.#seq = c.seq;
		this.note = c.note ?? "";
		if (c.seq <= this.#had) return;
		if (missed > 0 && !this.after) {
			if (!this.stays && c.rows.length >= screenful) {
				this.#floor = from;
				this.rows = [];
				this.before = true;
				this.moved = 0;
			} else {
				this.after = true;
				if (!this.stays) void this.catchUp();
			}
		}
		for (const n of c.gone ?? []) {
			const at = this.find(n);
			if (this.rows[at]?.n === n) this.rows.splice(at, 1);
		}
		for (const row of c.rows) {
			const at = this.find(row.n);
			if (at === this.rows.length) {
				if (!this.after && row.n > this.#floor) this.rows.push(row);
			} else if (this.rows[at]!.n === row.n) this.rows[at] = row;
			else if (at > 0 || !this.before) this.rows.splice(at, 0, row);
		}
		this.#trim();
		this.#changed();
	}

	// trim drops the oldest rows if there are too many.
	#trim(): void {
		const over = this.rows.length - most;
		if (over <= 0) return;
		this.rows.splice(0, over + most / 10);
		this.moved -= over + most / 10;
		this.before = true;
	}

	// find returns the place of a row, or that where it belongs.
	find(n: number): number {
		let low = 0;
		let high = this.rows.length;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (this.rows[mid]!.n < n) low = mid + 1;
			else high = mid;
		}
		return low;
	}

	// older loads rows before the first.
	async older(): Promise<void> {
		if (!this.before || this.loading || this.rows.length === 0) return;
		const first = this.rows[0]!.n;
		await this.#more(`&before=${first}`, (page) => {
			if (this.rows[0]?.n !== first) return; // the list begins elsewhere now
			this.before = page.more;
			const room = Math.max(0, most - this.rows.length);
			const rows = page.rows.slice(Math.max(0, page.rows.length - room));
			if (rows.length < page.rows.length) this.before = true;
			this.rows = [...rows, ...this.rows];
			this.moved += rows.length;
		});
	}

	// newer loads rows after the last.
	async newer(): Promise<void> {
		if (!this.after || this.loading || this.rows.length === 0) return;
		await this.#more(`&after=${this.rows[this.rows.length - 1]!.n}`, (page) => {
			for (const row of page.rows) this.rows.push(row);
			if (page.more) this.after = true;
			else this.#reached(page.seq);
			this.#trim();
		});
	}

	// ends shows the last rows, or the first.
	async ends(last: boolean): Promise<void> {
		if (last ? !this.after : !this.before) return;
		if (last) return this.#more("", (page) => this.#last(page));
		await this.#more("&after=0", (page) => this.#first(page));
	}

	#first(page: RowPage): void {
		this.#last(page);
		this.before = false;
		this.after = page.more;
	}

	// catchUp shows the newest rows, and again as long as the list has not all of them.
	async catchUp(): Promise<void> {
		const signal = this.#stop.signal;
		if (this.#catching === signal) return;
		this.#catching = signal;
		while (this.after && !this.stays && !signal.aborted) {
			const began = Date.now();
			if (!this.loading) await this.#more("", (page) => this.stays || this.#last(page));
			await new Promise((done) => setTimeout(done, Math.max(pace, Date.now() - began)));
		}
		if (this.#catching === signal) this.#catching = undefined;
	}

	#last(page: RowPage): void {
		this.rows = page.rows;
		this.#floor = this.moved = 0;
		this.#had = page.seq;
		this.before = page.more;
		this.#reached(page.seq);
	}

	// reached says that the list has all rows up to a frame. Those of events that came meanwhile may be missing.
	#reached(seq: number): void {
		this.after = seq < this.#seq;
		if (this.after && this.stays) setTimeout(() => void this.newer(), pace);
	}

	async #more(where: string, take: (page: RowPage) => void): Promise<void> {
		const signal = this.#stop.signal;
		this.loading = true;
		try {
			const page = await this.#load(where, signal);
			if (signal.aborted) return;
			take(page);
		} catch (err) {
			if (signal.aborted) return;
			this.error = (err as Error).message;
			this.before = this.after = false;
		}
		this.loading = false;
		this.#changed();
	}

	// changed draws, once a frame of the screen.
	#changed(): void {
		if (this.#drawn) return;
		this.#drawn = true;
		requestAnimationFrame(() => {
			this.#drawn = false;
			this.draw();
		});
	}
}

// ofFile is the parameter of addresses for the frames of a file; without one they are those on the wire.
export const ofFile = (name: string): string => (name === "" ? "" : "&file=" + encodeURIComponent(name));

// who names the other side of a row.
export function who(r: Row): string {
	if (r.server !== "") return r.server;
	return r.client !== undefined ? `${r.client} ${r.conn}` : r.conn;
}

// arrow shows which way a row goes: → towards the server.
export const arrow = (r: Row): string => ((r.server === "") === (r.dir === "in") ? "→" : "←");

// way says the same in words.
export const way = (r: Row): string => (r.dir === "in" ? "from " : "to ");

// seconds formats the time of a row since the start.
export const seconds = (r: Row): string => (r.at / 1000).toFixed(3);
