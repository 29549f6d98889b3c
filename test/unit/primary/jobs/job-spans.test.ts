import { cliError, RelayError } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { all, answers, endOf, hangs, type JobHarness, jobHarness, throws } from '../../../support/jobs/job-harness.js';

const trace = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  isSampled: true,
  state: 'a=1',
};

interface WrittenSpan {
  readonly name: string;
  readonly spanId: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

/** Returns the spans of a harness, with their attributes by name. */
function spansOf({ spans }: JobHarness) {
  return (spans as unknown as WrittenSpan[]).map(({ attributes, ...span }) => ({
    ...span,
    attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
  }));
}

const asked = { trace, text: 'a secret question', model: 'fable', requestId: 'traced' };

describe('The spans of a job', () => {
  it('are its wait, the start of its process and its turn, all below the span of its request', async () => {
    const harness = jobHarness({ script: answers, isTraced: true });
    await all(harness.run({ ...asked, sampling: { maxTokens: 5, temperature: 0.5 } }));
    const spans = spansOf(harness);
    expect(spans.map(({ name }) => name)).toEqual(['wait', 'cli start', 'chat fable']);
    const { traceId, spanId: parentSpanId } = trace;
    for (const span of spans) expect(span).toMatchObject({ traceId, parentSpanId, traceState: 'a=1', flags: 0x101 });
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(3);
    expect(spans[2]).toMatchObject({
      kind: 3,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'scripted',
        'gen_ai.request.model': 'fable',
        'gen_ai.request.max_tokens': '5',
        'gen_ai.request.temperature': 0.5,
        'gen_ai.output.type': 'text',
        'gen_ai.response.model': 'eliza',
        'gen_ai.usage.input_tokens': '3',
        'gen_ai.usage.output_tokens': '2',
        'prompt_relay.process': 'new',
      },
    });
    expect(spans[2]).not.toHaveProperty('status');
    expect(JSON.stringify(spans)).not.toMatch(/secret|Hello|Hel/);
    await harness.expectTidy();
  });

  it('last as long as the steps they show', async () => {
    const harness = jobHarness({ script: hangs, isTraced: true });
    const first = all(harness.run({ text: 'untraced' }));
    const second = all(harness.run(asked));
    await harness.clock.advance(5000);
    harness.runner.cutAll(new RelayError('shutting_down', 'the service ends'));
    await Promise.all([first, second]);
    const [wait, ...others] = spansOf(harness);
    expect(others).toEqual([]);
    expect(wait).toMatchObject({ name: 'wait', status: { code: 2 }, attributes: { 'error.type': 'shutting_down' } });
    expect(Number(wait?.endTimeUnixNano) - Number(wait?.startTimeUnixNano)).toBe(5e9);
  });

  it.each([
    ['timeout', undefined, hangs],
    ['cli_error', 'crashed', throws(cliError('crashed', 'a secret of the program'))],
    ['internal_error', undefined, throws(new Error('a secret defect'))],
  ])('report of a failure %s its class, and no message', async (code, reason, script) => {
    const harness = jobHarness({ script, isTraced: true });
    const events = all(harness.run(asked));
    await settled();
    await harness.clock.advance(120_000);
    expect(endOf(await events).outcome).toBe(code);
    const turn = spansOf(harness).at(-1);
    expect(turn).toMatchObject({ name: 'chat fable', status: { code: 2 }, attributes: { 'error.type': code } });
    expect(turn?.attributes['prompt_relay.error.reason']).toBe(reason);
    expect(JSON.stringify(harness.spans)).not.toContain('secret');
  });

  it('report that a process could not be started', async () => {
    const start = () => Promise.reject(new RelayError('spawn_error', 'no such file'));
    const harness = jobHarness({ start, isTraced: true });
    await all(harness.run(asked));
    expect(spansOf(harness)).toMatchObject([
      { name: 'wait' },
      { name: 'cli start', status: { code: 2 }, attributes: { 'error.type': 'spawn_error' } },
    ]);
  });

  it('are not recorded if the trace is not sampled or missing, or nothing is exported', async () => {
    const harness = jobHarness({ script: answers, isTraced: true });
    await all(harness.run({ trace: { ...trace, isSampled: false } }));
    await all(harness.run());
    expect(harness.spans).toEqual([]);
    const silent = jobHarness({ script: answers });
    await all(silent.run(asked));
    expect(silent.spans).toEqual([]);
  });
});
