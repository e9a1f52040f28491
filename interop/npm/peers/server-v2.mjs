// A server on @modelcontextprotocol/server (2.x): both eras on one endpoint.
import { randomUUID } from 'node:crypto';
import { McpServer, ResourceTemplate, acceptedContent, createMcpHandler, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { z } from 'zod';
import { Events, apart, grow, listen, say, wait, waits, world } from './world.mjs';

let modern; // the handler of 2026-07-28 over HTTP, which publishes list changes itself

function build() {
  const s = new McpServer({ name: 'ts2', version: '1' }, { capabilities: { logging: {} } });
  const tool = (name, f, inputSchema = z.object({})) => s.registerTool(name, { description: name, inputSchema }, f);
  const addGrown = () => tool('grown', async () => say('grown'));
  tool('echo', async ({ message }) => say(message), z.object({ message: z.string() }));
  const question = (message) => inputRequired.elicit({
    message, requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  });
  tool('ask', async (_, { mcpReq }) => {
    const a = acceptedContent(mcpReq.inputResponses, 'name');
    if (a) return say(`hello ${a.name}`);
    return inputRequired({ inputRequests: { name: question('What is your name?') } });
  });
  tool('twice', async (_, { mcpReq }) => {
    const friend = acceptedContent(mcpReq.inputResponses, 'friend');
    if (friend) return say(`${mcpReq.requestState()} and ${friend.name}`);
    const a = acceptedContent(mcpReq.inputResponses, 'name');
    if (a) return inputRequired({ inputRequests: { friend: question('And that of your friend?') }, requestState: a.name });
    return inputRequired({ inputRequests: { name: question('What is your name?') } });
  });
  tool('sample', async (_, { mcpReq }) => {
    const a = inputResponse(mcpReq.inputResponses, 'word');
    if (a.kind === 'sampling') return say(`the model said ${a.result.content.text}`);
    return inputRequired({
      inputRequests: {
        word: inputRequired.createMessage({
          maxTokens: 10, messages: [{ role: 'user', content: { type: 'text', text: 'ping' } }],
        }),
      },
    });
  });
  tool('steps', async (_, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (let i = 1; i <= 3 && progressToken !== undefined; i++) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: 3 } });
      await apart();
    }
    await mcpReq.log('info', 'working');
    return say('done');
  });
  tool('grow', async () => { grow(); modern?.notify.toolsChanged(); return say('done'); });
  tool('wait', async (_, { mcpReq }) => { await wait(mcpReq.signal); return say('cancelled'); });
  tool('waits', async () => say(waits()));
  if (world.grown) addGrown(); else world.growers.add(addGrown);
  s.registerResource('greeting', 'test://greeting', { mimeType: 'text/plain' }, async (uri) => (
    { contents: [{ uri: uri.href, text: 'hello' }] }));
  s.registerResource('item', new ResourceTemplate('test://item/{id}', { list: undefined }), {}, async (uri, { id }) => (
    { contents: [{ uri: uri.href, text: `item ${id}` }] }));
  s.registerPrompt('greet', { description: 'greet', argsSchema: z.object({ name: z.string() }) }, ({ name }) => (
    { messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }] }));
  return s;
}

if (process.argv[2] === 'http') {
  modern = createMcpHandler(build, { legacy: 'reject' });
  const serveModern = toNodeHandler(modern);
  const sessions = new Map();
  listen(async (req, res, body) => {
    if (body?.params?._meta?.['io.modelcontextprotocol/protocolVersion']) { await serveModern(req, res, body); return; }
    const id = req.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport) {
      if (id) { res.writeHead(404).end(); return; }
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID, onsessioninitialized: (sid) => sessions.set(sid, transport), eventStore: new Events(),
      });
      await build().connect(transport);
    }
    await transport.handleRequest(req, res, body);
  });
} else {
  serveStdio(build);
}
