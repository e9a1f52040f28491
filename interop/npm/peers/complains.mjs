// A server of 2025-11-25 without an SDK, whose only tool fails and says why on standard error.
import { createInterface } from 'node:readline';

console.error('before the call');
const results = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'complains', version: '1' } },
  'tools/list': { tools: [{ name: 'fail', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'it failed' }], isError: true },
  ping: {},
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  if (method === 'tools/call') console.error('the disk is full');
  const result = results[method];
  const answer = result ? { result } : { error: { code: -32601, message: 'no such method' } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
}
