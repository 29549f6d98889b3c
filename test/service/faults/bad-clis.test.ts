import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryFolder, temporaryFolder } from '../../support/basics/folder.js';
import { stream } from '../../support/clients/event-stream.js';
import { recovers } from '../../support/jobs/jobs.js';
import { fixture, type Service, startService } from '../../support/service/service.js';

/** Far less than the time limit of a job, which ends a turn that hangs. The trial of claude waits 10 s for its exit. */
const maxTurnMs = 30_000;
const operator = { 'x-api-key': 'a-key-of-the-operator' };

type Protocol = 'acp' | 'codex' | 'claude';

function start(protocol: Protocol, fault: string): Promise<Service> {
  const env = {
    MODEL_API_CLI: protocol,
    MODEL_API_CLI_COMMAND: fixture('bad-cli.js', protocol, fault),
    MODEL_API_STANDBY: '0',
    MODEL_API_LIVE_SESSIONS: '0',
    MODEL_API_MAX_CONCURRENT: '1',
    MODEL_API_KEY: operator['x-api-key'],
  };
  return startService({ env });
}

/** Resolves with the answer to a question, or the reason of its failure, when the slot is free and the process gone. */
async function outcomeOf(service: Service): Promise<unknown> {
  const { body } = await service.post('/ask', { prompt: 'Hello' }, operator);
  await recovers(service);
  return body.response ?? `${body.error} ${body.reason}: ${body.message}`;
}

const silent = (step: string) => `cli_error other: the model CLI was silent for 20 seconds in the step ${step}`;
const idle = 'cli_error other: the model CLI is idle, but has not ended its turn';
const refusals = ['"a1"', '0', '""', 'null'].map((id) => `${id}:-32601`).join(' ');

describe.each<[Protocol, [string, string][]]>([
  [
    'acp',
    [
      ['none', 'Hello'],
      ['noise', 'Hello'],
      ['ids', refusals],
      ['approval', '"approval":{"outcome":{"outcome":"cancelled"}}'],
      ['leaves-stdin', 'Hello'],
    ],
  ],
  [
    'codex',
    [
      ['none', 'Hello'],
      ['noise', 'Hello'],
      ['ids', refusals],
      ['approval', '"approval":-32601'],
      ['leaves-stdin', 'Hello'],
      ['lost-end', idle],
      ['whole-lost-end', 'Hello'],
    ],
  ],
])('A model CLI with one fault: %s', (protocol, faults) => {
  let folder: TemporaryFolder;
  let service: Service;

  /** Gives the CLI this fault, with which it must be ready. The outcome of the next job tells whether the check has left a process. */
  const use = async (fault: string) => {
    await writeFile(join(folder.path, 'fault'), fault);
    expect((await service.post('/health/recheck', {}, operator)).body).toMatchObject({ status: 'ok' });
  };

  beforeAll(async () => {
    folder = await temporaryFolder();
    await writeFile(join(folder.path, 'fault'), 'none');
    service = await start(protocol, `@${join(folder.path, 'fault')}`);
  });
  afterAll(async () => {
    await service.stop();
    await folder[Symbol.asyncDispose]();
  });

  it.each(faults)('%s: ends its turn within seconds, and leaves no process', async (fault, expected) => {
    await use(fault);
    const startMs = performance.now();
    expect(await outcomeOf(service)).toBe(expected);
    expect(performance.now() - startMs).toBeLessThan(maxTurnMs);
  });

  it('is ended after its client, although it ignores the signal, and says nothing to the next one', async () => {
    await use('late-cancel');
    await expectEndAfterClient(service);
  });
});

/** Expects the end of a turn after its client has left, and another answer for the next client. */
async function expectEndAfterClient(service: Service): Promise<void> {
  const answer = await stream(service, '/ask', { prompt: 'Please wait' }, operator);
  await answer.next('started');
  await answer.next('delta');
  await answer[Symbol.asyncDispose]();
  await recovers(service);
  expect(await outcomeOf(service)).toBe('Hello');
}

describe('A model CLI with one fault', () => {
  it.each([
    ['none', 'Hello'],
    ['noise', 'Hello'],
    ['ids', '"a1":deny 0:deny "":deny'],
    ['approval', '"approval":deny'],
    ['leaves-stdin', 'Hello'],
  ])(
    'claude %s: ends its turn, also that of its trial, within seconds, and leaves no process',
    async (fault, expected) => {
      await using service = await start('claude', fault);
      const startMs = performance.now();
      expect(await outcomeOf(service)).toBe(expected);
      expect(performance.now() - startMs).toBeLessThan(maxTurnMs);
    },
  );

  it('claude: is ended after its client, although it ignores the signal, and says nothing to the next one', async () => {
    await using service = await start('claude', 'late-cancel');
    await expectEndAfterClient(service);
  });

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
