import { CountedProgram } from '../../support/agents/counted-program.js';
import { describeWith } from '../../support/basics/needs.js';
import { haproxy } from '../../support/service/haproxy.js';
import { HostFleet } from '../../support/service/host-fleet.js';
import { askMany, askOnce, byStatus, type Fate } from '../../support/service/load.js';

/** More slots than the load has clients: no job ever waits for one. */
const slots = '9';
const clients = 9;
let runs = 0;
/** Returns a function that makes prompts not sent by an earlier attempt of a test. */
function withLineFeed(): (index: number) => string {
  const run = ++runs;
  return (index) => `job-${run}-${index}\n`;
}

/** Maximum time without a usable host: HAProxy notices within a second, and its connect may hang for two; five times that. */
const slowMs = 15_000;

describeWith(haproxy)('Three hosts behind HAProxy', () => {
  let program: CountedProgram;
  let fleet: HostFleet;

  beforeAll(async () => {
    program = await CountedProgram.make(0.05);
    fleet = await HostFleet.start({ env: { ...program.env, MODEL_API_MAX_CONCURRENT: slots } });
  });
  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    await program[Symbol.asyncDispose]();
  });

  /** Expects that no client receives the answer of another, and that no job is started twice. */
  async function expectHonest(fates: readonly Fate[]): Promise<void> {
    const answered = fates.filter(({ status }) => status === 200);
    expect(answered.filter(({ prompt, body }) => String(body.response).trim() !== prompt.trim())).toEqual([]);
    expect([...(await program.begun())].filter(([, times]) => times > 1)).toEqual([]);
  }

  it('lose only the jobs that a killed host was running', async () => {
    const host = fleet.host('b');
    await host.start(); // a first try has killed it
    await fleet.untilUsed(host);
    let killed: Promise<void> | null = null;
    let goneMs = Number.POSITIVE_INFINITY;
    const fates = await askMany({
      url: fleet.url,
      count: 2000,
      clients,
      promptOf: withLineFeed(),
      onAnswer: (answered) => {
        if (answered !== 700 || killed !== null) return;
        killed = host.kill().then(() => {
          goneMs = performance.now(); // the workers live some milliseconds longer than their primary
        });
      },
    });
    await killed;
    const failed = fates.filter(({ status }) => status !== 200);
    process.stderr.write(`killed -9: ${JSON.stringify(byStatus(fates))}\n`);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThanOrEqual(clients);
    expect(failed.map(({ status, body }) => [status, body.error])).toEqual(failed.map(() => [502, 'host_lost']));
    expect(failed.filter(({ startedMs }) => startedMs > goneMs)).toEqual([]); // these jobs ran when the host died
    expect(Math.max(...fates.map(({ tookMs }) => tookMs))).toBeLessThan(slowMs);
    await expectHonest(fates);
  }, 120_000);

  it('use a host again when it is back', async () => {
    const host = fleet.host('b');
    await host.start();
    await fleet.untilUsed(host);
    const fates = await askMany({ url: fleet.url, count: 60, clients, promptOf: withLineFeed() });
    expect(byStatus(fates)).toEqual({ 200: 60 });
    const ids = await Promise.all(fates.map(({ body }) => fleet.answerOf(String(body.request_id))));
    expect(ids.some((one) => one.host === host)).toBe(true);
  });

  it('fail no request when one is drained under load, and lose none of its requests', async () => {
    const host = fleet.host('c');
    await host.start(); // a first try has drained it
    await fleet.untilUsed(host);
    let drained: Promise<number | null> | null = null;
    const fates = await askMany({
      url: fleet.url,
      count: 1000,
      clients,
      promptOf: withLineFeed(),
      onAnswer: (answered) => {
        if (answered === 200) drained ??= host.drain();
      },
    });
    expect(byStatus(fates)).toEqual({ 200: 1000 });
    expect(await drained).toBe(0);
    await expectHonest(fates);
    await host.start();
    await fleet.untilUsed(host);
  }, 120_000);
});

const broken = { MODEL_API_CLI: 'command', MODEL_API_CLI_COMMAND: '/no/such/program' };

describeWith(haproxy)('A host whose model CLI is not ready', () => {
  it('receives no requests while there are other hosts', async () => {
    await using fleet = await HostFleet.start({ size: 2, envOf: { a: broken } });
    await fleet.front.untilSeen('a', ({ status }) => status.startsWith('DOWN'), 'down');
    const fates = await askMany({ url: fleet.url, count: 10, clients: 2 });
    expect(byStatus(fates)).toEqual({ 200: 10 });
  });

  it('still receives requests if there are no other hosts, and reports the fault itself', async () => {
    await using fleet = await HostFleet.start({ size: 1, envOf: { a: broken } });
    await fleet.front.untilSeen('a', ({ status }) => status.startsWith('DOWN'), 'down');
    expect(await askOnce(fleet.url, 'Hello')).toMatchObject({ status: 500, body: { error: 'spawn_error' } });
  });
});
