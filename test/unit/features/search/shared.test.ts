import { search } from '../../../../src/features/search/feature.js';
import { searchesPerDay } from '../../../../src/features/search/shared.js';
import { ConfigFault, type Environment, loadConfig } from '../../../../src/shared/config/config.js';
import { secretNames } from '../../../../src/shared/config/feature-variables.js';

const files: Readonly<Record<string, string>> = { '/token': 't0ken\n', '/empty': '', '/two': 't0ken other' };

function load(env: Environment) {
  const read = async (path: string) => {
    const content = files[path];
    if (content === undefined) throw Object.assign(new Error('ENOENT: no such file'), { code: 'ENOENT' });
    return content;
  };
  return loadConfig(env, read, undefined, [search]);
}

async function faultsOf(env: Environment): Promise<readonly string[]> {
  const thrown = await load(env).catch((error: unknown) => error);
  if (!(thrown instanceof ConfigFault)) throw new Error(`no fault was found in ${JSON.stringify(env)}`);
  return thrown.faults;
}

const server = { MODEL_API_SEARCH: 'mcp:http://127.0.0.1:9000/mcp' };

describe('The position of the search', () => {
  it.each([
    ['native', 'native'],
    ['off', 'off'],
    ['mcp:http://127.0.0.1:9000/mcp', { url: 'http://127.0.0.1:9000/mcp', tool: null }],
    [
      'mcp:https://search.example/mcp?key=a#web%20search',
      { url: 'https://search.example/mcp?key=a', tool: 'web search' },
    ],
  ])('may be %s', async (text, value) => {
    const { featureValues } = await load({ MODEL_API_SEARCH: text });
    expect(featureValues.MODEL_API_SEARCH).toEqual(value);
  });

  it.each([
    ...['', 'on', 'mcp', 'mcp:', 'mcp:/run/mcp.sock', 'mcp:ftp://h/', 'mcp:http://', 'http://h/mcp', 'MCP:http://h'],
    ...['mcp:http://me:x@h/mcp', 'mcp:http://h/#%', ' mcp:http://h/'],
  ])('must not be %j', async (text) => {
    expect(await faultsOf({ MODEL_API_SEARCH: text })).toEqual([expect.stringMatching(/^MODEL_API_SEARCH: .+/)]);
  });

  it.each([
    ['http://example.org', 1],
    ['https://example.org', 0],
    ['http://127.0.0.1:8080', 0],
    ['http://[::1]:8080', 0],
  ])('causes a warning only for a server on another host and without TLS: %s', async (url, count) => {
    expect((await load({ MODEL_API_SEARCH: `mcp:${url}` })).warnings).toHaveLength(count);
  });
});

it('may have a key in its URL, which no program may see', () => {
  expect(secretNames([search], ['part'])).toEqual(['MODEL_API_SEARCH']);
});

describe('The token for the search server', () => {
  it('is read from its file, and is a secret', async () => {
    const { featureValues, featureSecrets, warnings } = await load({
      ...server,
      MODEL_API_SEARCH_TOKEN_FILE: '/token',
    });
    expect(featureValues.MODEL_API_SEARCH_TOKEN_FILE).toBe('t0ken');
    expect(featureSecrets).toEqual([{ name: 'MODEL_API_SEARCH_TOKEN_FILE', value: 't0ken' }]);
    expect(warnings).toEqual([]);
  });

  it.each(['', '/missing', '/empty', '/two'])('must not be in the file %j', async (path) => {
    const faults = await faultsOf({ ...server, MODEL_API_SEARCH_TOKEN_FILE: path });
    expect(faults).toEqual([expect.stringMatching(/^MODEL_API_SEARCH_TOKEN_FILE: .+/)]);
    expect(faults.join()).not.toContain('t0ken');
  });

  it('needs a search server', async () => {
    const env = { MODEL_API_SEARCH: 'native', MODEL_API_SEARCH_TOKEN_FILE: '/token' };
    expect(await faultsOf(env)).toEqual(['MODEL_API_SEARCH_TOKEN_FILE: needs MODEL_API_SEARCH to be mcp:URL']);
  });
});

describe('The option of keys', () => {
  const { read, http } = search.keyOptions.search;

  it('has searches in a day', () => {
    expect(['on', '100/day', '020/day'].map(read)).toEqual(['on', 'on', '20/day']);
    expect([{ search: 'on' }, { search: '20/day' }, {}].map(searchesPerDay)).toEqual([100, 20, null]);
  });

  it('allows a made key no more searches than its maker', () => {
    expect([null, '20/day', 'on'].map((text) => http.isWithin(text, '20/day'))).toEqual([true, true, false]);
    expect([null, '1/day'].map((text) => http.isWithin(text, null))).toEqual([true, false]);
  });
});
