import { setTimeout as sleep } from 'node:timers/promises';
import { killIfAlive, programsOf } from '../test/support/processes/processes.js';
import { type Service, script, startService } from '../test/support/service/service.js';
import { alternately } from './support/pairs.js';
import { type Pair, ratioRow } from './support/ratio-row.js';
import { median } from './support/statistics.js';
import type { Row } from './support/table.js';

const asks = 40;
/** Time between two kills. Each kill causes a start, which uses a processor for some milliseconds. */
const betweenKillsMs = 100;
const target = 1.1;

/** Measures how jobs of one CLI are affected by another CLI, each program of which is killed. */
export async function twoClis(rounds: number): Promise<Row[]> {
  const clis = `main=demo,fragile=command:${script('forever.pl')}`;
  const env = { MODEL_API_CLI: 'auto', MODEL_API_CLIS: clis, MODEL_API_STANDBY: '1' };
  await using service = await startService({ env });
  await service.log('readiness_checked');
  let kills = 0;
  const pairs = await alternately(rounds, {
    bare: () => answersOf(service),
    relay: async () => {
      const killing = new AbortController();
      const killed = killAgainAndAgain(service, killing.signal);
      const answered = await answersOf(service);
      killing.abort();
      kills += await killed;
      return answered;
    },
  });
  const times = pairs.map(({ relay, bare }): Pair => [relay, bare]);
  const what = `POST /ask of one CLI while another is killed ÷ while that is idle, ${rounds} × ${asks} asks, ${kills} kills`;
  return [ratioRow(what, target, times)];
}

/** Returns the median time of an answer in milliseconds. Throws if a job fails. */
async function answersOf(service: Service): Promise<number> {
  const times: number[] = [];
  for (let ask = 0; ask < asks; ask++) {
    const begun = performance.now();
    const { status } = await service.post('/ask', { prompt: 'Hello', model: 'main/echo' });
    if (status !== 200) throw new Error(`the other CLI was felt: ${status}`);
    times.push(performance.now() - begun);
  }
  return median(times);
}

/** Kills programs until `end` aborts. Resolves with the number of jobs that have lost their program. */
async function killAgainAndAgain(service: Service, end: AbortSignal): Promise<number> {
  let lost = 0;
  while (!end.aborted) {
    const answer = service.post('/ask', { prompt: 'Hello', model: 'fragile' });
    let isOver = false;
    void answer.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await sleep(betweenKillsMs);
      for (const pid of await programsOf(service, 'forever.pl')) killIfAlive(pid);
    }
    if ((await answer).status === 500) lost++;
  }
  return lost;
}
