// The transports of @modelcontextprotocol/sdk (1.x) that the other peers do not use, joined to standard streams. It
// passes messages on and knows nothing of them, so that the other peers speak over these transports:
//
//   node sse_bridge.mjs sse URL            a server on stdio that is the one at URL, over HTTP+SSE
//   node sse_bridge.mjs websocket URL      the same over WebSocket
//   node sse_bridge.mjs serve COMMAND...   an HTTP+SSE server that starts COMMAND, a server on stdio, for each stream
import { createServer } from 'node:http';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';

const [how, ...rest] = process.argv.slice(2);

// join passes messages both ways, and the end of one side on to the other.
async function join(a, b) {
  const say = (e) => console.error(String(e));
  a.onmessage = (m) => { b.send(m).catch(say); };
  b.onmessage = (m) => { a.send(m).catch(say); };
  a.onerror = say;
  b.onerror = say;
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    a.close().catch(say);
    b.close().catch(say);
  };
  a.onclose = end;
  b.onclose = end;
  await b.start();
  await a.start();
}

if (how === 'serve') {
  const streams = new Map();
  const srv = createServer(async (req, res) => {
    const url = new URL(req.url, 'http://localhost');
    if (req.method === 'GET' && url.pathname === '/sse') {
      const stream = new SSEServerTransport('/messages', res);
      streams.set(stream.sessionId, stream);
      res.on('close', () => streams.delete(stream.sessionId));
      await join(stream, new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: 'inherit' }));
    } else if (req.method === 'POST' && streams.has(url.searchParams.get('sessionId'))) {
      await streams.get(url.searchParams.get('sessionId')).handlePostMessage(req, res);
    } else {
      res.writeHead(404).end('not here');
    }
  });
  srv.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${srv.address().port}/sse`));
  process.stdin.resume().on('end', () => process.exit(0));
} else {
  const far = how === 'sse' ? new SSEClientTransport(new URL(rest[0])) : new WebSocketClientTransport(new URL(rest[0]));
  await join(new StdioServerTransport(), far);
  process.stdin.on('end', () => { far.close(); setTimeout(() => process.exit(0), 50); });
}
