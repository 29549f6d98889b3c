import { withResolvers } from '../../shared/async.js';
import type { UnstoredAnswer } from '../background/background-jobs.js';
import type { EndedLine } from './batch-feeder.js';

/** UTF-16 units after which no further answer is taken. */
const maxLength = 4 * 1024 * 1024;

interface TakenAnswer {
  readonly answer: UnstoredAnswer;
  readonly resolve: (isStored: boolean) => void;
}

/** Answers of jobs on this host that are stored as results of their lines, and nowhere else. */
export class TakenAnswers {
  readonly #taken = new Map<string, TakenAnswer>();
  #length = 0;
  #isClosed = false;

  /** Resolves with whether the result is stored and the job is removed. Otherwise the job must be stored. */
  async take(answer: UnstoredAnswer): Promise<boolean> {
    if (this.#isClosed || this.#length >= maxLength) return false;
    const { promise, resolve } = withResolvers<boolean>();
    this.#taken.set(answer.job.id, { answer, resolve });
    this.#length += answer.text.length;
    return promise;
  }

  findAnswer(jobId: string): EndedLine | null {
    const { answer } = this.#taken.get(jobId) ?? {};
    if (answer === undefined) return null;
    const { job, end, text } = answer;
    return { job, end, text: async () => text.blocks.map((block) => block.text).join('') };
  }

  /** Must be called when the result of a line is stored. `isRemoved`: whether its job is removed. */
  settle(jobId: string, isRemoved: boolean): void {
    const taken = this.#taken.get(jobId);
    if (taken === undefined) return;
    this.#taken.delete(jobId);
    this.#length -= taken.answer.text.length;
    taken.resolve(isRemoved);
  }

  /** Gives back all answers, and takes no more. */
  returnAnswers(): void {
    this.#isClosed = true;
    for (const jobId of [...this.#taken.keys()]) this.settle(jobId, false);
  }
}
