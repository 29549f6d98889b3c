import type { ServerResponse } from 'node:http';
import { SearchServer } from '../../../../src/features/search/search-server.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { systemClock } from '../../../../src/shared/clock.js';
import { type McpMessage, rainPage, rainText, SearchMcpServer } from '../../../support/agents/search-mcp-server.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { freePort } from '../../../support/basics/free-port.js';
import { until } from '../../../support/basics/until.js';
import { processorMs } from '../../../support/processes/processor-time.js';

const never = new AbortController().signal;

function searcher(
  url: string,
  { tool = null as string | null, token = null as string | null, clock = systemClock } = {},
) {
  const failures: string[] = [];
  const parts = { token, version: '1.2.3', clock, onFailure: (reason: string) => void failures.push(reason) };
  const server = new SearchServer({ url, tool }, parts);
  return {
    server,
    failures,
    find: (query = 'rain', domains = {}, client: ClientText = 'key ada') => server.find(query, domains, client, never),
  };
}

function schema(properties: Readonly<Record<string, unknown>>, required: readonly string[] = []) {
  return { inputSchema: { type: 'object', properties, required } };
}

const text = { type: 'string' };

describe('The search server', () => {
  it.each([false, true])('finds text and links after one handshake, as an event stream: %s', async (streams) => {
    await using mcp = await SearchMcpServer.start();
    mcp.streams = streams;
    const { find, failures } = searcher(mcp.url, { token: 's3cret-token' });
    const found = { text: rainText, links: [rainPage], isError: false };
    expect(await Promise.all([find('rain'), find('sun')])).toEqual([found, found]);
    expect(mcp.messages.map(({ method }) => method)).toEqual([
      ...['initialize', 'notifications/initialized', 'tools/list', 'tools/call', 'tools/call'],
    ]);
    expect(mcp.searches).toEqual(expect.arrayContaining([{ query: 'rain' }, { query: 'sun' }]));
    expect(mcp.heads.at(-1)).toMatchObject({
      ...{ authorization: 'Bearer s3cret-token', 'mcp-session-id': 'session-1', 'mcp-protocol-version': '2025-06-18' },
      accept: 'application/json, text/event-stream',
    });
    expect(failures).toEqual([]);
  });

  it('begins a new session if the server has lost the old one', async () => {
    await using mcp = await SearchMcpServer.start();
    const { find, failures } = searcher(mcp.url);
    await find();
    mcp.session = 'session-2';
    expect(await find()).toMatchObject({ isError: false });
    expect(mcp.heads.at(-1)).toMatchObject({ 'mcp-session-id': 'session-2' });
    expect(failures).toEqual([]);
  });

  it.each<[string, readonly object[], string | null, object | string]>([
    ['the only tool', [{ name: 'x', ...schema({ q: text }, ['q']) }], null, { q: 'rain' }],
    ['the only text', [{ name: 'x', ...schema({ about: text, n: {} }, ['about']) }], null, { about: 'rain' }],
    [
      'the usual tool beside others and malformed ones',
      [{ name: 'x' }, { name: 'fetch', ...schema({ url: text }) }, { name: 'search', ...schema({ query: text }) }],
      null,
      { query: 'rain' },
    ],
    [
      'the named tool',
      [
        { name: 'search', ...schema({ query: text }) },
        { name: 'news', ...schema({ q: text }) },
      ],
      'news',
      { q: 'rain' },
    ],
    ['no tool', [], null, 'it has no tool web_search or search: MODEL_API_SEARCH=mcp:URL#NAME can name one of none'],
    ['no tool with the name', [{ name: 'a', ...schema({}) }], 'b', 'it has no tool b: '],
    [
      'no query',
      [{ name: 'a', ...schema({ x: text, y: text }, ['x', 'y']) }],
      null,
      'its tool a has no argument query',
    ],
    [
      'a second need',
      [{ name: 'a', ...schema({ q: text, engine: text }, ['q', 'engine']) }],
      null,
      'another argument than q: engine',
    ],
  ])('chooses the tool and its argument: %s', async (_, tools, tool, expected) => {
    await using mcp = await SearchMcpServer.start();
    mcp.tools = tools;
    const { find, failures } = searcher(mcp.url, { tool });
    const { isError } = await find();
    expect([isError, mcp.searches]).toEqual(typeof expected === 'string' ? [true, []] : [false, [expected]]);
    expect(failures).toEqual(typeof expected === 'string' ? [expect.stringContaining(expected)] : []);
  });

  it('passes domains only to a tool that has arguments for them', async () => {
    await using mcp = await SearchMcpServer.start();
    const { server, find } = searcher(mcp.url);
    const [allowed, blocked] = [{ allowedDomains: ['a.org'] }, { blockedDomains: ['b.org'] }];
    expect(server.domainFault(allowed)).toBeNull(); // not known yet
    expect(await find('rain', allowed)).toMatchObject({ isError: true });
    expect(mcp.searches).toEqual([]);
    expect(server.domainFault(allowed)).toContain('cannot limit the search to domains');
    expect(server.domainFault(blocked)).toContain('cannot exclude domains');
    mcp.tools = [{ name: 'search', ...schema({ query: text, include_domains: {}, blocked_domains: {} }) }];
    const able = searcher(mcp.url);
    await able.server.learn();
    expect([able.server.domainFault(allowed), able.server.domainFault(blocked)]).toEqual([null, null]);
    await able.find('rain', allowed);
    await able.find('rain', blocked);
    expect(mcp.searches).toEqual([
      { query: 'rain', include_domains: ['a.org'] },
      { query: 'rain', blocked_domains: ['b.org'] },
    ]);
  });

  it('ends a search at its abort, and closes the connection', async () => {
    await using mcp = await SearchMcpServer.start();
    const { server, failures } = searcher(mcp.url);
    const job = new AbortController();
    let closed = false;
    mcp.answer = ({ method }, _, res) => {
      if (method !== 'tools/call') return undefined;
      res.on('close', () => {
        closed = true;
      });
      return 'nothing';
    };
    const found = server.find('rain', {}, 'key ada', job.signal);
    await until(() => mcp.searches.length === 1, 'the call');
    job.abort(new Error('the client has gone'));
    await expect(found).rejects.toThrow('the client has gone');
    await until(() => closed, 'the end of the connection');
    expect(failures).toEqual([]);
  });

  it('makes eight searches at once, four for one client, so that another client need not wait for slow ones', async () => {
    await using mcp = await SearchMcpServer.start();
    const held: (() => void)[] = [];
    mcp.answer = (message, _, res) => {
      if (message.method !== 'tools/call') return undefined;
      return held.push(() => mcp.send(res, { jsonrpc: '2.0', id: message.id, result: mcp.result }));
    };
    const { find } = searcher(mcp.url);
    const found = Array.from({ length: 5 }, (_, user) => find('slow', {}, `key ada/${user}`));
    await until(() => held.length === 4, 'four calls');
    found.push(...Array.from({ length: 5 }, () => find('rain', {}, 'key bob')));
    await until(() => held.length === 8, 'eight calls');
    for (const answer of held.splice(0)) answer();
    await until(() => held.length === 2, 'two more calls');
    for (const answer of held) answer();
    expect((await Promise.all(found)).every(({ isError }) => !isError)).toBe(true);
  });
});

const jsonHead = { 'content-type': 'application/json' };
const eventHead = { 'content-type': 'text/event-stream' };

/** Ways in which a server answers a search badly, with the reason in the log. */
const faults: readonly [string, (res: ServerResponse, message: McpMessage) => unknown, string][] = [
  ['500', (res) => res.writeHead(500).end('x'.repeat(100_000)), 'it answered 500'],
  ['401', (res) => res.writeHead(401).end(), 'it answered 401'],
  [
    'a redirect',
    (res) => res.writeHead(307, { location: 'http://169.254.169.254/' }).end(),
    'it answered 307, a redirect',
  ],
  ['a broken connection', (res) => res.socket?.destroy(), 'no connection: ECONNRESET'],
  [
    'an answer that breaks off',
    (res) => res.writeHead(200, { ...jsonHead, 'content-length': 99 }).write('{') && res.socket?.end(),
    'no connection: ',
  ],
  [
    'HTML',
    (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    'it answered with neither JSON nor an event stream',
  ],
  ['no type', (res) => res.writeHead(200).end('{}'), 'it answered with neither JSON nor an event stream'],
  [
    'a compressed body',
    (res) => res.writeHead(200, { ...jsonHead, 'content-encoding': 'gzip' }).end('x'),
    'it answered with a compressed body',
  ],
  [
    'malformed JSON',
    (res) => res.writeHead(200, jsonHead).end('{"result"'),
    'it answered with JSON that is no answer to the request',
  ],
  [
    'a deep JSON',
    (res) => res.writeHead(200, jsonHead).end('['.repeat(900_000)),
    'its answer must be nested at most 200 levels deep',
  ],
  [
    'many values',
    (res, { id }) => res.writeHead(200, jsonHead).end(`{"id":${id},"result":[${'0,'.repeat(400_000)}0]}`),
    'its answer must contain at most 20000 values',
  ],
  [
    'another id',
    (res) => res.writeHead(200, jsonHead).end('{"jsonrpc":"2.0","id":"x","result":{}}'),
    'it answered with JSON that is no answer to the request',
  ],
  [
    'a huge answer',
    (res) => res.writeHead(200, jsonHead).end(`"${'x'.repeat(2 ** 21)}"`),
    'its answer is longer than 1048576 bytes',
  ],
  [
    'endless events',
    (res) => endless(res, `data: {"jsonrpc":"2.0","id":0,"result":{}}\n\n`),
    'its answer has more than 1000 events',
  ],
  ['an endless line', (res) => endless(res, 'x'), 'its answer is longer than 1048576 bytes'],
  [
    'a stream without an answer',
    (res) => res.writeHead(200, eventHead).end(': nothing\n\n'),
    'its event stream ended without the answer',
  ],
  [
    'an error',
    (res, { id }) =>
      res.writeHead(200, jsonHead).end(JSON.stringify({ id, error: { code: -32602, message: 'no\n s3cret' } })),
    'it reports the error -32602: no [secret]',
  ],
  [
    'no text',
    (res, { id }) =>
      res.writeHead(200, jsonHead).end(JSON.stringify({ id, result: { content: [{ type: 'image' }, 7] } })),
    'its result has no text',
  ],
  [
    'a null',
    (res, { id }) => res.writeHead(200, jsonHead).end(JSON.stringify({ id, result: null })),
    'its result has no text',
  ],
  ['another protocol', (res) => res.writeHead(101, { upgrade: 'x', connection: 'upgrade' }).end(), 'no connection: '],
];

function endless(res: ServerResponse, piece: string): string {
  res.writeHead(200, eventHead).on('error', () => {});
  const more = () => {
    while (!res.destroyed && res.write(piece.repeat(4096)));
  };
  res.on('drain', more);
  more();
  return 'endless';
}

describe('A search server that fails', () => {
  it.each<[string, string]>([
    ['lines without a field', 'a\n'.repeat(500_000)],
    ['empty events', 'data:\n\n'.repeat(130_000)],
    ['comments', ':\n'.repeat(500_000)],
  ])('by a megabyte of lines costs little: %s', async (_, body) => {
    await using mcp = await SearchMcpServer.start();
    const { find } = searcher(mcp.url);
    await find();
    mcp.answer = (message, _req, res) => {
      if (message.method !== 'tools/call') return undefined;
      res.writeHead(200, eventHead).end(body);
      return 'done';
    };
    const begunMs = processorMs();
    expect(await find()).toMatchObject({ isError: true });
    expect(processorMs() - begunMs).toBeLessThan(1000);
  });

  it.each(faults)('by %s: the search is unavailable, and the next one works', async (_, fail, reason) => {
    await using mcp = await SearchMcpServer.start();
    const { find, failures } = searcher(mcp.url, { token: 's3cret' });
    mcp.answer = (message, _req, res) => (message.method === 'tools/call' ? (fail(res, message) ?? 'done') : undefined);
    expect(await find()).toMatchObject({ isError: true, links: [], text: expect.stringContaining('unavailable') });
    expect(failures).toEqual([expect.stringContaining(reason)]);
    mcp.answer = () => undefined;
    expect(await find()).toMatchObject({ isError: false });
  });

  it.each(faults.filter(([name]) => name !== 'no text'))('by %s at the handshake', async (_, fail, reason) => {
    await using mcp = await SearchMcpServer.start();
    const { find, failures, server } = searcher(mcp.url, { token: 's3cret' });
    mcp.answer = (message, _req, res) => (message.id === 2 ? (fail(res, message) ?? 'done') : undefined);
    await server.learn();
    expect(failures).toEqual([expect.stringContaining(reason.startsWith('its result') ? 'malformed' : reason)]);
    mcp.answer = () => undefined;
    expect(await find()).toMatchObject({ isError: false });
  });

  it('shows no part of its URL that may be a key, not even in an error that repeats it', async () => {
    await using mcp = await SearchMcpServer.start();
    const { find, failures } = searcher(`${mcp.url}/tvly-0123456789?key=s3cret%2F4567890&n=5`);
    const message = `${'x'.repeat(190)} wrong key s3cret/4567890 (s3cret%2F4567890) at tvly-0123456789`;
    mcp.answer = ({ id }, _req, res) => {
      res.writeHead(200, jsonHead).end(JSON.stringify({ id, error: { code: 1, message } }));
      return 'done';
    };
    expect(await find()).toMatchObject({ isError: true });
    expect(failures).toEqual([expect.stringContaining('x wrong key')]);
    expect(failures.join()).not.toMatch(/s3c|4567890|tvly/);
  });

  it('by a refused connection, and by a name that does not exist', async () => {
    const { find, failures } = searcher(`http://127.0.0.1:${await freePort()}/mcp`);
    expect(await find()).toMatchObject({ isError: true });
    expect(failures).toEqual(['no connection: ECONNREFUSED']);
    expect(await searcher('http://nobody.invalid/mcp').find()).toMatchObject({ isError: true });
  });

  it('by silence: each search waits 20 s at most', async () => {
    await using mcp = await SearchMcpServer.start();
    const clock = new FakeClock();
    const { find, failures } = searcher(mcp.url, { clock });
    await find();
    mcp.answer = (_message, _req, res) => res.writeHead(200, eventHead).write(': wait\n\n');
    const found = find();
    await until(() => mcp.searches.length === 2, 'the call');
    await clock.advance(20_000);
    expect(await found).toMatchObject({ isError: true });
    expect([failures, clock.pending]).toEqual([['no answer in 20 s'], 0]);
  });

  it('by losing each session at once: it is tried twice', async () => {
    await using mcp = await SearchMcpServer.start();
    mcp.answer = ({ method }, _, res) => (method === 'tools/call' ? res.writeHead(404).end() : undefined);
    const { find, failures } = searcher(mcp.url);
    expect(await find()).toMatchObject({ isError: true });
    expect([failures, mcp.searches.length]).toEqual([['it answered 404'], 2]);
  });

  it('by an error of its tool: the model gets its text', async () => {
    await using mcp = await SearchMcpServer.start();
    mcp.result = { content: [{ type: 'text', text: 'no quota' }], isError: true };
    const { find, failures } = searcher(mcp.url);
    expect(await find()).toEqual({ text: 'no quota', links: [], isError: true });
    expect(failures).toEqual(['its tool reports an error']);
  });
});
