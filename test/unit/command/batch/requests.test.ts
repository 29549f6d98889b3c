import type { Client } from '../../../../src/command/base/client.js';
import { CommandError, exitCodes, ServiceError } from '../../../../src/command/base/errors.js';
import type { ServerEvent } from '../../../../src/command/base/http.js';
import type { PromptEnd } from '../../../../src/command/batch/ends.js';
import { Patience } from '../../../../src/command/batch/patience.js';
import type { BadLine, Prompt } from '../../../../src/command/batch/prompts.js';
import { Requests } from '../../../../src/command/batch/requests.js';
import type { ErrorBody } from '../../../../src/shared/api/error.js';
import { withResolvers } from '../../../../src/shared/async.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { settled } from '../../../support/basics/settled.js';
import { user } from '../../../support/doors/sdk-messages.js';

const never = new AbortController().signal;
const answer = { response: 'y', model: 'm', usage: null, request_id: 'r' };

function chunk(fields: object): ServerEvent {
  return { event: 'message', data: JSON.stringify({ id: 'chatcmpl-r', model: 'm', ...fields }) };
}

const done: readonly ServerEvent[] = [
  chunk({ choices: [{ delta: { content: 'y' }, finish_reason: 'stop' }] }),
  { event: 'message', data: '[DONE]' },
];

function failed(code: string): readonly ServerEvent[] {
  return [chunk({ error: { message: 'm', code } })];
}

function refusal(error: ErrorBody['error'], seconds?: number): ServiceError {
  return new ServiceError({ error, message: 'm', request_id: 'q', ...(seconds && { retry_after_seconds: seconds }) });
}

async function* numbered(count: number): AsyncGenerator<Prompt | BadLine> {
  for (let id = 0; id < count; id++) yield { id, line: id + 1, body: { messages: [user(String(id))] }, images: [] };
}

type Reply = readonly ServerEvent[] | Error | Promise<readonly ServerEvent[]>;

/** Sends prompts to a client that answers each request with the next reply. A stream without `[DONE]` is cut. */
function sendingOf(replies: readonly Reply[], { count = 1, concurrency = 1, stopping = never, cutting = never } = {}) {
  const [clock, sent, ends, left] = [new FakeClock(), [] as object[], new Map<unknown, PromptEnd>(), [...replies]];
  const client: Pick<Client, 'stream'> = {
    async *stream(_path, fields, signal) {
      sent.push(fields);
      const aborted = withResolvers<never>();
      aborted.promise.catch(() => {});
      signal.addEventListener('abort', () => aborted.reject(signal.reason));
      const reply = left.shift() ?? done;
      if (reply instanceof Error) throw reply;
      yield* await Promise.race([reply, aborted.promise]);
    },
  };
  const patience = new Patience(clock);
  const requests = new Requests(client, patience, async () => undefined, concurrency);
  const place = async ({ id }: Prompt | BadLine, end: PromptEnd) => void ends.set(id, end);
  const whole = requests.send({ prompts: numbered(count), place, stopping, cutting });
  whole.catch(() => {});
  return { clock, sent, ends, patience, whole };
}

const away = new CommandError(exitCodes.unavailable, 'no service answers');

describe('A prompt that is sent as a request', () => {
  it.each<[string, Reply, number]>([
    ['is away', away, 500],
    ['is no relay for a moment', new CommandError(exitCodes.protocol, 'bad gateway'), 500],
    ['drains', refusal('shutting_down', 5), 5000],
    ['has a limit', refusal('rate_limited', 300), 300_000],
    ['has no room', refusal('concurrency_limited', 2), 2000],
    ['has no store', refusal('store_unavailable', 5), 5000],
    ['has let it wait too long', failed('queue_timeout'), 500],
    ['has an account that is used up', failed('insufficient_quota'), 500],
    ['has no login', failed('auth'), 30_000],
    ['was killed', failed('host_lost'), 500],
    ['breaks the connection', done.slice(0, 1), 500],
  ])('waits, and is sent again, while the service %s', async (_, reply, ms) => {
    const { clock, sent, ends, patience, whole } = sendingOf([reply]);
    await clock.advance(ms - 1);
    expect(sent).toHaveLength(1);
    expect(patience.heldBecause).not.toBeNull();
    await clock.advance(1);
    await whole;
    expect(ends.get(0)).toEqual(answer);
    expect(patience.heldBecause).toBeNull();
  });

  it('waits longer each time, up to half a minute', async () => {
    const { clock, sent, ends, whole } = sendingOf(Array.from({ length: 9 }, () => away));
    await clock.advance(31_500);
    expect(sent).toHaveLength(7);
    await clock.advance(90_000);
    await whole;
    expect(ends.get(0)).toEqual(answer);
  });

  it('fails if the model failed, or if the service rejects the request', async () => {
    const { ends, whole } = sendingOf([failed('crashed'), refusal('validation_error')], { count: 2 });
    await whole;
    expect(ends.get(0)).toEqual({ error: { code: 'cli_error', reason: 'crashed', message: 'm' } });
    expect(ends.get(1)).toEqual({ error: { code: 'validation_error', message: 'm', request_id: 'q' } });
  });

  it('ends the batch with all open requests if the API key is rejected', async () => {
    const open = withResolvers<readonly ServerEvent[]>();
    const { whole, ends } = sendingOf([open.promise, refusal('unauthorized')], { count: 9, concurrency: 2 });
    await expect(whole).rejects.toThrow('unauthorized');
    expect(ends.size).toBe(0);
  });

  it('ends at once if the batch is cut, also while it waits', async () => {
    const cutting = new AbortController();
    const { clock, whole } = sendingOf([refusal('rate_limited', 300)], { cutting: cutting.signal });
    await clock.advance(1000);
    cutting.abort(new Error('cut'));
    await expect(whole).rejects.toThrow('cut');
  });
});

describe('Requests', () => {
  it('are as many at once as allowed; once stopped, the open ones are answered', async () => {
    const [open, stopping] = [withResolvers<readonly ServerEvent[]>(), new AbortController()];
    const { sent, ends, whole } = sendingOf([open.promise, open.promise, open.promise], {
      ...{ count: 10, concurrency: 3, stopping: stopping.signal },
    });
    await settled();
    expect(sent).toHaveLength(3);
    stopping.abort();
    open.resolve(done);
    await whole;
    expect([...ends.keys()]).toEqual([0, 1, 2]);
  });
});
