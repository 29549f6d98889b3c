import { Registry } from 'prom-client';
import { ClientMetrics } from '../../../../src/primary/observe/job-metrics.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { Exposition, fallen } from '../../../support/documents/exposition.js';
import { jobDone, jobFailed, jobRequest } from '../../../support/jobs/job-records.js';

class Harness {
  readonly #registry = new Registry();
  waiting = new Map<ClientText, number>();
  readonly clients: ClientMetrics;

  constructor() {
    this.clients = new ClientMetrics(this.#registry, () => this.waiting);
  }

  answer(client: ClientText): void {
    this.clients.jobEnded(jobRequest({ client }), jobDone());
  }

  async read(): Promise<Exposition> {
    return new Exposition(await this.#registry.metrics());
  }

  async labels(): Promise<string[]> {
    const { samples } = await this.read();
    return [...new Set(samples.map(({ labels }) => labels.client ?? ''))].sort();
  }
}

describe('The metrics by client', () => {
  it('count jobs, refusals and waiting jobs, with all addresses combined', async () => {
    const harness = new Harness();
    harness.answer('key alice');
    harness.clients.jobEnded(jobRequest({ client: 'key alice' }), jobFailed('timeout'));
    for (const client of ['address 192.0.2.1', 'address 192.0.2.2', 'address local'] as const) harness.answer(client);
    harness.clients.countRefusal('user bob');
    harness.waiting = new Map([
      ['key alice', 2],
      ['address 192.0.2.1', 3],
      ['address 192.0.2.2', 4],
    ]);
    const scrape = await harness.read();
    expect(scrape.value('client_jobs_total{client="alice",outcome="ok"}')).toBe(1);
    expect(scrape.value('client_jobs_total{client="alice",outcome="timeout"}')).toBe(1);
    expect(scrape.value('client_jobs_total{client="other",outcome="ok"}')).toBe(3);
    expect(scrape.value('client_refused_total{client="bob",kind="user"}')).toBe(1);
    expect(scrape.value('client_jobs_queued{client="alice"}')).toBe(2);
    expect(scrape.value('client_jobs_queued{client="other"}')).toBe(7);
    harness.waiting.clear();
    expect((await harness.read()).value('client_jobs_queued{client="alice"}')).toBe(0);
  });

  it('differ for clients of one name, and are those of the person for a key that the person has made', async () => {
    const harness = new Harness();
    for (const client of [
      'key ada',
      'user ada',
      'sso ada',
      'sso ada/ada~1',
      'made ada~1',
      'key other',
      'address ada',
    ] as const)
      harness.answer(client);
    const { samples } = await harness.read();
    const counted = samples.flatMap(({ name, labels, value }) =>
      name === 'client_jobs_total' ? [[labels.client, labels.kind, value]] : [],
    );
    expect(counted).toEqual([
      ['ada', undefined, 1],
      ['ada', 'user', 1],
      ['ada', 'sso', 2],
      ['ada~1', 'made', 1],
      ['other', 'key', 1],
      ['other', undefined, 1],
    ]);
  });

  it('have at most 50 users and 200 keys, never an address, and never lose one or decrease', async () => {
    const harness = new Harness();
    let before = (await harness.read()).growing();
    for (let number = 0; number < 300; number++) {
      for (const kind of ['user', 'key', 'address'] as const) harness.answer(`${kind} ${kind}-${number}`);
      if (number % 50 !== 0) continue;
      const after = (await harness.read()).growing();
      expect(fallen(before, after)).toEqual([]);
      before = after;
    }
    const labels = await harness.labels();
    expect(labels).toHaveLength(251);
    expect(labels.filter((label) => label.startsWith('user-'))).toHaveLength(50);
    expect(labels.filter((label) => label.startsWith('address'))).toEqual([]);
    expect((await harness.read()).sum('client_jobs_total', { outcome: 'ok' })).toBe(900);
  });
});
