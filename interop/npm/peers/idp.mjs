// An authorization server on oidc-provider: its pages to sign in and to agree, its registration, rotation, revocation and
// introspection. Arguments: the format of access tokens ("jwt" or "opaque"), their life in seconds, "closed" if it
// registers no clients, and the redirect URI of a gateway, if there is one. It prints its issuer.
//
// Of its own it has one page, /agreed, where a user sees what was agreed to and takes that back.
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const [format, life, closed, callback] = process.argv.slice(2);
const grants = new Map(); // what was agreed to, by id

const html = (res, body) => {
  res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': "default-src 'none'" });
  res.end(`<!DOCTYPE html><html lang="en"><title>Agreed</title>${body}`);
};

// agreed lists the programs that have access; a POST takes back all of it.
async function agreed(req, res) {
  if (req.method === 'POST') {
    for (const [id, grant] of grants) {
      await provider.RefreshToken.revokeByGrantId(id);
      await provider.AccessToken.revokeByGrantId(id);
      await grant.destroy();
    }
    grants.clear();
  }
  html(res, grants.size === 0 ? '<p>Nobody has access.</p>'
    : `<p>${grants.size} have access.</p><form method="post"><button>Take back</button></form>`);
}

const resource = (ctx, indicator) => ({
  audience: indicator,
  scope: 'orders refunds',
  accessTokenFormat: format,
  accessTokenTTL: Number(life),
  jwt: { sign: { alg: 'RS256' } },
});

let provider;
const server = createServer((req, res) => {
  if (req.url === '/agreed') return agreed(req, res).catch((err) => { console.log(err); res.destroy(); });
  return provider.callback()(req, res);
});
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  provider = new Provider(issuer, {
    clients: [
      { client_id: 'shop', client_secret: 'secret of the shop', redirect_uris: [], response_types: [], grant_types: [] }, // introspects
      {
        client_id: 'known', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
      },
      {
        client_id: 'page', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1/in'],
        grant_types: ['authorization_code'],
      },
      ...(callback ? [{
        client_id: 'gateway', client_secret: 'secret of the gateway', application_type: 'native', redirect_uris: [callback], grant_types: ['authorization_code'],
      }] : []),
    ],
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub', 'roles'] },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, roles: id === 'alice' ? ['admin'] : [] }) }),
    jwks: { keys: [generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' })] },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: closed !== 'closed' },
      revocation: { enabled: true },
      introspection: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      resourceIndicators: { enabled: true, getResourceServerInfo: resource },
    },
    // Documents of clients are on loopback in the tests, where the fetch that it guards does not go.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  });
  // Whoever names no scope asks for orders (RFC 6749, 3.3).
  provider.use((ctx, next) => {
    if (ctx.path === '/auth' && !ctx.query.scope) ctx.query = { ...ctx.query, scope: 'orders' };
    return next();
  });
  provider.on('grant.success', (ctx) => {
    const { Grant } = ctx.oidc.entities;
    if (Grant) grants.set(Grant.jti, Grant);
  });
  for (const event of ['authorization.error', 'grant.error', 'registration_create.error', 'introspection.error', 'server_error']) {
    provider.on(event, (ctx, err) => console.log(`${event}: ${err.message} ${err.error_description ?? ''} ${err.error_detail ?? ''}`));
  }
  console.log(issuer);
});
process.stdin.on('end', () => process.exit(0)).resume();
