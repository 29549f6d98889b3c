import { ClaudeWriter } from '../../../../../../src/primary/cli/adapters/claude/writer.js';
import { plainLaunch, type ToolOffer, type Turn } from '../../../../../../src/primary/cli/contract/adapter.js';

const offer: ToolOffer = { tools: [{ name: 'note', description: '', schema: '{}' }], choice: 'auto', isParallel: true };
const forced: ToolOffer = { ...offer, choice: 'required' };
const results = [{ id: 'call_a', text: 'Noted.', isError: false }];
const round: Partial<Turn> = {
  ...{ offer, results, text: '' },
  history: [
    { role: 'user', text: 'Hi' },
    { role: 'assistant', text: '', calls: [{ id: 'call_a', name: 'note', input: '{}' }] },
  ],
};

interface ControlLine {
  readonly request?: {
    readonly subtype: string;
    readonly max_thinking_tokens?: number | null;
    readonly settings?: { readonly effortLevel?: string | null; readonly env?: Readonly<Record<string, string>> };
  };
}

function write(writer: ClaudeWriter, model: string, more: Partial<Turn>, number = 1) {
  const { text, rest = [] } = writer.write({ ...plainLaunch(model), text: 'Hi', history: [], ...more }, number);
  const lines = [text, ...rest]
    .join('')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as ControlLine);
  const requests = lines.flatMap(({ request }) => request ?? []);
  const thoughts = requests.find(({ subtype }) => subtype === 'set_max_thinking_tokens');
  const settings = requests.find(({ subtype }) => subtype === 'apply_flag_settings')?.settings;
  const body = JSON.parse(settings?.env?.CLAUDE_CODE_EXTRA_BODY ?? '{}') as Record<string, unknown>;
  return { max: thoughts?.max_thinking_tokens, body, effort: settings?.effortLevel };
}

const newWriter = () => new ClaudeWriter(new Set(['model', 'system', 'schema', 'effort', 'tools']));
const writeFirst = (model: string, more: Partial<Turn>) => write(newWriter(), model, more);

const off = { max: 0, body: {}, effort: undefined };
const betweenTools = { thinking: { type: 'between_tools' }, context_management: null };

describe('A turn with a small limit', () => {
  const more = { sampling: { maxTokens: 500 } };

  it.each([
    ['claude-opus-5-5', { max: undefined, body: {}, effort: 'low' }],
    ['claude-haiku-5-5', { max: undefined, body: {}, effort: 'low' }],
    ['claude-sonnet-5-5', { max: undefined, body: betweenTools, effort: undefined }],
    ['claude-sonnet-5', off],
    ['claude-opus-4-5', off],
    ['a model of a gateway', off],
  ])('switches thoughts off as far as the model accepts it: %s', (model, sent) => {
    expect(writeFirst(model, more)).toEqual(sent);
  });

  it('has the effort of the client', () => {
    expect(writeFirst('claude-opus-5-5', { ...more, effort: 'high' }).effort).toBe('high');
  });

  it('has the lowest effort if the API has refused to switch thoughts off', () => {
    const withheld = ['thinking'] as const;
    expect(writeFirst('claude-sonnet-5', { ...more, withheld })).toEqual({ max: undefined, body: {}, effort: 'low' });
  });

  it('does not affect the next turn of the process', () => {
    const writer = newWriter();
    write(writer, 'claude-sonnet-5', more);
    expect(write(writer, 'claude-sonnet-5', {}, 2).max).toBeNull();
  });
});

describe('A turn with sampling', () => {
  it.each([
    [{ temperature: 0.3 }, { max: 0, body: { temperature: 0.3 } }],
    [{ temperature: 1 }, { max: undefined, body: { temperature: 1 } }],
    [{ topP: 0.96 }, { max: undefined, body: { top_p: 0.96 } }],
    // Where the CLI switches thoughts off, it sends a temperature, which the API refuses beside top_p.
    [{ topP: 0.5 }, { max: undefined, body: { thinking: { type: 'disabled' }, context_management: null, top_p: 0.5 } }],
  ])('switches thoughts off if they exclude it: %j', (sampling, sent) => {
    expect(writeFirst('claude-opus-4-5', { sampling })).toMatchObject(sent);
  });
});

describe('A demanded call', () => {
  it.each([
    ['claude-opus-4-5', {}, { max: 0, body: { tool_choice: { type: 'any' } } }],
    ['claude-haiku-5-5', {}, { max: undefined, body: { tool_choice: { type: 'any' } } }],
    ['claude-opus-5-5', { withheld: ['tool_choice'] as const }, { max: undefined, body: {} }],
  ])('is sent without thoughts where the API accepts it: %s', (model, more, sent) => {
    expect(writeFirst(model, { offer: forced, ...more })).toEqual({ ...sent, effort: undefined });
  });
});

describe('A tool round', () => {
  it.each([
    ['claude-opus-4-5', 0],
    ['claude-haiku-4-5', 0],
    ['claude-opus-5-5', undefined],
    ['claude-sonnet-5', undefined],
  ])('is replayed without thoughts if the API would require the lost ones: %s', (model, max) => {
    expect(writeFirst(model, round).max).toBe(max);
  });

  it('that began without a thought goes on without one in the same process', () => {
    const writer = newWriter();
    expect(write(writer, 'claude-opus-4-5', { offer: forced }).max).toBe(0);
    writer.tools.calls.called('call_a');
    expect(write(writer, 'claude-opus-4-5', { ...round, history: [] }, 2).max).toBeUndefined(); // thoughts are still off
    expect(write(writer, 'claude-opus-4-5', {}, 3).max).toBeNull();
  });

  it('that began with a thought goes on with thoughts', () => {
    const writer = newWriter();
    expect(write(writer, 'claude-opus-4-5', { offer }).max).toBeUndefined();
    writer.tools.calls.called('call_a');
    expect(write(writer, 'claude-opus-4-5', { ...round, history: [] }, 2).max).toBeUndefined();
  });
});
