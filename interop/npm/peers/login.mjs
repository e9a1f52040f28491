// A client on @modelcontextprotocol/sdk that registers itself and logs in at the server of its argument: it prints the page
// for its user, waits for the browser on loopback, and prints its token, the tools, and after a refresh the next token.
import { createServer } from 'node:http';
import { refreshAuthorization, discoverAuthorizationServerMetadata, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const url = new URL(process.argv[2]);
let back;
const code = new Promise((resolve, reject) => {
  back = createServer((req, res) => {
    const q = new URL(req.url, 'http://127.0.0.1').searchParams;
    res.end('You can close this page.');
    q.get('code') ? resolve(q.get('code')) : reject(new Error(`refused: ${q}`));
  });
});
await new Promise((resolve) => back.listen(0, '127.0.0.1', resolve));
const redirect = `http://127.0.0.1:${back.address().port}/callback`;

const kept = {};
const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: 'TypeScript host', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  },
  clientInformation: () => kept.client,
  saveClientInformation: (c) => { kept.client = c; },
  tokens: () => kept.tokens,
  saveTokens: (t) => { kept.tokens = t; },
  saveCodeVerifier: (v) => { kept.verifier = v; },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: (page) => { console.log(`log in at ${page}`); },
};
const connect = async () => {
  const client = new Client({ name: 'ts', version: '1' });
  const transport = new StreamableHTTPClientTransport(url, { authProvider });
  await client.connect(transport).catch(async (err) => {
    if (!(err instanceof UnauthorizedError) || kept.tokens) throw err;
    await transport.finishAuth(await code);
  });
  return client;
};
await connect();
console.log(`token ${kept.tokens.access_token}`);
const client = await connect();
console.log(`tools ${(await client.listTools()).tools.map((t) => t.name)}`);
await client.close();
const issuer = JSON.parse(Buffer.from(kept.tokens.access_token.split('.')[1], 'base64url')).iss;
kept.tokens = await refreshAuthorization(issuer, {
  metadata: await discoverAuthorizationServerMetadata(issuer), clientInformation: kept.client, refreshToken: kept.tokens.refresh_token, resource: url,
});
await (await connect()).close();
console.log(`next ${kept.tokens.access_token}`);
process.exit(0);
