import { randomNumbers } from '../../support/basics/random.js';
import { orderFor, type Round, ToolClient } from '../../support/clients/tool-client.js';
import { untilJobs } from '../../support/jobs/jobs.js';
import { killIfAlive } from '../../support/processes/processes.js';
import { type Service, startService, twoWorkers } from '../../support/service/service.js';

const seed = Number(process.env.FAULT_SEED ?? Date.now() % 1_000_000);
const clients = 20;
const loopsForKill = 5;
const loops = Number(process.env.TOOL_LOOPS ?? 100);

/** End of a loop: its text, the status of an error, or a lost connection. */
type Ending = 'answered' | 'lost' | number;

interface Ended {
  readonly ending: Ending;
  /** IDs of the calls in complete answers. */
  readonly ids: readonly string[];
}

/** Names of the errors that `fetch` and the reader of a cut body throw. */
const lostConnection = new Set(['TypeError', 'TimeoutError', 'AbortError', 'SyntaxError']);

/** Runs two rounds of calls with unique words. The answer must repeat them. */
async function loop(service: Service, name: string, random: () => number): Promise<Ended> {
  const client = new ToolClient(service);
  const ids: string[] = [];
  const take = (round: Round) => {
    for (const { id, function: call } of round.calls) {
      expect(JSON.parse(call.arguments)).toEqual({ who: name }); // never the call of another client
      ids.push(id);
    }
    return round;
  };
  try {
    const leaves = random() < 0.1 ? AbortSignal.timeout(Math.round(5 + random() * 50)) : undefined;
    for (const content of [`${orderFor(name)}\n${orderFor(name)}`, orderFor(name)]) {
      const called = take(await client.send([{ role: 'user', content }], leaves));
      if (called.status !== 200) return { ending: called.status, ids };
      const answered = take(await client.answer(({ id }) => `of ${name} ${id}`));
      if (answered.status !== 200) return { ending: answered.status, ids };
      const results = called.calls.map(({ id }) => `The result of note is: of ${name} ${id}`);
      expect(answered.text).toBe(results.join(' '));
    }
    return { ending: 'answered', ids };
  } catch (error) {
    if (!lostConnection.has((error as Error).name)) throw error;
    return { ending: 'lost', ids };
  }
}

/** Kills a process of a job or, more rarely, a worker. */
async function killOne(service: Service, random: () => number): Promise<void> {
  const victims = random() < 0.85 ? await service.jobProcesses() : await service.workers().catch(() => []);
  const victim = victims[Math.floor(random() * victims.length)];
  if (victim !== undefined) killIfAlive(victim);
}

describe('Loops of client tools, while processes, workers and connections are killed', () => {
  it(`end with the right text or a named error, and no client gets a call of another: seed ${seed}`, async () => {
    const env = { ...twoWorkers, MODEL_API_LIVE_SESSIONS: '8', MODEL_API_MAX_CONCURRENT: '4' };
    await using service = await startService({ env });
    const random = randomNumbers(seed);
    let begun = 0;
    const ended: Ended[] = [];
    const lane = async (client: number) => {
      for (let count = begun++; count < loops; count = begun++) {
        ended.push(await loop(service, `w${client}x${count}`, random));
        // By count and not by time: a busy machine would lose more loops.
        if (ended.length % loopsForKill === 0) await killOne(service, random);
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, index) => lane(index)));
    const endings = ended.map(({ ending }) => ending);
    expect(endings).toHaveLength(loops);
    const named = [500, 502, 503, 504];
    expect(endings.filter((ending) => typeof ending === 'number' && !named.includes(ending))).toEqual([]);
    expect(endings.filter((ending) => ending === 'answered').length).toBeGreaterThan(loops / 4);
    const ids = ended.flatMap((each) => each.ids);
    expect(new Set(ids).size).toBe(ids.length);
    await untilJobs(service, 0, 0);
    expect(service.logs.filter(({ event }) => event === 'internal_error')).toEqual([]);
  }, 110_000);
});
