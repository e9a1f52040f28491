// A client on @modelcontextprotocol/sdk (1.x): revisions up to 2025-11-25.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema, ElicitRequestSchema, LoggingMessageNotificationSchema, ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { probe, report, target, text } from './probe.mjs';

const to = target();
const transport = to.wire === 'stdio'
  ? new StdioClientTransport({ command: to.command, args: to.args, env: process.env, stderr: 'inherit' })
  : new StreamableHTTPClientTransport(new URL(to.url));
const client = new Client({ name: 'ts1', version: '1' }, { capabilities: { elicitation: {}, sampling: {} } });

const c = {
  tools: async () => (await client.listTools()).tools.map((t) => t.name),
  resources: async () => (await client.listResources()).resources.map((x) => x.uri),
  prompts: async () => (await client.listPrompts()).prompts.map((p) => p.name),
  call: async (name, args, o = {}) => text(await client.callTool({ name, arguments: args }, undefined, o)),
  read: async (uri) => (await client.readResource({ uri })).contents[0].text,
  prompt: async (name, args) => (await client.getPrompt({ name, arguments: args })).messages[0].content.text,
};
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { name: 'Ada' } }));
client.setRequestHandler(CreateMessageRequestSchema, async () => (
  { model: 'none', role: 'assistant', content: { type: 'text', text: 'pong' } }));
client.setNotificationHandler(LoggingMessageNotificationSchema, (n) => c.onLog?.(n.params.data));
client.setNotificationHandler(ToolListChangedNotificationSchema, () => c.onChanged?.());

const note = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (v) => { c.revision = v; note?.(v); };
await client.connect(transport);
await client.setLoggingLevel('debug');
c.server = client.getServerVersion().name;
const r = await probe(c);
await client.close();
report(r);
