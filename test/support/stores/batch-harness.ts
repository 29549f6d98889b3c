import type { EndedLine, LineJobs, LineWorker, RunParts } from '../../../src/features/batches/batch-feeder.js';
import type { LineOutcome, WrittenLine } from '../../../src/features/batches/views.js';
import { MemoryFiles } from '../../../src/features/stores/memory/memory-files.js';
import type { JobEnd } from '../../../src/shared/job.js';
import { FakeClock } from '../basics/fake-clock.js';
import { backgroundView } from '../jobs/background-view.js';
import { jobDone, jobFailed } from '../jobs/job-records.js';
import { batchOf, fileOf } from './file-store-contract.js';

/** Jobs of lines, whose ends a test decides, and a worker that answers with the text of the line. */
export class BatchHarness implements LineJobs, LineWorker {
  readonly clock = new FakeClock();
  readonly store = new MemoryFiles();
  /** Texts of the lines whose jobs are open, by id of the job. */
  readonly open = new Map<string, string>();
  readonly ended = new Map<string, { readonly text: string; readonly end: JobEnd }>();
  /** Texts of all submitted lines, in order. */
  readonly submitted: string[] = [];
  readonly outcomes: LineOutcome[] = [];
  /** Errors after which a run tries again. */
  readonly failures: unknown[] = [];
  /** Error of the next submission. */
  refusal: Error | null = null;
  /** Whether a worker listens. */
  hasWorker = true;
  isLeased = true;
  /** Number of bytes that the files of the client may have. */
  maxBytes = Number.POSITIVE_INFINITY;
  mostOpen = 0;
  /** Most lines that were ended at once. */
  mostEnded = 0;
  /** Lines that were ended at once the last time. */
  lastEnded = 0;

  get parts(): RunParts {
    return {
      store: this.store,
      jobs: this,
      worker: () => (this.hasWorker ? this : null),
      clock: this.clock,
      maxOpen: 3,
      inTurn: (call) => call(),
      isLeased: () => this.isLeased,
      hasRoom: async () => (await this.store.usageOf('key ada')).bytes < this.maxBytes,
      lineEnded: (_api, outcome) => this.outcomes.push(outcome),
      onFailure: (error) => void this.failures.push(error),
    };
  }

  /** Stores a batch with these lines. */
  async add(lines: readonly string[], more: Parameters<typeof batchOf>[1] = {}) {
    const data = Buffer.from(lines.join('\n'));
    for (const id of ['in', 'out', 'err'])
      await this.store.createFile(fileOf(id, { expiresAt: Number.MAX_SAFE_INTEGER }));
    await this.store.appendPieces([{ id: 'in', data }]);
    const now = this.clock.now();
    const batch = batchOf('batch', { total: lines.length, expiresAt: now + 86_400_000, ...more });
    await this.store.addBatch(batch);
    return batch;
  }

  /** Ends all open jobs. */
  end(end: JobEnd = jobDone()): void {
    for (const [id, text] of this.open) this.ended.set(id, { text, end });
    this.open.clear();
  }

  async results(): Promise<{ readonly out: string[]; readonly err: string[] }> {
    const linesOf = async (id: string) => {
      let text = '';
      for (let from = 0; ; from = Buffer.byteLength(text)) {
        const piece = String(await this.store.readPiece(id, from));
        if (piece === '') break;
        text += piece;
      }
      return text.split('\n').filter((line) => line !== '');
    };
    return { out: await linesOf('out'), err: await linesOf('err') };
  }

  async findEndedLine(id: string): Promise<EndedLine | null | 'missing'> {
    if (this.open.has(id)) return null;
    const { text = '', end } = this.ended.get(id) ?? {};
    if (end === undefined) return 'missing';
    return { job: backgroundView({ id, title: text }), end, text: async () => `answer ${text}` };
  }

  async cancelJob(id: string): Promise<void> {
    const text = this.open.get(id);
    if (text === undefined || !this.open.delete(id)) return;
    this.ended.set(id, { text, end: jobFailed('cancelled', { failure: { code: 'cancelled', message: '' } }) });
  }

  async removeJob(id: string): Promise<void> {
    this.ended.delete(id);
    this.open.delete(id);
  }

  async submitLine({ jobId, file, line, hasRoom }: Parameters<LineWorker['submitLine']>[0]) {
    const { refusal } = this;
    this.refusal = null;
    if (refusal !== null) throw refusal;
    const text = String((await this.store.readPiece(file, line.start)).subarray(0, line.end - line.start)).trim();
    if (!hasRoom || text.includes('bad'))
      return { refused: { text: `refused ${hasRoom ? text : 'no_room'}`, outcome: 'errored' as const } };
    this.submitted.push(text);
    this.open.set(jobId, text);
    this.mostOpen = Math.max(this.mostOpen, this.open.size);
    return { refused: null };
  }

  async writeLine({ job: { title }, answer, cause }: Parameters<LineWorker['writeLine']>[0]): Promise<WrittenLine> {
    if (answer !== null) return { frame: [{ type: 'slice', from: 0, to: null }], outcome: 'succeeded' };
    return { frame: [`${cause ?? 'failure'} ${title}`], outcome: cause ?? 'errored' };
  }

  async endLines({ ids, cause }: Parameters<LineWorker['endLines']>[0]) {
    this.lastEnded = ids.length;
    this.mostEnded = Math.max(this.mostEnded, ids.length);
    return { results: ids.map((id) => ({ text: `${cause} ${id}`, outcome: cause })) };
  }
}
