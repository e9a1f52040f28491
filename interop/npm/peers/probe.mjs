// The questions every foreign client asks, and what the answers are printed as: the same steps, names and values
// as the report of the Go tests beside this folder.

export const usage = 'usage: node PEER ERA(legacy|modern|auto) stdio COMMAND ARGS... | http URL';

export function target() {
  const [era, wire, ...rest] = process.argv.slice(2);
  if (!era || (wire !== 'stdio' && wire !== 'http') || rest.length === 0) {
    console.error(usage);
    process.exit(64);
  }
  return { era, wire, command: rest[0], args: rest.slice(1), url: rest[0] };
}

// within fails when p takes longer than ms: no peer may hang a test.
export function within(ms, what, p) {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error(`no ${what} within ${ms} ms`)), ms); });
  return Promise.race([p, late]).finally(() => clearTimeout(timer));
}

export function text(result) {
  const all = (result.content ?? []).map((c) => c.text ?? `[${c.type}]`).join('|');
  if (result.isError) throw new Error(`tool error: ${all}`);
  return all;
}

// deferred is a promise with its resolver beside it.
function deferred() {
  let resolve;
  const promise = new Promise((yes) => { resolve = yes; });
  return { promise, resolve };
}

// probe asks everything of the server behind c and returns the report. c has: revision, server, tools(), resources(),
// prompts(), call(name, args, {onprogress, signal}), read(uri), prompt(name, args), and the fields onLog, onChanged
// that c calls.
//
// PREFIX is what the names of tools and prompts begin with behind a gateway, which may have others too. SKIP has the
// steps to skip, with commas between them.
export async function probe(c) {
  const prefix = process.env.PREFIX ?? '';
  const skip = (process.env.SKIP ?? '').split(',');
  const { call, prompt } = c;
  const own = (names) => names.filter((n) => n.startsWith(prefix)).map((n) => n.slice(prefix.length)).sort();
  c.call = (name, ...rest) => call(prefix + name, ...rest);
  c.prompt = (name, ...rest) => prompt(prefix + name, ...rest);
  const r = { revision: c.revision, server: c.server, errors: {} };
  const step = async (name, f) => {
    if (skip.includes(name)) return;
    try {
      r[name] = await within(10_000, name, f());
    } catch (e) {
      r.errors[name] = `${e?.code ?? ''} ${e?.message ?? e}`.trim();
    }
  };
  await step('tools', async () => own(await c.tools()));
  await step('resources', async () => (await c.resources()).sort());
  await step('prompts', async () => own(await c.prompts()));
  await step('echo', () => c.call('echo', { message: 'plug' }));
  await step('read', () => c.read('test://greeting'));
  await step('item', () => c.read('test://item/7'));
  await step('prompt', () => c.prompt('greet', { name: 'Ada' }));
  await step('ask', () => c.call('ask', {}));
  await step('twice', () => c.call('twice', {}));
  await step('sample', () => c.call('sample', {}));
  await step('progress', async () => {
    // On a busy machine several messages come in one chunk after all, and then these clients lose progress (see
    // apart in world.mjs). So they may ask again.
    let seen;
    for (let tries = 0; tries < 5 && seen?.length !== 3; tries++) {
      seen = [];
      await c.call('steps', {}, { onprogress: (p) => seen.push(p.progress) });
    }
    return seen;
  });
  await step('log', async () => {
    const d = deferred();
    c.onLog = (data) => d.resolve(String(data?.message ?? data?.msg ?? data));
    await c.call('steps', {});
    return d.promise;
  });
  await step('changed', async () => {
    const d = deferred();
    c.onChanged = () => d.resolve(true);
    await c.call('grow', {});
    return d.promise;
  });
  await step('cancelled', async () => {
    const stop = new AbortController();
    const waiting = c.call('wait', {}, { signal: stop.signal }).then(() => 'answered', () => 'given up');
    await until(async () => (await c.call('waits', {})).startsWith('1 '));
    stop.abort();
    if (await waiting !== 'given up') throw new Error('the cancelled call was answered');
    await until(async () => await c.call('waits', {}) === '0 waiting, 1 cancelled');
    return true;
  });
  // beside calls a tool that asks while the tool that waits runs.
  const beside = async (tool) => {
    const stop = new AbortController();
    const waiting = c.call('wait', {}, { signal: stop.signal }).then(() => 'answered', () => 'given up');
    await until(async () => !(await c.call('waits', {})).startsWith('0 '));
    const answer = await c.call(tool, {});
    stop.abort();
    if (await waiting !== 'given up') throw new Error('the cancelled call was answered');
    return answer;
  };
  await step('askBeside', () => beside('ask'));
  await step('sampleBeside', () => beside('sample'));
  return r;
}

async function until(f) {
  while (!await f()) await new Promise((yes) => setTimeout(yes, 25));
}

// report prints r and leaves: exit 0 says that the report is whole, not that it is good.
export function report(r) {
  process.stdout.write(JSON.stringify(r) + '\n', () => process.exit(0));
}
