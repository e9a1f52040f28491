// A client on @modelcontextprotocol/client (2.x): all revisions.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { probe, report, target, text } from './probe.mjs';

const to = target();
const transport = to.wire === 'stdio'
  ? new StdioClientTransport({ command: to.command, args: to.args, env: process.env, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(to.url));
const mode = to.era === 'modern' ? { pin: '2026-07-28' } : to.era;

const c = {
  tools: async () => (await client.listTools()).tools.map((t) => t.name),
  resources: async () => (await client.listResources()).resources.map((x) => x.uri),
  prompts: async () => (await client.listPrompts()).prompts.map((p) => p.name),
  call: async (name, args, o = {}) => text(await client.callTool({ name, arguments: args, _meta: c.meta }, o)),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
};
const client = new Client({ name: 'ts2', version: '1' }, {
  capabilities: { elicitation: {}, sampling: {} },
  versionNegotiation: { mode },
  listChanged: { tools: { onChanged: () => c.onChanged?.(), debounceMs: 0, autoRefresh: false } },
});
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada' } }));
client.setRequestHandler('sampling/createMessage', async () => (
  { model: 'none', role: 'assistant', content: { type: 'text', text: 'pong' } }));
client.setNotificationHandler('notifications/message', (n) => c.onLog?.(n.params.data));

await client.connect(transport);
if (client.getProtocolEra() === 'modern') c.meta = { 'io.modelcontextprotocol/logLevel': 'debug' };
else await client.setLoggingLevel('debug');
c.server = client.getServerVersion()?.name ?? '';
c.revision = client.getNegotiatedProtocolVersion();
const r = await probe(c);
await client.close();
report(r);
