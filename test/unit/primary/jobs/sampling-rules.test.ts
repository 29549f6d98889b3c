import { ClaudeModels } from '../../../../src/primary/cli/adapters/claude/model-rules.js';
import { fitSampling } from '../../../../src/primary/cli/adapters/claude/request-fields.js';
import {
  type Capabilities,
  optionalWishes,
  plainLaunch,
  type Turn,
} from '../../../../src/primary/cli/contract/adapter.js';
import { SamplingRules, unsentWishes } from '../../../../src/primary/jobs/sampling-rules.js';
import { cliError } from '../../../../src/shared/errors.js';
import type { Sampling } from '../../../../src/shared/job.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { jobRequest } from '../../../support/jobs/job-records.js';

const models = new ClaudeModels();
const extras: Capabilities = {
  wishes: optionalWishes,
  fitSampling: (sampling, { model, thinks }) => fitSampling(sampling, thinks, models.rulesOf(model)),
  rulesOf: (model) => models.rulesOf(model),
};
const route = { adapterModel: 'm', cli: { name: 'claude', program: { extras } } };

function turn(sampling: Sampling, more: Partial<Turn> = {}): Turn {
  return { ...plainLaunch(null), text: 'Hi', history: [], sampling, ...more };
}

function refusal(message: string): Error {
  return cliError('other', `the model CLI reports: API Error: 400 ${message}`);
}

const [ada, bob] = ['key ada', 'key bob'] as const;

const rules = () => new SamplingRules(true, new FakeClock());

describe('The sampling of a turn', () => {
  it.each<[Sampling, Partial<Turn>, Sampling | undefined]>([
    [{ temperature: 1.5 }, {}, { temperature: 1 }],
    [{ temperature: 0.7, topP: 0.9 }, {}, { temperature: 0.7 }],
    [{ topP: 0.9 }, {}, { topP: 0.9 }],
    [{ temperature: 0.7, maxTokens: 5000 }, { effort: 'high' }, { maxTokens: 5000 }],
    [{ temperature: 0.7, maxTokens: 100 }, { effort: 'high' }, { temperature: 0.7, maxTokens: 100 }],
    [{ topP: 0.9 }, { thinking: 'summarized' }, undefined],
    [{ temperature: 0.7, maxTokens: 100 }, { model: 'claude-opus-5-5' }, { maxTokens: 100 }],
    [{ temperature: 1 }, { model: 'claude-opus-5-5' }, { temperature: 1 }],
    [{ topP: 0.97 }, { model: 'claude-sonnet-5' }, undefined],
  ])('%j is adjusted to what the API accepts', (asked, more, sampling) => {
    expect(rules().fit(turn(asked, more), route, extras, ada).sampling).toEqual(sampling);
  });

  it.each<[string, Sampling | undefined]>([
    ['`temperature` is deprecated for this model.', { maxTokens: 9000 }],
    ['`temperature` may only be set to 1 when thinking is enabled.', { maxTokens: 9000 }],
    ['`max_tokens` must be greater than `thinking.budget_tokens`.', { temperature: 0.5 }],
    ['max_tokens: 9000 > 8192, which is the maximum allowed for m', { temperature: 0.5, maxTokens: 8192 }],
  ])('is sent again without the field named in %j', (message, sampling) => {
    const again = rules().repeatable(refusal(message), turn({ temperature: 0.5, maxTokens: 9000 }), route, ada);
    expect(again?.sampling).toEqual(sampling);
  });

  it.each([
    ['claude-opus-4-5', []],
    ['claude-opus-5', ['temperature']],
  ])('is reported as ignored if the model does not support it: %s', (adapterModel, ignored) => {
    const request = jobRequest({ sampling: { temperature: 0.5 } });
    expect(rules().ignored(request, { ...route, adapterModel })).toEqual(ignored);
  });

  it('is not sent again if the API names no sampling field, or one that was not sent', () => {
    expect(rules().repeatable(refusal('messages: odd'), turn({ temperature: 0.5 }), route, ada)).toBeNull();
    expect(rules().repeatable(refusal('top_p is deprecated'), turn({ temperature: 0.5 }), route, ada)).toBeNull();
  });
});

describe('A summary of the thoughts', () => {
  const wish = turn({}, { thinking: 'summarized' });

  it.each([
    'Your organization must be verified to generate reasoning summaries. Please go to your settings.',
    "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
  ])('is not requested again for an hour after %j', async (message) => {
    const clock = new FakeClock();
    const sampling = new SamplingRules(true, clock);
    expect(sampling.fit(wish, route, extras, ada).thinking).toBe('summarized');
    expect(sampling.repeatable(refusal(message), wish, route, ada)).not.toHaveProperty('thinking');
    expect(sampling.fit(wish, route, extras, ada)).not.toHaveProperty('thinking');
    await clock.advance(60 * 60 * 1000);
    expect(sampling.fit(wish, route, extras, ada).thinking).toBe('summarized');
  });

  it('is still requested after other failures', () => {
    expect(rules().repeatable(refusal('the reasoning is too long'), wish, route, ada)).toBeNull();
  });
});

describe('A refused field', () => {
  const wish = turn({ temperature: 0.5, maxTokens: 9 });

  it.each([
    '`temperature` is deprecated for this model.',
    'temperature: Extra inputs are not permitted',
    "Unsupported parameter: 'temperature' is not supported with this model.",
    'This model does not support the `temperature` parameter.',
  ])('is omitted for an hour after %j, unlike other fields', async (message) => {
    const clock = new FakeClock();
    const sampling = new SamplingRules(true, clock);
    sampling.repeatable(refusal(message), wish, route, ada);
    expect(sampling.fit(wish, route, extras, ada).sampling).toEqual({ maxTokens: 9 });
    expect(sampling.fit(wish, { ...route, adapterModel: 'other' }, extras, ada).sampling).toEqual(wish.sampling);
    await clock.advance(60 * 60 * 1000);
    expect(sampling.fit(wish, route, extras, ada).sampling).toEqual(wish.sampling);
  });

  it('is sent for another client until the requests of two clients were refused', () => {
    const sampling = rules();
    const refused = refusal('`temperature` is deprecated for this model.');
    for (const user of ['one', 'two']) sampling.repeatable(refused, wish, route, `${ada}/${user}`);
    expect(sampling.fit(wish, route, extras, ada).sampling).toEqual({ maxTokens: 9 });
    expect(sampling.fit(wish, route, extras, bob).sampling).toEqual(wish.sampling);
    sampling.repeatable(refused, wish, route, bob);
    expect(sampling.fit(wish, route, extras, 'key eve').sampling).toEqual({ maxTokens: 9 });
  });

  it.each([
    'temperature: range: 0..1',
    '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
    '`temperature` may only be set to 1 when thinking is enabled.',
    '`temperature` is not supported when thinking is enabled.',
    "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
    "tool_choice: Tool 'temperature is not supported' not found",
  ])('is sent for the next client after %j', (message) => {
    const sampling = rules();
    expect(sampling.repeatable(refusal(message), wish, route, ada)?.sampling).toEqual({ maxTokens: 9 });
    expect(sampling.fit(wish, route, extras, ada).sampling).toEqual(wish.sampling);
  });
});

describe('A field that the relay adds', () => {
  const tools = [{ name: 'not_supported', description: '', schema: '{}' }];
  const offer = { tools, choice: 'required', isParallel: true } as const;
  const wish = turn({ maxTokens: 9 }, { offer });

  it.each([
    ['"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive".', 'thinking'],
    ['`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive', 'thinking'],
    ['context_management: Extra inputs are not permitted', 'thinking'],
    ['tool_choice: forced tool use is not supported for this model.', 'tool_choice'],
    ['Thinking may not be enabled when tool_choice forces tool use.', 'tool_choice'],
  ])('is omitted for an hour after %j', async (message, field) => {
    const clock = new FakeClock();
    const sampling = new SamplingRules(true, clock);
    expect(sampling.repeatable(refusal(message), wish, route, ada)).toEqual({ ...wish, withheld: [field] });
    expect(sampling.fit(wish, route, extras, ada).withheld).toEqual([field]);
    expect(sampling.fit(wish, { ...route, adapterModel: 'other' }, extras, ada)).not.toHaveProperty('withheld');
    await clock.advance(60 * 60 * 1000);
    expect(sampling.fit(wish, route, extras, ada)).not.toHaveProperty('withheld');
  });

  it('is omitted once: the same refusal again is an error', () => {
    const message = refusal('tool_choice: forced tool use is not supported for this model.');
    const again = rules().repeatable(message, wish, route, ada) as Turn;
    expect(rules().repeatable(message, again, route, ada)).toBeNull();
  });

  it.each([
    "tool_choice: Tool 'not supported' not found in provided tools",
    "messages.0.content.0.text: 'thinking: not supported' is odd",
    'messages.1: thinking blocks cannot be changed',
  ])('is still sent after %j', (message) => {
    expect(rules().repeatable(refusal(message), wish, route, ada)).toBeNull();
  });

  it('is not sent if the rules of the model exclude it', () => {
    const fitting = new SamplingRules(false, new FakeClock()).fit(
      { ...wish, model: 'claude-opus-5-5' },
      route,
      extras,
      ada,
    );
    expect(fitting).toMatchObject({ withheld: ['tool_choice'] });
  });
});

describe('A breakpoint of the prompt cache', () => {
  const cache = { ttl: '5m', restLength: 0 } as const;
  const tooMany = 'A maximum of 4 blocks with cache_control may be provided. Found 5.';
  const request = (wish: object) => jobRequest({ client: ada, sampling: {}, ...wish });

  it.each<Partial<Turn>>([{ cache }, {}])('is omitted for an hour after the API counts too many: %j', async (wish) => {
    const clock = new FakeClock();
    const sampling = new SamplingRules(true, clock);
    const again = sampling.repeatable(refusal(tooMany), turn({}, wish), route, ada) as Turn;
    expect(again.cache).toBeNull();
    expect(sampling.repeatable(refusal(tooMany), again, route, ada)).toBeNull();
    expect(sampling.fit(turn({}, wish), route, extras, ada).cache).toBeNull();
    const unsent = 'cache' in wish ? ['cache'] : [];
    expect(unsentWishes(request(wish), again)).toEqual(unsent);
    expect(sampling.ignored(request(wish), route)).toEqual(unsent);
    await clock.advance(60 * 60 * 1000);
    expect(sampling.fit(turn({}, wish), route, extras, ada).cache).toEqual(wish.cache);
    expect(sampling.ignored(request(wish), route)).toEqual([]);
  });

  it('is sent for the next client after another refusal', () => {
    const sampling = rules();
    const late = "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after …";
    expect(sampling.repeatable(refusal(late), turn({}, { cache }), route, ada)?.cache).toBeNull();
    expect(sampling.fit(turn({}, { cache }), route, extras, ada).cache).toEqual(cache);
  });

  it('is ignored by a program that has none', () => {
    const program = { extras: { ...extras, wishes: ['temperature'] } } as const;
    const other = { ...route, cli: { name: 'other', program } };
    expect(rules().ignored(request({ cache }), other)).toEqual(['cache']);
    expect(rules().repeatable(refusal(tooMany), turn({}, { cache }), other, ada)).toBeNull();
  });
});
