import { TokenFactors } from '../../../src/features/anthropic/token-factors.js';
import type { AnswerStore } from '../../../src/features/stores/contract/answers.js';
import { MemoryTable } from '../../../src/features/stores/memory/memory-table.js';
import { deliveryTable } from '../../../src/features/webhooks/deliveries.js';
import { KeyAttempts } from '../../../src/primary/access/key-attempts.js';
import { plainLaunch } from '../../../src/primary/cli/contract/adapter.js';
import { LearnedSizes } from '../../../src/primary/cli/model-sizes.js';
import { RenewalTrust } from '../../../src/primary/cli/pool/renewal-trust.js';
import type { CliHealth } from '../../../src/primary/health/cli-health.js';
import { SeenClients } from '../../../src/primary/health/evidence.js';
import { SamplingRules } from '../../../src/primary/jobs/sampling-rules.js';
import { type ClientText, noClient } from '../../../src/shared/client.js';
import { type CliReason, cliError, cliReasons, errorCodes } from '../../../src/shared/errors.js';
import type { JobEnd } from '../../../src/shared/job.js';
import { healthOf } from '../../support/agents/cli-health.js';
import { FakeClock } from '../../support/basics/fake-clock.js';
import { LogBook } from '../../support/basics/log-book.js';
import { ClaimingRequests } from '../../support/jobs/claims.js';
import { jobFailed, jobRequest } from '../../support/jobs/job-records.js';
import { deliveryOf } from '../../support/stores/delivery-store-contract.js';

const models = ['', 'big', 'small'] as const;
/** Clients that fail: keys of one person, users of one key, and one without a key. */
const neighbours = {
  person: ['sso eve', 'sso eve/one~1', 'sso eve/two~2'],
  key: ['key bot', 'key bot/a', 'key bot/b'],
  address: ['address 192.0.2.1'],
} as const;
const alice = 'key alice';

/** Failures of a job that its request alone may cause: every reason, with each code that may come with it. */
const failures: readonly (readonly [what: string, end: JobEnd])[] = [
  ...cliReasons.map((reason) => [reason, failed(reason)] as const),
  ['quota of a model, by a code', failed('quota', { quota: { scope: 'model', resetsAt: null } })],
  ['overloaded, for an hour', failed('overloaded', { retryAfterSeconds: 3600 })],
  ...errorCodes
    .filter((code) => code !== 'spawn_error' && code !== 'cli_error')
    .map((code) => [code, jobFailed('cancelled', { failure: { code, message: '' } })] as const),
];

function failed(reason: CliReason, more: object = {}): JobEnd {
  return jobFailed('cli_error', { failure: { code: 'cli_error', message: 'refused', reason, ...more } });
}

function createHealth(clock: FakeClock): { health: CliHealth; checks: () => number } {
  const clients = new SeenClients();
  for (const client of [alice, ...Object.values(neighbours).flat()] as const) clients.recordClient(client);
  let checks = 0;
  const probe = async () => {
    checks++;
    return { version: '1', error: null };
  };
  return { health: healthOf(clock, { clients, probe }), checks: () => checks };
}

const jobOf = (client: ClientText, model: string) => ({
  request: jobRequest({ client, model: model || null }),
  route: { circuit: model },
});

const kinds = Object.keys(neighbours) as (keyof typeof neighbours)[];
const cases = kinds.flatMap((kind) => failures.map(([what, end]) => [kind, what, end] as const));

describe('The jobs of one neighbour that fail', () => {
  it.each(cases)('do not concern the model CLI for others, with the clients of one %s: %s', async (kind, _, end) => {
    const clock = new FakeClock();
    const { health, checks } = createHealth(clock);
    await health.checks.runCheck('start');
    for (let round = 0; round < 20; round++) {
      for (const client of neighbours[kind])
        for (const model of models) {
          const job = jobOf(client, model);
          health.circuits.recordAdmission(job);
          health.recordJobEnd(job, end, true);
        }
      await clock.advance(1000);
      for (const model of models) expect(health.circuits.refusalOf(jobOf(alice, model))).toBeNull();
    }
    expect([health.checks.current.status, health.needsLogin]).toEqual(['ready', false]);
    expect(checks()).toBeLessThanOrEqual(7);
    health.stopChecks();
  });

  it.each(kinds)('teach nothing about a model, with the clients of one %s', (kind) => {
    const rules = new SamplingRules(true, new FakeClock());
    const extras = { wishes: [] };
    const route = { adapterModel: 'm', cli: { name: 'claude', program: { extras } } };
    const turn = {
      ...plainLaunch(null),
      text: 'Hi',
      history: [],
      stop: ['x'],
      sampling: { temperature: 0.5, topP: 1, maxTokens: 9 },
    };
    for (const field of ['temperature', 'top_p', 'max_tokens', 'stop_sequences'])
      for (const client of neighbours[kind])
        rules.repeatable(cliError('other', `API Error: 400 ${field} is not supported`), turn, route, client);
    expect(rules.fit(turn, route, extras, alice)).toEqual(turn);
  });

  it.each(kinds)('change no count of tokens by more than a quarter, with the clients of one %s', async (kind) => {
    const clock = new FakeClock();
    const sizes = new LearnedSizes(null, new LogBook());
    const tokens = { countTokens: async (texts: readonly string[]) => texts.join('').length };
    const factors = new TokenFactors({ tokens, sizes, clock });
    const route = { adapterModel: 'm', cli: { name: 'claude', program: { extras: null } } };
    for (let round = 0; round < 20; round++) {
      for (const client of neighbours[kind])
        await factors.observeTokens(route, jobRequest({ client, text: 'x'.repeat(9000) }), 90_000);
      await clock.advance(60_000);
    }
    expect(factors.factorOf(route)).toBeLessThanOrEqual(1.25);
  });

  it.each(kinds)('pause no renewed processes of others, with the clients of one %s', (kind) => {
    const trust = new RenewalTrust('renewal', new FakeClock());
    for (let round = 0; round < 20; round++) for (const client of neighbours[kind]) trust.record(client, 'unproven');
    expect([trust.isPausedFor(neighbours[kind][0]), trust.isPausedFor(alice)]).toEqual([true, false]);
  });

  it.each(kinds)('block no wrong keys of others, with the clients of one %s', (kind) => {
    const attempts = new KeyAttempts(new FakeClock(), () => {});
    for (let round = 0; round < 20; round++) for (const client of neighbours[kind]) attempts.recordWrongKey(client);
    expect(attempts.recordWrongKey(alice)).toBe(0);
  });

  it.each(kinds)('take no place for the idempotency of others, with the clients of one %s', async (kind) => {
    const store = { claimOrFind: async () => ({ type: 'free' }), release: () => {} } as unknown as AnswerStore;
    const requests = new ClaimingRequests(store, { maxClaims: 9, maxClaimsOfClient: 4 });
    for (let round = 0; round < 20; round++)
      for (const client of neighbours[kind]) await requests.send(`${round}`, 'd', client).catch(() => null); // its share is full
    expect((await requests.send('mine', 'd', alice)).claim).not.toBeNull();
  });

  it.each(kinds)('take no place of the notices of others, with the clients of one %s', async (kind) => {
    const deliveries = new MemoryTable(deliveryTable);
    await deliveries.addRow(deliveryOf('mine', { client: alice }));
    for (let index = 0; index < 20 * deliveryTable.byClients.maxOfHolder; index++) {
      const client = neighbours[kind][index % neighbours[kind].length] ?? noClient;
      await deliveries.addRow(deliveryOf(`${index}`, { client, createdAt: 1e12 + index }));
    }
    const left = await deliveries.listRows(9999);
    expect([left.length, left.some(({ id }) => id === 'mine')]).toEqual([
      deliveryTable.byClients.maxOfHolder + 1,
      true,
    ]);
  });
});
