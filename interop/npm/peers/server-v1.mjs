// A server on @modelcontextprotocol/sdk (1.x): revisions up to 2025-11-25.
import { randomUUID } from 'node:crypto';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';
import { Events, apart, grow, listen, say, wait, waits, world } from './world.mjs';

function build() {
  const s = new McpServer({ name: 'ts1', version: '1' }, { capabilities: { logging: {} } });
  const tool = (name, f, inputSchema = {}) => s.registerTool(name, { description: name, inputSchema }, f);
  const addGrown = () => tool('grown', async () => say('grown'));
  tool('echo', async ({ message }) => say(message), { message: z.string() });
  const askName = async (message) => (await s.server.elicitInput({
    message,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  })).content.name;
  tool('ask', async () => say(`hello ${await askName('What is your name?')}`));
  tool('twice', async () => {
    const name = await askName('What is your name?');
    return say(`${name} and ${await askName('And that of your friend?')}`);
  });
  tool('sample', async () => {
    const a = await s.server.createMessage({
      maxTokens: 10, messages: [{ role: 'user', content: { type: 'text', text: 'ping' } }],
    });
    return say(`the model said ${a.content.text}`);
  });
  tool('steps', async (_, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (let i = 1; i <= 3 && progressToken !== undefined; i++) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: i, total: 3 } });
      await apart();
    }
    await sendNotification({ method: 'notifications/message', params: { level: 'info', data: 'working' } });
    return say('done');
  });
  tool('grow', async () => { grow(); return say('done'); });
  tool('wait', async (_, { signal }) => { await wait(signal); return say('cancelled'); });
  tool('waits', async () => say(waits()));
  if (world.grown) addGrown(); else world.growers.add(addGrown);
  s.registerResource('greeting', 'test://greeting', { mimeType: 'text/plain' }, async (uri) => (
    { contents: [{ uri: uri.href, text: 'hello' }] }));
  s.registerResource('item', new ResourceTemplate('test://item/{id}', { list: undefined }), {}, async (uri, { id }) => (
    { contents: [{ uri: uri.href, text: `item ${id}` }] }));
  s.registerPrompt('greet', { description: 'greet', argsSchema: { name: z.string() } }, ({ name }) => (
    { messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }] }));
  return s;
}

if (process.argv[2] === 'http') {
  const sessions = new Map();
  listen(async (req, res, body) => {
    const id = req.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport) {
      if (id) { res.writeHead(404).end(); return; }
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID, onsessioninitialized: (sid) => sessions.set(sid, transport), eventStore: new Events(),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(req, res, body);
  });
} else {
  await build().connect(new StdioServerTransport());
  process.stdin.on('end', () => process.exit(0));
}
