import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { alternately } from './support/pairs.js';
import { median, spread } from './support/statistics.js';
import type { StoreOperation, StoreOrder } from './support/store-probe.js';
import type { Row } from './support/table.js';

const maxRatio = 2;
const sizes = { few: 1000, many: 1_000_000 };
const times = 20_000;
/** Number of conversations in use, at both sizes. Most of a million are idle. */
const inUse = 1000;
const names: Readonly<Record<StoreOperation, string>> = {
  turn: 'a further turn (begun, committed, closed)',
  snapshot: 'a snapshot',
  eviction: 'a new conversation, which evicts another',
  lookup: '`get` of a bare Map, for comparison',
};

/** Measures time and memory of the conversation store. */
export async function conversations(rounds: number): Promise<Row[]> {
  await using few = await StoreProbe.start(sizes.few);
  await using many = await StoreProbe.start(sizes.many);
  const rows: Row[] = [];
  for (const among of [inUse, sizes.many]) {
    for (const operation of ['turn', 'snapshot'] as const)
      rows.push(await ratioFor(operation, among, [few, many], rounds));
  }
  const bare = await ratioFor('lookup', sizes.many, [few, many], rounds);
  rows.push({ ...bare, target: '–', holds: null });
  rows.push(await ratioFor('eviction', inUse, [few, many], rounds));
  return [...rows, bytesRow(many.bytesEach)];
}

/**
 * Compares the stores at both sizes. `among` is the number of conversations in use: a thousand fit into the processor's
 * cache, a million do not.
 */
async function ratioFor(
  operation: StoreOperation,
  among: number,
  [few, many]: readonly [StoreProbe, StoreProbe],
  count: number,
): Promise<Row> {
  const order = { operation, times, among };
  await Promise.all([few.perform(order), many.perform(order)]); // to warm up
  const rounds = await alternately(count, { bare: () => few.perform(order), relay: () => many.perform(order) });
  const ratios = rounds.map(({ bare, relay }) => relay / bare);
  const [ofFew, ofMany] = [median(rounds.map(({ bare }) => bare)), median(rounds.map(({ relay }) => relay))];
  return {
    question: `Conversation store, at 1,000,000 ÷ at 1,000: ${names[operation]}${
      among === inUse ? '' : ', any of them (so from main memory)'
    }`,
    target: `≤ ${maxRatio}`,
    measured: `${median(ratios).toFixed(2)} (${spread(ratios, 2)}): ${ofMany.toFixed(0)} ns against ${ofFew.toFixed(0)} ns`,
    holds: median(ratios) <= maxRatio,
  };
}

function bytesRow(bytes: number): Row {
  return {
    question: 'Memory of a conversation beyond its text, at 1,000,000 of one turn each',
    target: '–',
    measured: `${bytes.toFixed(0)} bytes`,
    holds: null,
  };
}

/** Process with a conversation store of this size. */
class StoreProbe implements AsyncDisposable {
  /** Memory of a conversation in addition to its text, in bytes. */
  bytesEach = 0;
  readonly #process: ChildProcess;
  readonly #died: Promise<never>;

  static async start(size: number): Promise<StoreProbe> {
    const execArgv = ['--expose-gc', '--max-old-space-size=4096'];
    const probe = new StoreProbe(fork(join(__dirname, 'support', 'store-probe.js'), [String(size)], { execArgv }));
    probe.bytesEach = await probe.#answer();
    return probe;
  }

  private constructor(child: ChildProcess) {
    this.#process = child;
    this.#died = once(child, 'exit').then(() => Promise.reject(new Error('a store probe has ended')));
    this.#died.catch(() => {});
  }

  /** Resolves with the nanoseconds of one operation. */
  perform(order: StoreOrder): Promise<number> {
    this.#process.send(order);
    return this.#answer();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#died.catch(() => {});
  }

  #answer(): Promise<number> {
    const answered = new Promise<number>((resolve) => {
      this.#process.once('message', (answer) => resolve(answer as number));
    });
    return Promise.race([answered, this.#died]);
  }
}
