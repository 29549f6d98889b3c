import type { SdkInput } from '../../support/clients/sdk-client.js';
import { keys, occupied, type SdkFace, type SdkLab, startHasty } from '../../support/clients/sdk-lab.js';
import { recovers } from '../../support/jobs/jobs.js';
import type { Service } from '../../support/service/service.js';

/** Failures as each API reports them: status, type, and the code, which only OpenAI's API has. */
const request = 'invalid_request_error';
const api = 'api_error';
const server = 'server_error';
export const failureForms = {
  'wrong key': { openai: [401, 'authentication_error', 'unauthorized'], anthropic: [401, 'authentication_error'] },
  'scope that lacks': { openai: [403, 'permission_error', 'forbidden'], anthropic: [403, 'permission_error'] },
  'unknown model': { openai: [404, request, 'model_not_found'], anthropic: [404, 'not_found_error'] },
  'body too large': { openai: [413, request, 'payload_too_large'], anthropic: [413, 'request_too_large'] },
  'bad field': { openai: [400, request, 'validation_error'], anthropic: [400, request] },
  'too many requests': { openai: [429, 'rate_limit_error', 'rate_limited'], anthropic: [429, 'rate_limit_error'] },
  'full queue': { openai: [429, 'rate_limit_error', 'concurrency_limited'], anthropic: [429, 'rate_limit_error'] },
  'shutting down': { openai: [503, server, 'shutting_down'], anthropic: [503, api] },
  overloaded: { openai: [503, server, 'overloaded'], anthropic: [529, 'overloaded_error'] },
  quota: { openai: [429, 'insufficient_quota', 'insufficient_quota'], anthropic: [429, 'rate_limit_error'] },
  prompt_too_long: { openai: [400, request, 'context_length_exceeded'], anthropic: [400, request] },
  'model that the program does not know': {
    openai: [404, request, 'model_not_found'],
    anthropic: [404, 'not_found_error'],
  },
  other: { openai: [500, server, 'other'], anthropic: [500, api] },
  crash: { openai: [500, server, 'crashed'], anthropic: [500, api] },
  'program that is not there': { openai: [500, server, 'spawn_error'], anthropic: [500, api] },
  timeout: { openai: [504, server, 'timeout'], anthropic: [504, 'timeout_error'] },
  'wait that is too long': { openai: [504, server, 'queue_timeout'], anthropic: [504, 'timeout_error'] },
} as const satisfies Record<string, Record<SdkFace['dialect'], readonly [number, string, string?]>>;

type Failure = keyof typeof failureForms;

interface Provocation {
  readonly service: keyof Pick<SdkLab, 'strict' | 'hasty' | 'broken' | 'leaving'>;
  readonly input?: SdkInput;
  /** Whether the service cannot be used afterwards. Such a failure gets a separate service. */
  readonly isFatal?: true;
  /** Brings about the condition of the failure. */
  readonly given?: (service: Service, ask: () => Promise<unknown>) => Promise<Disposable | undefined>;
}

const withKey = (prompt: string): SdkInput => ({ key: keys.all, prompt });

const provocations: Readonly<Record<Failure, Provocation>> = {
  'wrong key': { service: 'strict', input: { key: 'no-such-key' } },
  'scope that lacks': { service: 'strict', input: { key: keys.chat } },
  'unknown model': { service: 'strict', input: { key: keys.all, model: 'gpt-of-tomorrow' } },
  'body too large': { service: 'strict', input: withKey('long '.repeat(1_000_000)) },
  'bad field': { service: 'strict', input: withKey(' ') },
  'too many requests': {
    service: 'strict',
    input: { key: keys.rare },
    given: async (_, ask) => {
      await ask();
      return undefined;
    },
  },
  'full queue': { service: 'strict', input: { key: keys.all }, given: (service) => occupied(service, 2, keys.all) },
  'shutting down': { service: 'leaving' },
  overloaded: { service: 'strict', input: withKey('fail overloaded') },
  /** No other job is started for a while. */
  quota: { service: 'hasty', isFatal: true, input: { prompt: 'fail quota' } },
  prompt_too_long: { service: 'strict', input: withKey('fail prompt_too_long') },
  'model that the program does not know': { service: 'strict', input: withKey('fail model_unknown') },
  other: { service: 'strict', input: withKey('fail other') },
  crash: { service: 'strict', input: withKey('die') },
  'program that is not there': { service: 'broken', input: { model: 'there' } },
  timeout: { service: 'hasty', input: { prompt: 'silent' } },
  'wait that is too long': { service: 'hasty', given: (service) => occupied(service) },
};

/** Tests the error that the SDK raises for each failure. */
export function describeFailures(lab: SdkLab, face: SdkFace): void {
  it.each(Object.entries(provocations))(
    'raises the matching error: %s',
    async (failure, { service, isFatal, input = {}, given }) => {
      await using own = isFatal ? await startHasty() : null;
      const at = own ?? lab[service];
      using _given = await given?.(at, () => lab.client.run(at, face.name, 'ask', input));
      const raised = await lab.client.failure(at, face.name, 'ask', input);
      const [status, type, code] = failureForms[failure as Failure][face.dialect] as readonly [number, string, string?];
      expect(raised.failure).toMatchObject({ class: face.classOf(status, code ?? ''), status });
      expect([raised.failure.type, raised.failure.code ?? undefined]).toEqual([type, code]);
      expect(raised.failure.requestId).toMatch(/^[0-9a-f-]{36}$/);
      expect(raised.failure.requestId).toBe(raised.seen[0]?.['x-request-id']);
      expect(raised.seen.map((answer) => answer.status)).toEqual([status]);
    },
  );

  it.each([
    ['begin overloaded', 'it fails: overloaded'],
    ['die', 'the model CLI exited with code 3'],
  ])('raises an error in the middle of an answer, and does not retry: %s', async (prompt, message) => {
    const input = { ...withKey(prompt), maxRetries: 2 };
    const { failure, seen } = await lab.client.failure(lab.strict, face.name, 'stream', input);
    expect(failure.message).toContain(message);
    expect(seen.map(({ status }) => status)).toEqual([200]);
    await recovers(lab.strict);
  });

  it.each([false, true])(
    'raises an error before the first text of a stream, and does not retry, with thoughts: %s',
    async (thinks) => {
      const input = { ...withKey('fail other'), thinks, maxRetries: 2 };
      const { failure, seen } = await lab.client.failure(lab.strict, face.name, 'stream', input);
      expect(failure.message).toContain('it fails: other');
      expect(seen.map(({ status }) => status)).toEqual([200]);
    },
  );
}
