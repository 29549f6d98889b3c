import type { Client, OnceOptions } from '../../../../src/command/base/client.js';
import { CommandError, exitCodes, ServiceError } from '../../../../src/command/base/errors.js';
import type { ServerEvent } from '../../../../src/command/base/http.js';
import { Asker } from '../../../../src/command/batch/asker.js';
import type { Prompt } from '../../../../src/command/batch/prompts.js';
import type { ErrorBody } from '../../../../src/shared/api/error.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';

const prompt: Prompt = { id: 'a', line: 1, path: '/ask', body: { prompt: 'x' }, imageFiles: [] };
const result = { response: 'y', model: 'm', usage: null, request_id: 'r' };
const done: ServerEvent = { event: 'done', data: JSON.stringify(result) };
const never = new AbortController().signal;

type AskerOptions = ConstructorParameters<typeof Asker>[2];
type Reply = readonly ServerEvent[] | Error;

/**
 * Client that answers each request with the next reply. A refusal is an error; a stream that ends without `done` is
 * cut.
 */
class ScriptedClient implements Pick<Client, 'streamOnce' | 'parse' | 'url'> {
  readonly url = 'http://relay';
  readonly keys: string[] = [];
  readonly #replies: Reply[];
  readonly #replayed: ReadonlySet<number>;

  constructor(replies: readonly Reply[], replayed: readonly number[] = []) {
    this.#replies = [...replies];
    this.#replayed = new Set(replayed);
  }

  async *streamOnce(_path: string, _body: object, { key, onOpen }: OnceOptions): AsyncGenerator<ServerEvent> {
    const isReplayed = this.#replayed.has(this.keys.push(key) - 1);
    const reply = this.#replies.shift() ?? [];
    const isRefused = reply instanceof Error;
    onOpen({ isOk: !isRefused, isReplayed });
    if (reply instanceof Error) throw reply;
    yield* reply;
  }

  parse<T>(text: string): T {
    return JSON.parse(text) as T;
  }
}

function refusal(error: ErrorBody['error'], more: Partial<ErrorBody> = {}): ServiceError {
  return new ServiceError({ error, message: 'm', request_id: 'q', ...more });
}

function failed(error: ErrorBody['error'], more: Partial<ErrorBody> = {}): readonly ServerEvent[] {
  return [{ event: 'error', data: JSON.stringify({ error, message: 'm', request_id: 'q', ...more }) }];
}

/** Creates an asker whose client gets these replies. */
function askerOf(replies: readonly Reply[], options: Partial<AskerOptions> = {}, replayed: readonly number[] = []) {
  const [client, clock] = [new ScriptedClient(replies, replayed), new FakeClock()];
  const usual = { salt: 's', retriesFailures: false, readImages: () => Promise.resolve(undefined) };
  const asker = new Asker(client, clock, { ...usual, ...options });
  return { client, clock, asker, ask: () => asker.ask(prompt, never) };
}

const away = new CommandError(exitCodes.unavailable, 'no service answers');

describe('A prompt of a batch', () => {
  it.each<[string, Reply, number]>([
    ['is away', away, 500],
    ['is no relay for a moment', new CommandError(exitCodes.protocol, 'bad gateway'), 500],
    ['drains', refusal('shutting_down', { retry_after_seconds: 5 }), 5000],
    ['has a limit', refusal('rate_limited', { retry_after_seconds: 300 }), 300_000],
    ['has no room', refusal('concurrency_limited', { retry_after_seconds: 2 }), 2000],
    ['has no store', refusal('store_unavailable', { retry_after_seconds: 5 }), 5000],
    ['answers the same key', refusal('idempotency_in_progress', { retry_after_seconds: 3 }), 3000],
    ['has let it wait too long', failed('queue_timeout', { retry_after_seconds: 4 }), 4000],
    ['has an account that is used up', failed('cli_error', { reason: 'quota', retry_after_seconds: 60 }), 60_000],
    ['has no login', failed('cli_error', { reason: 'auth' }), 30_000],
  ])('waits, and is sent again, while the service %s', async (_, reply, ms) => {
    const { asker, ask, clock, client } = askerOf([reply, [done]]);
    const answer = ask();
    await clock.advance(ms - 1);
    expect(client.keys).toHaveLength(1);
    await clock.advance(1);
    expect(await answer).toEqual(result);
    expect(asker.heldBecause).toBeNull();
  });

  it('waits longer each time, up to half a minute', async () => {
    const { asker, ask, clock, client } = askerOf([...Array.from({ length: 9 }, () => away), [done]]);
    const answer = ask();
    await clock.advance(31_500);
    expect(client.keys).toHaveLength(7);
    expect(asker.heldBecause).toBe('no service answers');
    await clock.advance(90_000);
    expect(await answer).toEqual(result);
    expect(new Set(client.keys).size).toBe(1);
  });

  it('is sent again if its connection breaks, with the same key, and counted', async () => {
    const { asker, ask, clock, client } = askerOf([[{ event: 'started', data: '{}' }], [done]]);
    const answer = ask();
    await clock.advance(500);
    expect(await answer).toEqual(result);
    expect(asker.rerun).toBe(1);
    expect(new Set(client.keys).size).toBe(1);
  });

  it('is sent again if its host was lost, with another key, and counted', async () => {
    const { asker, ask, client } = askerOf([failed('cli_error', { reason: 'host_lost' }), [done]]);
    expect(await ask()).toEqual(result);
    expect(asker.rerun).toBe(1);
    expect(new Set(client.keys).size).toBe(2);
  });

  it('fails if the model failed, or if the service rejects the request', async () => {
    const { ask } = askerOf([failed('cli_error', { reason: 'crashed' }), refusal('validation_error')]);
    const error = { message: 'm', request_id: 'q' };
    expect(await ask()).toEqual({ error: { ...error, code: 'cli_error', reason: 'crashed' } });
    expect(await ask()).toEqual({ error: { ...error, code: 'validation_error' } });
  });

  it('is sent with a new key if its failure was recorded and retries are enabled', async () => {
    const crashed = failed('cli_error', { reason: 'crashed' });
    expect(await askerOf([crashed], {}, [0]).ask()).toHaveProperty('error');
    const { ask, client } = askerOf([crashed, crashed, [done]], { retriesFailures: true }, [0, 1]);
    expect(await ask()).toEqual(result);
    expect(client.keys.map((key) => key.at(-1))).toEqual(['1', '2', '3']);
  });

  it('ends the batch if the API key is rejected', async () => {
    await expect(askerOf([refusal('unauthorized')]).ask()).rejects.toThrow('unauthorized');
  });

  it('ends at once if the batch is aborted, also while it waits', async () => {
    const cutting = new AbortController();
    const { asker, clock } = askerOf([refusal('rate_limited', { retry_after_seconds: 300 })]);
    const answer = asker.ask(prompt, cutting.signal);
    await clock.advance(1000);
    cutting.abort(new Error('cut'));
    await expect(answer).rejects.toThrow('cut');
  });

  it('has a different idempotency key for each output, line and text', async () => {
    const { asker, client } = askerOf([[done], [done], [done], [done]]);
    for (const each of [prompt, { ...prompt, id: 'b' }, { ...prompt, body: { prompt: 'z' } }, prompt])
      await asker.ask(each, never);
    expect(new Set(client.keys).size).toBe(3);
  });

  it('fails if an image cannot be read', async () => {
    const readImages = () => Promise.reject(new CommandError(64, '--image: gone'));
    expect(await askerOf([], { readImages }).ask()).toEqual({
      error: { code: 'validation_error', message: 'images: gone' },
    });
  });
});
