import { Agent, get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Service, startService, twoWorkers } from '../test/support/service/service.js';
import { ownProcessorMs } from './support/processor-time.js';
import { dropLog } from './support/service-log.js';
import { median, spread } from './support/statistics.js';
import type { Row } from './support/table.js';

const viewerCount = 50;
const targetPercent = 2;
/** Time between jobs, so short that each update of the status has changes. */
const betweenJobsMs = 200;
const forMs = 10_000;
const settleMs = 2000;
const maxRounds = 5;

type Load = 'in rest' | 'with jobs';

/** Measures the cost of viewers of the status: the processor time with viewers minus the time without, in turns. */
export async function viewers(rounds: number): Promise<Row[]> {
  await using service = await startService({ env: twoWorkers });
  dropLog(service);
  const workers = await service.workers();
  await sleep(15_000); // the counters of the start have been reported then
  const rows: Row[] = [];
  for (const load of ['in rest', 'with jobs'] as const) {
    const [ofPrimary, ofWorkers]: [number[], number[]] = [[], []];
    let events = 0;
    for (let round = 0; round < Math.min(rounds, maxRounds); round++) {
      const without = await costOf(service, workers, load);
      const viewing = await Viewing.open(service.port);
      const beside = await costOf(service, workers, load);
      events = viewing.close();
      ofPrimary.push(beside.primary - without.primary);
      ofWorkers.push(beside.workers - without.workers);
    }
    rows.push({
      question: `Processor time of the primary for ${viewerCount} viewers of GET /status/stream, ${load}`,
      target: `< ${targetPercent} % of a core`,
      measured:
        `${median(ofPrimary).toFixed(2)} % (${spread(ofPrimary, 2)}); of both workers ${median(ofWorkers).toFixed(2)} % ` +
        `(${spread(ofWorkers, 2)}); ${(events / viewerCount).toFixed(0)} events each in the last ${(forMs + settleMs) / 1000} s`,
      holds: median(ofPrimary) < targetPercent,
    });
  }
  return rows;
}

/** Returns the processor usage in percent of a core. */
async function costOf(service: Service, workers: readonly number[], load: Load) {
  const controller = new AbortController();
  const loading = load === 'with jobs' ? keepAsking(service, controller.signal) : null;
  await sleep(settleMs);
  const before = await Promise.all([ownProcessorMs([service.pid]), ownProcessorMs(workers)]);
  await sleep(forMs);
  const after = await Promise.all([ownProcessorMs([service.pid]), ownProcessorMs(workers)]);
  controller.abort();
  await loading;
  const percent = (at: 0 | 1) => (100 * (after[at] - before[at])) / forMs;
  return { primary: percent(0), workers: percent(1) };
}

async function keepAsking(service: Service, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await Promise.all([service.post('/ask', { prompt: 'Hello.' }), sleep(betweenJobsMs)]);
  }
}

/** Viewers that read the status stream and count its events. */
class Viewing {
  readonly #agent = new Agent({ keepAlive: false });
  #events = 0;

  static async open(port: number): Promise<Viewing> {
    const viewing = new Viewing();
    await Promise.all(Array.from({ length: viewerCount }, () => viewing.#view(port)));
    return viewing;
  }

  #view(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const read = (answer: IncomingMessage) => {
        if (answer.statusCode !== 200) return reject(new Error(`answered ${answer.statusCode}`));
        answer.on('error', () => {}); // the stream is destroyed at the end
        answer.setEncoding('utf8').on('data', (text: string) => {
          this.#events += text.split('event: ').length - 1;
          resolve();
        });
      };
      get({ host: '127.0.0.1', port, path: '/status/stream', agent: this.#agent }, read).once('error', reject);
    });
  }

  /** Returns the number of events that all viewers have received. */
  close(): number {
    this.#agent.destroy();
    return this.#events;
  }
}
