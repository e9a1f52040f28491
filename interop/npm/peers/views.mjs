// A client on @modelcontextprotocol/sdk (1.x) for TestThreeTeams: with a key, it lists the tools of an endpoint, calls those that the
// arguments name, and prints what it got, errors as they are worded.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, key, ...names] = process.argv.slice(2);
const client = new Client({ name: 'ts1', version: '1' });
const seen = { tools: [], calls: {} };
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } }));
  seen.tools = (await client.listTools()).tools.map((t) => t.name);
  for (const name of names) {
    try {
      const res = await client.callTool({ name, arguments: { message: name } });
      seen.calls[name] = (res.isError ? 'error: ' : '') + res.content[0].text;
    } catch (err) {
      seen.calls[name] = `error: ${err.message}`;
    }
  }
  await client.close();
} catch (err) {
  seen.refused = String(err.message);
}
console.log(JSON.stringify(seen));
