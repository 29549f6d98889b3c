import { PrimaryMetrics } from '../../../../src/primary/observe/primary-metrics.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { Exposition } from '../../../support/documents/exposition.js';

/** Creates the metrics of a primary with these numbers of created and refused things. */
function createMetrics() {
  const slots = { refused: 0, refusedByBound: 0, waitingByClient: new Map<ClientText, number>() };
  const conversations = { refused: 0, counts: { conversations: 0, bytes: 0, tokens: 0, created: 0 } };
  const metrics = new PrimaryMetrics(slots, conversations, ['demo']);
  return { slots, conversations, metrics, read: async () => new Exposition(await metrics.registry.metrics()) };
}

it('The metrics of readiness count checks by result and trigger, and show the last one', async () => {
  const { metrics, read } = createMetrics();
  const check = { durationMs: 40, cli: 'demo', adapter: 'demo', version: '1' };
  const { readiness } = metrics;
  readiness.recordCheck({ ...check, status: 'ready', trigger: 'start', checkedAt: 5000, error: null });
  expect((await read()).value('ready{cli="demo"}')).toBe(1);
  readiness.recordCheck({ ...check, status: 'not_ready', trigger: 'forced', checkedAt: 9000, error: 'no' });
  const scrape = await read();
  expect(scrape.value('ready{cli="demo"}')).toBe(0);
  expect(scrape.value('readiness_last_check_timestamp_seconds{cli="demo"}')).toBe(9);
  expect(scrape.value('readiness_checks_total{cli="demo",result="ready",trigger="start"}')).toBe(1);
  expect(scrape.value('readiness_checks_total{cli="demo",result="not_ready",trigger="forced"}')).toBe(1);
  expect(scrape.value('readiness_check_duration_seconds_count{cli="demo"}')).toBe(2);
});

describe('The metrics of workers and conversations', () => {
  it('count restarts, removals and failed scrapes by cause', async () => {
    const { metrics, read } = createMetrics();
    metrics.countRestart('crash');
    metrics.countScrapeFailure();
    metrics.conversations.countRemoval('evicted');
    const scrape = await read();
    expect(scrape.value('worker_restarts_total{cause="crash"}')).toBe(1);
    expect(scrape.value('worker_restarts_total{cause="reload"}')).toBe(0);
    expect(scrape.value('worker_scrape_failures_total')).toBe(1);
    expect(scrape.value('conversations_removed_total{cause="evicted"}')).toBe(1);
  });

  it('read the counters of other components at each scrape', async () => {
    const { slots, conversations, read } = createMetrics();
    slots.refused = 3;
    slots.refusedByBound = 4;
    slots.waitingByClient.set('address 192.0.2.1', 5);
    conversations.refused = 2;
    conversations.counts.created = 7;
    for (let times = 0; times < 2; times++) {
      const scrape = await read();
      expect(scrape.value('rejected_total{reason="queue_full"}')).toBe(3);
      expect(scrape.value('rejected_total{reason="client_bound"}')).toBe(4);
      expect(scrape.value('client_jobs_queued{client="other"}')).toBe(5);
      expect(scrape.value('rejected_total{reason="conversations_busy"}')).toBe(2);
      expect(scrape.value('conversations_created_total')).toBe(7);
    }
  });
});

it('The metrics of the model CLI count the events of its processes', async () => {
  const { metrics, read } = createMetrics();
  const cli = metrics.cliOf({ cli: 'demo' });
  cli.exited('nonzero');
  cli.killed('SIGKILL', 'timeout');
  cli.orphansReaped(3);
  cli.output('stdout', 512);
  cli.startedUp(250);
  cli.standbyTaken('hit');
  cli.liveSessionTaken('replay');
  const scrape = await read();
  expect(scrape.value('cli_exits_total{cli="demo",class="nonzero"}')).toBe(1);
  expect(scrape.value('cli_exits_total{cli="demo",class="ok"}')).toBe(0);
  expect(scrape.value('cli_kills_total{cli="demo",signal="SIGKILL",reason="timeout"}')).toBe(1);
  expect(scrape.value('orphans_reaped_total{cli="demo"}')).toBe(3);
  expect(scrape.value('cli_output_bytes_total{cli="demo",stream="stdout"}')).toBe(512);
  expect(scrape.value('cli_startup_seconds_sum{cli="demo"}')).toBe(0.25);
  expect(scrape.value('standby_total{cli="demo",result="hit"}')).toBe(1);
  expect(scrape.value('live_session_total{cli="demo",result="replay"}')).toBe(1);
});
