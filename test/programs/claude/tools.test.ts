import { plainLaunch, type Tool, type ToolOffer, type Turn } from '../../../src/primary/cli/contract/adapter.js';
import { installClaude } from '../../support/claude-service.js';
import { apiKey, type ClaudeLab, type KnownClaude, learnClaude, openLab } from '../../support/claude-session.js';
import { type MessagesApi, type MessagesRequest, says, saysAndCalls } from '../../support/messages-api-stub.js';

let known: KnownClaude;
let lab: ClaudeLab;
let api: MessagesApi;

beforeAll(async () => {
  known = await learnClaude(await installClaude(), apiKey);
}, 600_000);

beforeEach(async () => {
  lab = await openLab(known);
  api = lab.api;
});

afterEach(() => lab[Symbol.asyncDispose]());

function tool(name: string, more: Partial<Tool> = {}): Tool {
  const schema = JSON.stringify({ type: 'object', properties: { q: { type: 'string' } } });
  return { name, description: `What ${name} does.`, schema, ...more };
}

function offering(...tools: readonly Tool[]): ToolOffer {
  return { tools, choice: 'auto', isParallel: true };
}

function asked(text: string, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text, history: [], ...more };
}

/** The messages of a request without what the CLI adds. */
function messagesOf({ body }: MessagesRequest) {
  return body.messages.filter(({ role }) => role !== 'system');
}

it('knows that this version takes tools', () => {
  expect(known.programVersion.extras).toMatchObject({ tools: 'parallel', toolChoice: true });
});

it('goes round the loop with two calls in one message, whose results come in another order', async () => {
  const offer = offering(tool('get_weather'), tool('Bash'));
  const calls = [
    { id: 'toolu_a', name: 'get_weather', input: { q: 'Oslo' } },
    { id: 'toolu_b', name: 'Bash', input: { q: 'ls' } },
  ];
  api.behave = (_, index) => (index === 0 ? saysAndCalls('I look.', ...calls) : says('It rains.'));
  const claude = await lab.start();
  const first = await claude.turn(asked('How is it?', { offer }));
  expect(first.end).toMatchObject({
    type: 'turn-end',
    calls: calls.map(({ id, name, input }) => ({ id, name, input: JSON.stringify(input) })),
    usage: { inputTokens: 18, outputTokens: 7, costUsd: null },
  });
  expect(first.deltas.join('')).toBe('I look.');
  expect(api.requests[0]?.body.tools?.map(({ name }) => name).toSorted()).toEqual(['Bash', 'get_weather']);
  const results = [
    { id: 'toolu_b', text: 'a file', isError: true },
    { id: 'toolu_a', text: 'rain', isError: false },
  ];
  const second = await claude.turn(asked('', { offer, results }));
  expect(second.end).toMatchObject({ type: 'turn-end', text: null, usage: { inputTokens: 18, outputTokens: 7 } });
  expect(second.deltas.join('')).toBe('It rains.');
  expect(api.requests).toHaveLength(2);
  const last = messagesOf(api.requests[1] as MessagesRequest).at(-1);
  expect(JSON.stringify(last?.content)).toContain('rain');
  const third = await claude.turn(asked('Thanks.', { offer }));
  expect(third.deltas.join('')).toBe('It rains.');
}, 60_000);
