import { spansOfJobs } from '../../../../src/features/traces/job-spans.js';
import { spanTexts } from '../../../../src/features/traces/span.js';
import { cliError, RelayError } from '../../../../src/shared/errors.js';
import { settled } from '../../../support/basics/settled.js';
import { all, answers, endOf, hangs, jobHarness, throws } from '../../../support/jobs/job-harness.js';

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

/** Creates a harness whose traced jobs write spans. `spans` returns them, with their attributes by name. */
function tracedHarness(options: Parameters<typeof jobHarness>[0]) {
  const texts: string[] = [];
  const sink = { addSpan: (span: Parameters<typeof spanTexts>[0][number]) => void texts.push(...spanTexts([span])) };
  const harness = jobHarness({
    ...options,
    traceJob: (request, route) => spansOfJobs(sink, harness.clock)(request, route),
  });
  const spans = () =>
    texts.map((text) => {
      const { attributes, ...span } = JSON.parse(text) as WrittenSpan;
      return {
        ...span,
        attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
      };
    });
  return { harness, spans };
}

const asked = { trace, text: 'a secret question', model: 'fable', requestId: 'traced' };

describe('The spans of a job', () => {
  it('are its wait, the start of its process and its turn, all below the span of its request', async () => {
    const { harness, spans } = tracedHarness({ script: answers });
    await all(harness.run({ ...asked, sampling: { maxTokens: 5, temperature: 0.5 } }));
    const written = spans();
    expect(written.map(({ name }) => name)).toEqual(['wait', 'cli start', 'chat fable']);
    const { traceId, spanId: parentSpanId } = trace;
    for (const span of written) expect(span).toMatchObject({ traceId, parentSpanId, traceState: 'a=1', flags: 0x101 });
    expect(new Set(written.map(({ spanId }) => spanId)).size).toBe(3);
    expect(written[2]).toMatchObject({
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
    expect(written[2]).not.toHaveProperty('status');
    expect(JSON.stringify(written)).not.toMatch(/secret|Hello|Hel/);
    await harness.expectTidy();
  });

  it('last as long as the steps they show', async () => {
    const { harness, spans } = tracedHarness({ script: hangs });
    const first = all(harness.run({ text: 'untraced' }));
    const second = all(harness.run(asked));
    await harness.clock.advance(5000);
    harness.runner.openJobs.cutAll(new RelayError('shutting_down', 'the service ends'));
    await Promise.all([first, second]);
    const [wait, ...others] = spans();
    expect(others).toEqual([]);
    expect(wait).toMatchObject({ name: 'wait', status: { code: 2 }, attributes: { 'error.type': 'shutting_down' } });
    expect(Number(wait?.endTimeUnixNano) - Number(wait?.startTimeUnixNano)).toBe(5e9);
  });

  it.each([
    ['timeout', undefined, hangs],
    ['cli_error', 'crashed', throws(cliError('crashed', 'a secret of the program'))],
    ['internal_error', undefined, throws(new Error('a secret defect'))],
  ])('report of a failure %s its class, and no message', async (code, reason, script) => {
    const { harness, spans } = tracedHarness({ script });
    const events = all(harness.run(asked));
    await settled();
    await harness.clock.advance(120_000);
    expect(endOf(await events).outcome).toBe(code);
    const turn = spans().at(-1);
    expect(turn).toMatchObject({ name: 'chat fable', status: { code: 2 }, attributes: { 'error.type': code } });
    expect(turn?.attributes['prompt_relay.error.reason']).toBe(reason);
    expect(JSON.stringify(spans())).not.toContain('secret');
  });

  it('report that a process could not be started', async () => {
    const start = () => Promise.reject(new RelayError('spawn_error', 'no such file'));
    const { harness, spans } = tracedHarness({ start });
    await all(harness.run(asked));
    expect(spans()).toMatchObject([
      { name: 'wait' },
      { name: 'cli start', status: { code: 2 }, attributes: { 'error.type': 'spawn_error' } },
    ]);
  });

  it('are not recorded if the trace is not sampled, or missing', async () => {
    const { harness, spans } = tracedHarness({ script: answers });
    await all(harness.run({ trace: { ...trace, isSampled: false } }));
    await all(harness.run());
    expect(spans()).toEqual([]);
  });
});
