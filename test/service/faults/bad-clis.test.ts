import { stream } from '../../support/clients/event-stream.js';
import { recovers } from '../../support/jobs/jobs.js';
import { fixture, type Service, startService } from '../../support/service/service.js';

/** Far less than the time limit of a job, which ends a turn that hangs. The trial of claude waits 10 s for its exit. */
const maxTurnMs = 30_000;

type Protocol = 'acp' | 'codex' | 'claude';

function start(protocol: Protocol, fault: string): Promise<Service> {
  const env = {
    MODEL_API_CLI: protocol,
    MODEL_API_CLI_COMMAND: fixture('bad-cli.js', protocol, fault),
    MODEL_API_STANDBY: '0',
    MODEL_API_LIVE_SESSIONS: '0',
    MODEL_API_MAX_CONCURRENT: '1',
  };
  return startService({ env });
}

/** Resolves with the answer to a question, or the reason of its failure, when the slot is free and the process gone. */
async function outcomeOf(service: Service): Promise<unknown> {
  const { body } = await service.post('/ask', { prompt: 'Hello' });
  await recovers(service);
  return body.response ?? `${body.error} ${body.reason}: ${body.message}`;
}

const silent = (step: string) => `cli_error other: the model CLI was silent for 20 seconds in the step ${step}`;
const idle = 'cli_error other: the model CLI is idle, but has not ended its turn';
const refusals = ['"a1"', '0', '""', 'null'].map((id) => `${id}:-32601`).join(' ');

describe('A model CLI with one fault', () => {
  it.each<[Protocol, string, string]>([
    ['acp', 'none', 'Hello'],
    ['acp', 'noise', 'Hello'],
    ['acp', 'ids', refusals],
    ['acp', 'approval', '"approval":{"outcome":{"outcome":"cancelled"}}'],
    ['acp', 'leaves-stdin', 'Hello'],
    ['codex', 'none', 'Hello'],
    ['codex', 'noise', 'Hello'],
    ['codex', 'ids', refusals],
    ['codex', 'approval', '"approval":-32601'],
    ['codex', 'leaves-stdin', 'Hello'],
    ['codex', 'lost-end', idle],
    ['codex', 'whole-lost-end', 'Hello'],
    ['claude', 'none', 'Hello'],
    ['claude', 'noise', 'Hello'],
    ['claude', 'ids', '"a1":deny 0:deny "":deny'],
    ['claude', 'approval', '"approval":deny'],
    ['claude', 'leaves-stdin', 'Hello'],
  ])('%s %s: ends its turn within seconds, and leaves no process', async (protocol, fault, expected) => {
    await using service = await start(protocol, fault);
    const startMs = performance.now();
    expect(await outcomeOf(service)).toBe(expected);
    expect(performance.now() - startMs).toBeLessThan(maxTurnMs);
  });

  it.each<Protocol>(['acp', 'codex', 'claude'])(
    '%s: is ended after its client, although it ignores the signal, and says nothing to the next one',
    async (protocol) => {
      await using service = await start(protocol, 'late-cancel');
      const answer = await stream(service, '/ask', { prompt: 'Please wait' });
      await answer.next('started');
      await answer.next('delta');
      await answer[Symbol.asyncDispose]();
      await recovers(service);
      expect(await outcomeOf(service)).toBe('Hello');
    },
  );

  it('is ended when it never answers a request of its opening, or never ends a whole answer', async () => {
    const cases: readonly [Protocol, string, string][] = [
      ['acp', 'silent:session/new', silent('session/new')],
      ['codex', 'silent:thread/start', silent('thread/start')],
      ['codex', 'silent:turn/start', silent('turn/start')],
      ['claude', 'silent:user', silent('start')],
      ['claude', 'silent:turn', silent('prompt')],
      ['claude', 'whole-lost-end', 'Hello'],
    ];
    const outcomes = cases.map(async ([protocol, fault]) => {
      await using service = await start(protocol, fault);
      return await outcomeOf(service);
    });
    expect(await Promise.all(outcomes)).toEqual(cases.map(([, , outcome]) => outcome));
  });
});
