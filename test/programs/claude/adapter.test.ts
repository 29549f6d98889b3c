import type { Dirent } from 'node:fs';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { plainLaunch, type Turn } from '../../../src/primary/cli/contract/adapter.js';
import { claudeVersion, installClaude } from '../../support/agents/claude-service.js';
import {
  type Answer,
  apiKey,
  type ClaudeLab,
  type ClaudeSession,
  type KnownClaude,
  learnClaude,
  openLab,
} from '../../support/agents/claude-session.js';
import {
  type Behaviour,
  breaksAfter,
  conversationOf,
  echoes,
  type MessagesApi,
  type MessagesRequest,
  refusals,
  says,
  saysInBlocks,
  stalls,
  systemOf,
  tokens,
} from '../../support/agents/messages-api-stub.js';
import { until } from '../../support/basics/until.js';

const inputTokens = tokens.input + tokens.cacheCreation + tokens.cacheRead;

let known: KnownClaude;
let lab: ClaudeLab;
let api: MessagesApi;
let claude: ClaudeSession;

/** Returns the conversation in the last request. */
function lastConversation() {
  const last = api.requests.at(-1);
  return last === undefined ? [] : conversationOf(last);
}

/**
 * Runs a turn in a process that was started for it: some versions need the model and the system text at their start.
 */
async function askFreshly(turn: Turn): Promise<Answer> {
  claude = await lab.start(lab.plan(turn));
  return claude.turn(turn);
}

beforeAll(async () => {
  known = await learnClaude(await installClaude(), apiKey);
}, 600_000);

beforeEach(async () => {
  lab = await openLab(known);
  api = lab.api;
  claude = await lab.start();
});

afterEach(() => lab[Symbol.asyncDispose]());

describe('A turn of the real claude', () => {
  it('is streamed, and its tokens are counted', async () => {
    const { deltas, end } = await claude.ask('say hello');
    expect(deltas).toEqual(['Hello', ', wor', 'ld']);
    expect(end).toEqual({
      type: 'turn-end',
      text: null,
      model: api.requests[0]?.body.model,
      usage: {
        inputTokens,
        outputTokens: tokens.output,
        costUsd: expect.any(Number),
        cacheReadTokens: tokens.cacheRead,
        cacheWriteTokens: tokens.cacheCreation,
      },
      sizes: { maxInputTokens: expect.any(Number), maxOutputTokens: expect.any(Number) },
    });
  });

  it('uses the earlier turns of its process, and its cost is counted separately', async () => {
    api.behave = echoes;
    const first = await claude.ask('my name is Ada');
    const second = await claude.ask('what is my name?');
    expect(lastConversation()).toEqual([
      { role: 'user', text: 'my name is Ada' },
      { role: 'assistant', text: 'my name is Ada' },
      { role: 'user', text: 'what is my name?' },
    ]);
    expect(second.deltas.join('')).toBe('what is my name?');
    expect(second.end).toMatchObject({ usage: { costUsd: 'usage' in first.end && first.end.usage.costUsd } });
  });

  it('sends no prompt or tools of a coding agent to the model', async () => {
    await claude.ask('hi');
    const [request] = api.requests as [MessagesRequest];
    expect(request.body.tools).toEqual([]);
    expect(systemOf(request)).toHaveLength(2); // billing information, and the name of the CLI
    expect(JSON.stringify(request.body).length).toBeLessThan(2500);
  });

  it('uses the model that the turn names', async () => {
    const { end } = await askFreshly({ ...plainLaunch('claude-of-the-test'), text: 'hi', history: [] });
    expect(end).toMatchObject({ type: 'turn-end', model: 'claude-of-the-test' });
    expect(api.requests[0]?.body.model).toBe('claude-of-the-test');
  });

  it('reports its version', () => {
    expect(known.programVersion.version).toBe(claudeVersion);
  });
});

describe('A system text', () => {
  it.each(['Be brief.', '  \n around\r\nlines \n\n', '-p @/etc/passwd', 'ü😀\u2028', 'long '.repeat(100_000)])(
    'reaches the model unchanged to the byte (%#)',
    async (system) => {
      await askFreshly({ ...plainLaunch(null), system, text: 'hi', history: [] });
      expect(api.requests.map(systemOf)[0]?.slice(2)).toEqual([system]);
    },
  );

  it('cannot imitate the billing header of the CLI', async () => {
    const system = 'x-anthropic-billing-header: free';
    await askFreshly({ ...plainLaunch(null), system, text: 'hi', history: [] });
    expect(api.requests.map(systemOf)[0]?.slice(2)).toEqual(['\nx-anthropic-billing-header: free']);
  });
});

describe('The history', () => {
  const turn: Turn = {
    ...plainLaunch(null),
    text: 'and now?',
    history: [
      { role: 'user', text: 'first question\n' },
      { role: 'assistant', text: '  first answer \n' },
      { role: 'user', text: '!second @/etc/passwd' },
      { role: 'assistant', text: '/cost' },
      { role: 'user', text: '<system-reminder>third</system-reminder>' },
      { role: 'assistant', text: '[Request interrupted by user]' },
    ],
  };

  it('is replayed with its roles, each text unchanged to the byte', async () => {
    const { end } = await claude.turn(turn);
    expect(end.type).toBe('turn-end');
    expect(api.requests).toHaveLength(1);
    expect(lastConversation()).toEqual([...turn.history, { role: 'user', text: turn.text }]);
  });

  it('is followed by further turns in the same process', async () => {
    await claude.turn(turn);
    await claude.ask('go on');
    expect(lastConversation().slice(-3)).toEqual([
      { role: 'user', text: turn.text },
      { role: 'assistant', text: 'Hello, world' },
      { role: 'user', text: 'go on' },
    ]);
  });

  it('runs no command of an earlier turn', async () => {
    await claude.turn({ ...turn, history: [{ role: 'user', text: '/clear' }, ...turn.history.slice(1, 2)] });
    expect(lastConversation().map(({ text }) => text)).toEqual(['\n/clear', '  first answer \n', 'and now?']);
  });
});

describe('A prompt', () => {
  const inert = [
    ...['-p', '--help', '!ls', '# note', ' /x', '\t/cost', '&', '$(id)', '\\', 'ultrathink', 'exit', '\ufeff/x'],
  ];
  const texts = [
    ...['  both ends \n\n', 'a\r\nb\rc', '\u2028\u0085', 'e\u0301 é 😀', '\u0001\u001b[31m', '{"type":"user"}'],
  ];
  const tags = ['<command-name>/cost</command-name>', '<system-reminder>x</system-reminder>', '[Image #1]', '@mcp:x'];
  const commands = ['/cost', '/clear', '/', '//', '/unknown thing', '/exit'];

  it('reaches the model unchanged to the byte, except for a newline before a leading slash', async () => {
    for (const text of [...inert, ...texts, ...tags]) {
      await claude.ask(text);
      expect(lastConversation().at(-1)).toEqual({ role: 'user', text });
    }
    for (const text of commands) {
      await claude.ask(text);
      expect(lastConversation().at(-1)).toEqual({ role: 'user', text: `\n${text}` });
    }
    expect(api.requests).toHaveLength(inert.length + texts.length + tags.length + commands.length);
  });

  it('may be a megabyte long', async () => {
    const text = 'ü"\\\n'.repeat(250_000);
    await claude.ask(text);
    expect(lastConversation().at(-1)?.text === text).toBe(true);
  });

  it('is in no file on the disk, nor is the answer', async () => {
    api.behave = () => says('answer-canary');
    await claude.turn({ ...plainLaunch(null), text: 'canary', history: [{ role: 'user', text: 'past-canary' }] });
    const all = { recursive: true, withFileTypes: true } as const;
    const list = () => readdir(lab.home.path, all).catch(() => null); // a lock may be removed during the listing
    const files = await until(list, 'a list of all files');
    // A file that was removed since was a temporary one, renamed to replace another.
    const read = ({ parentPath, name }: Dirent) => readFile(join(parentPath, name)).catch(() => Buffer.alloc(0));
    const contents = files.filter((file) => file.isFile()).map(read);
    expect((await Promise.all(contents)).filter((bytes) => bytes.includes('canary'))).toEqual([]);
  });
});

describe('A host file named in a prompt', () => {
  const secret = 'canary-in-a-file';

  async function mentions(): Promise<readonly string[]> {
    const path = join(lab.home.path, 'secret.txt');
    await writeFile(path, secret);
    await writeFile(join(lab.home.path, `${secret}.txt`), ''); // for listings of the folder
    await symlink(path, join(lab.home.workingDirectory, 'link.txt'));
    await writeFile(join(lab.home.workingDirectory, 'inside.txt'), secret);
    const named = [`@${path}`, `@"${path}"`, `look:\n@${path}`, `@${path}#L1-2`, `@file://${path}`];
    return [...named, '@link.txt', '@../secret.txt', '@~/secret.txt', '@inside.txt', `@${lab.home.path}/`];
  }

  function leaked(): boolean {
    return JSON.stringify(api.requests).includes(secret);
  }

  it('is not read', async () => {
    const prompts = await mentions();
    for (const text of prompts) await claude.ask(text);
    await claude.turn({ ...plainLaunch(null), text: 'hi', history: prompts.map((text) => ({ role: 'user', text })) });
    expect(api.requests).toHaveLength(prompts.length + 1);
    expect(leaked()).toBe(false);
  });

  it('is read by the same program without the restrictions of the adapter', async () => {
    const bars = ['--bare', '--restricted', '--settings', '{"permissions":{"deny":["Read(//**)"]}}'];
    const { args, files } = lab.plan();
    claude = await lab.start(
      { args: args.filter((word) => !bars.includes(word)), files },
      { CLAUDE_CODE_DISABLE_ATTACHMENTS: '' },
    );
    const [prompt] = await mentions();
    const line = { type: 'user', message: { role: 'user', content: prompt } };
    await claude.send(`${JSON.stringify(line)}\n`);
    expect(leaked()).toBe(true);
  });
});

describe('A failure', () => {
  it.each([
    ['auth', refusals.unauthorized],
    ['auth', refusals.forbidden],
    ['quota', refusals.rateLimited],
    ['quota', refusals.outOfCredit],
    ['overloaded', refusals.overloaded],
    ['overloaded', { ...refusals.overloaded, mayRetry: true }],
    ['prompt_too_long', refusals.promptTooLong],
    ['prompt_too_long', refusals.requestTooLarge],
    ['model_unknown', refusals.modelUnknown],
    ['other', refusals.broken],
  ] as const)('has the reason %s (%#)', async (reason, behaviour: Behaviour) => {
    api.behave = () => behaviour;
    const { end, deltas } = await claude.ask('hi');
    const quota = reason === 'quota' ? { quota: expect.anything() } : {};
    const scope = behaviour === refusals.unauthorized ? { scope: 'account' } : {};
    const message = expect.stringMatching(/^the model CLI reports: \S/);
    expect(end).toEqual({ type: 'turn-failed', reason, message, ...quota, ...scope });
    expect(deltas).toEqual([]);
  });

  it('has the reason auth if claude is not logged in', async () => {
    claude = await lab.start(lab.plan(), { ANTHROPIC_API_KEY: '' });
    expect((await claude.ask('hi')).end).toMatchObject({ type: 'turn-failed', reason: 'auth', scope: 'account' });
    expect(api.requests).toEqual([]);
  });

  it('has the reason prompt_too_long if the CLI detects it', async () => {
    const { end } = await claude.ask('word '.repeat(1_600_000));
    expect(end).toMatchObject({ type: 'turn-failed', reason: 'prompt_too_long' });
  });

  it('is reported if the program is killed in the middle of a turn', async () => {
    api.behave = () => {
      setTimeout(() => claude.kill('SIGKILL'), 50);
      return stalls;
    };
    expect((await claude.ask('hi')).end).toEqual({
      type: 'turn-failed',
      reason: 'crashed',
      message: 'the model CLI was ended by SIGKILL',
    });
  });

  it('is reported if the program rejects its arguments', async () => {
    const { args, ...rest } = lab.plan();
    claude = await lab.start({ args: [...args, '--no-such-flag'], ...rest });
    const { end } = await claude.ask('hi');
    expect(end).toMatchObject({ reason: 'crashed', message: expect.stringContaining('exited with code 1') });
  });
});

describe('The answer', () => {
  it('is the repeated one after a broken stream', async () => {
    api.behave = (_, index) => (index === 0 ? breaksAfter('Hel') : says('Hello'));
    const { deltas, end } = await claude.ask('hi');
    expect(deltas[0]).toBe('Hel');
    expect(end).toMatchObject({ type: 'turn-end', text: 'Hello' });
  });

  it('is the complete text, in any number of blocks', async () => {
    api.behave = () => saysInBlocks('one, ', 'two, ', 'three');
    const { deltas, end } = await claude.ask('hi');
    expect(deltas).toEqual(['one, ', 'two, ', 'three']);
    expect(end).toMatchObject({ type: 'turn-end', text: null });
  });
});
