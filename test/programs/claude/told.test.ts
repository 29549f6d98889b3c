import { symlink, writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import {
  type FileDocument,
  type Image,
  type LaunchOptions,
  type Message,
  plainLaunch,
  type Turn,
} from '../../../src/primary/cli/contract/adapter.js';
import { claudeVersion, installClaude } from '../../support/agents/claude-service.js';
import {
  apiKey,
  type ClaudeLab,
  type ClaudeSession,
  type KnownClaude,
  learnClaude,
  loginToken,
  openLab,
} from '../../support/agents/claude-session.js';
import {
  conversationOf,
  declines,
  echoes,
  type MessagesApi,
  type MessagesRequest,
  says,
  saysAndGives,
  startMessagesApi,
  systemOf,
} from '../../support/agents/messages-api-stub.js';
import { pdfOf } from '../../support/basics/pdf.js';

/** Oldest version, which needs arguments for what later versions receive over stdin. */
const isOlder = claudeVersion === '2.1.197';
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const png: Image = { mediaType: 'image/png', data: pixel, at: 0 };
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };

let known: KnownClaude;
let lab: ClaudeLab;
let api: MessagesApi;

beforeAll(async () => {
  known = await learnClaude(await installClaude(), apiKey);
}, 600_000);

beforeEach(async () => {
  lab = await openLab(known);
  api = lab.api;
  api.behave = echoes;
});

afterEach(() => lab[Symbol.asyncDispose]());

function asked(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

/** Starts a process with the launch options of `turn`. Most versions do not need them. */
function startedFor(launch: LaunchOptions): Promise<ClaudeSession> {
  return lab.start(lab.plan(launch));
}

function lastRequest(): MessagesRequest {
  const last = api.requests.at(-1);
  if (last === undefined) throw new Error('nothing was asked');
  return last;
}

describe('This version of claude', () => {
  it('accepts the detected options over stdin, and has a single command line for them', () => {
    const all = { ...plainLaunch('opus'), system: 'be secret', schema: JSON.stringify(schema), effort: 'low' } as const;
    const [plain, full] = [lab.plan(), lab.plan(all)];
    if (isOlder) expect(full.args).toEqual(expect.arrayContaining(['--model=opus', '--system-prompt-file']));
    else expect(full).toEqual({ ...plain, files: [] });
    const expected = [
      'document',
      'effort',
      'fitSampling',
      'image',
      'rulesOf',
      'schema',
      'thoughts',
      'toolChoice',
      'tools',
      'wishes',
    ];
    const extras = Object.keys(known.programVersion.extras);
    expect(extras.filter((name) => name !== 'search').toSorted()).toEqual(expected);
    expect(extras.includes('search')).toBe(!isOlder);
  });

  it('is probed without a request to the API', async () => {
    await using unasked = await startMessagesApi();
    const { programVersion } = await learnClaude(known.program, { ...apiKey, ANTHROPIC_BASE_URL: unasked.url });
    await learnClaude(known.program, { ...loginToken, ANTHROPIC_BASE_URL: unasked.url });
    expect(programVersion.version).toBe(claudeVersion);
    expect(unasked.requests).toEqual([]);
  });
});

describe('The options of a turn', () => {
  it('reach the model with the first turn of a standby process, and do not appear in its text', async () => {
    const turn = asked('hi', { model: 'claude-sonnet-5', system: 'Be an owl.', effort: 'low' });
    const claude = await startedFor(turn);
    expect((await claude.turn(turn)).end).toMatchObject({ type: 'turn-end', model: 'claude-sonnet-5' });
    expect(api.requests).toHaveLength(1);
    expect(systemOf(lastRequest()).slice(2)).toEqual(['Be an owl.']);
    expect(lastRequest().body.output_config).toEqual({ effort: 'low' });
    expect(conversationOf(lastRequest())).toEqual([{ role: 'user', text: 'hi' }]);
  });

  it('precede a replayed history', async () => {
    const history: Turn['history'] = [
      { role: 'user', text: 'one' },
      { role: 'assistant', text: '1' },
      { role: 'user', text: 'two', images: [{ ...png, at: 3 }] },
      { role: 'assistant', text: '2' },
    ];
    const turn = asked('three', { model: 'claude-sonnet-5', system: 'Count.', effort: 'high', history });
    const claude = await startedFor(turn);
    expect((await claude.turn(turn)).end.type).toBe('turn-end');
    const texts = ['one', '1', 'two', '', '2', 'three']; // the empty text is the image
    expect(conversationOf(lastRequest()).map(({ text }) => text)).toEqual(texts);
    expect(systemOf(lastRequest()).slice(2)).toEqual(['Count.']);
    expect(lastRequest().body).toMatchObject({ model: 'claude-sonnet-5', output_config: { effort: 'high' } });
  });

  it('may set a different effort in each turn, and then none', async () => {
    const claude = await startedFor(plainLaunch('claude-sonnet-5'));
    const turns = [null, 'low', 'high', null] as const;
    for (const effort of turns) await claude.turn(asked('go on', { model: 'claude-sonnet-5', effort }));
    const efforts = api.requests.map(({ body }) => body.output_config?.effort);
    expect(efforts.slice(1, 3)).toEqual(['low', 'high']);
    expect(efforts[3]).toBe(efforts[0]);
    expect(conversationOf(lastRequest()).filter(({ role }) => role === 'user')).toHaveLength(turns.length);
  });

  it('keep the restrictions, so that no option reads a file', async () => {
    const secret = 'canary-in-a-file';
    const path = join(lab.home.path, 'secret.txt');
    await writeFile(path, secret);
    await symlink(path, join(lab.home.workingDirectory, 'link.txt'));
    const words = [`@${path}`, `@"${path}"`, `look:\n@${path}`, '@link.txt'].join(' \n');
    const named = { ...schema, description: words, properties: { a: { type: 'string', description: words } } };
    const turn = asked(words, {
      ...{ system: words, schema: JSON.stringify(named), model: 'claude-sonnet-5', effort: 'low' },
      ...{ images: [{ ...png, at: 3 }], history: [{ role: 'user', text: words, images: [png] }] },
    });
    api.behave = () => saysAndGives('', { a: 'x' });
    const claude = await startedFor(turn);
    await claude.turn(turn);
    await claude.turn({ ...turn, history: [], effort: 'high' });
    expect(api.requests).toHaveLength(2);
    expect(systemOf(lastRequest()).slice(2)).toEqual([words]);
    expect(JSON.stringify(api.requests)).not.toContain(secret);
  });

  it('are not mixed between two processes', async () => {
    await using other = await openLab(known);
    other.api.behave = echoes;
    const turns = ['fox', 'owl'].map((name) => asked(`I am the ${name}`, { system: `Serve the ${name}.` }));
    const [fox = asked(''), owl = asked('')] = turns;
    const [first, second] = [await startedFor(fox), await other.start(other.plan(owl))];
    await Promise.all([first.turn(fox), second.turn(owl)]);
    await Promise.all([first.turn(fox), second.turn(owl)]);
    expect(JSON.stringify(api.requests)).not.toContain('the owl');
    expect(JSON.stringify(other.api.requests)).not.toContain('the fox');
    expect([...api.requests, ...other.api.requests].flatMap((request) => systemOf(request).slice(2))).toEqual([
      ...['Serve the fox.', 'Serve the fox.', 'Serve the owl.', 'Serve the owl.'],
    ]);
  });
});

describe('An answer with a schema', () => {
  const turn = asked('Give me a.', { schema: JSON.stringify(schema), system: 'Be brief.' });

  it('is the value, turn after turn, even if the model writes text before it', async () => {
    api.behave = () => saysAndGives('Let me see.', { a: 'x' });
    const claude = await startedFor(turn);
    for (const index of [0, 1]) {
      expect((await claude.turn(turn)).end).toMatchObject({ type: 'turn-end', text: '{"a":"x"}' });
      expect(api.requests[index]?.body.tools).toMatchObject([{ name: 'StructuredOutput', input_schema: schema }]);
    }
    expect(systemOf(lastRequest()).slice(2)).toEqual(['Be brief.']);
  });

  it('is the text of the model if it gives no value in two attempts', async () => {
    api.behave = () => says('no value');
    const { deltas, end } = await (await startedFor(turn)).turn(turn);
    expect([end.type, deltas.join('')]).toEqual(['turn-end', 'no valueno value']);
    expect(api.requests).toHaveLength(2);
  });

  it('is a mismatch if every value is wrong', async () => {
    api.behave = () => saysAndGives('', { b: 1 });
    const { end } = await (await startedFor(turn)).turn(turn);
    expect(end).toMatchObject({ type: 'turn-failed', reason: 'schema_mismatch' });
  });
});

describe('Images', () => {
  it('keep their positions in the text', async () => {
    const claude = await lab.start();
    await claude.turn(asked('look here', { images: [{ ...png, at: 5 }, png] }));
    await claude.turn(asked('/cost', { images: [png] }));
    const source = { type: 'base64', media_type: 'image/png', data: pixel };
    const image = expect.objectContaining({ type: 'image', source });
    const text = (words: string) => expect.objectContaining({ type: 'text', text: words });
    const [first, second] = lastRequest().body.messages.filter(({ role }) => role === 'user');
    expect(first?.content.slice(-4)).toEqual([image, text('look '), image, text('here')]);
    expect(second?.content.slice(-2)).toEqual([image, text('\n/cost')]);
  });
});

describe('Documents', () => {
  it('reach the model as blocks, also from the history', async () => {
    const claude = await lab.start();
    const file = pdfOf({ pages: 2 }).toString('base64');
    const pdf: FileDocument = { mediaType: 'application/pdf', data: file, digest: 'a', name: 'a.pdf', pages: 2, at: 0 };
    const data = Buffer.from('grüße').toString('base64');
    const plain: FileDocument = { mediaType: 'text/plain', data, digest: 'b', name: '', at: 5 };
    const history: Message[] = [
      { role: 'user', text: 'look', images: [pdf] },
      { role: 'assistant', text: 'Seen.' },
    ];
    await claude.turn(asked('look here', { images: [plain], history }));
    const pdfBlock = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: file } };
    const source = { type: 'text', media_type: 'text/plain', data: 'grüße' };
    const text = (words: string) => expect.objectContaining({ type: 'text', text: words });
    const [first, second] = lastRequest().body.messages.filter(({ role }) => role === 'user');
    expect(first?.content.slice(-2)).toEqual([expect.objectContaining({ ...pdfBlock, title: 'a.pdf' }), text('look')]);
    expect(second?.content.slice(-3)).toEqual([
      text('look '),
      expect.objectContaining({ type: 'document', source }),
      text('here'),
    ]);
  });
});

describe('A refusal of the model', () => {
  it('ends the turn with its text and its category', async () => {
    api.behave = () => declines('I can');
    const { end } = await (await lab.start()).ask('hi');
    expect(end).toMatchObject({ type: 'turn-end', refusal: expect.anything() });
  });
});

/** Whether a text has a word. Short names, like that of a host, are also parts of random ids. */
function hasWord(text: string, word: string): boolean {
  return new RegExp(`(?<!\\w)${word}(?!\\w)`).test(text);
}

describe('The host information that the model receives', () => {
  const traits = [hostname(), userInfo().username, 'prompt-relay', process.version, 'Linux', '/tmp'];

  it('is empty with an API key', async () => {
    await (await lab.start()).ask('hi');
    const request = JSON.stringify(lastRequest().body);
    expect(traits.filter((trait) => hasWord(request, trait))).toEqual([]);
  });

  it('is the folder and the platform with a login, in versions that send them', async () => {
    await using other = await openLab(await learnClaude(known.program, loginToken));
    await (await other.start()).ask('hi');
    const request = JSON.stringify(other.api.requests.map(({ body }) => body));
    expect(request.includes('Primary working directory')).toBe(!isOlder);
    expect(request.includes('Linux')).toBe(!isOlder);
    expect(hasWord(request, hostname())).toBe(false);
  });
});
