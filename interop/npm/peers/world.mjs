// What every foreign server of these tests shares: the state that outlives one connection, and the way to serve.
import { createServer } from 'node:http';

// world is per process, so that servers which are built anew for each request or session still answer as one.
export const world = { grown: false, waiting: 0, cancelled: 0, growers: new Set() };

export function say(text) {
  return { content: [{ type: 'text', text }] };
}

// apart keeps two messages out of one read: both TypeScript clients lose progress that arrives in one chunk with the
// result, because a result is taken at once and a notification only after a microtask.
export const apart = () => new Promise((yes) => setTimeout(yes, 20));

// grow makes the tool "grown" appear on every server that is up.
export function grow() {
  world.grown = true;
  for (const add of world.growers) add();
  world.growers.clear();
}

// wait blocks until signal aborts.
export async function wait(signal) {
  world.waiting++;
  await new Promise((yes) => (signal.aborted ? yes() : signal.addEventListener('abort', yes, { once: true })));
  world.waiting--;
  world.cancelled++;
}

export const waits = () => `${world.waiting} waiting, ${world.cancelled} cancelled`;

// listen serves handle(req, res, body) on a free loopback port and prints the address; body is the parsed JSON, if any.
// The process ends with its standard input, so that no server outlives the test that started it.
export function listen(handle) {
  const srv = createServer(async (req, res) => {
    try {
      const parts = [];
      for await (const p of req) parts.push(p);
      const raw = Buffer.concat(parts).toString();
      await handle(req, res, raw ? JSON.parse(raw) : undefined);
    } catch (e) {
      console.error(e);
      if (!res.headersSent) res.writeHead(500).end();
    }
  });
  srv.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${srv.address().port}/mcp`));
  process.stdin.resume().on('end', () => process.exit(0));
}

// Events keeps what streams of a session sent, for clients that come back.
export class Events {
  all = [];

  async storeEvent(stream, message) {
    this.all.push({ stream, message });
    return `${stream}_${this.all.length}`;
  }

  async getStreamIdForEventId(id) { return id.slice(0, id.lastIndexOf('_')); }

  async replayEventsAfter(id, { send }) {
    const cut = id.lastIndexOf('_');
    const stream = id.slice(0, cut);
    for (let i = Number(id.slice(cut + 1)); i < this.all.length; i++) {
      const e = this.all[i];
      if (e.stream === stream && e.message.jsonrpc) await send(`${stream}_${i + 1}`, e.message);
    }
    return stream;
  }
}
