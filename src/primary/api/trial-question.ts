import type { TrialAnswer } from '../../shared/api/setup.js';
import type { Clock } from '../../shared/clock.js';
import { RelayError, toRelayError } from '../../shared/errors.js';
import { plainLaunch, type TurnEnd } from '../cli/contract/adapter.js';
import type { Route } from '../cli/route.js';

export const trialQuestion = 'Say hello in one short sentence.';

/** Has the model answer one question, as a job would, but with no queue. It spends tokens. Never rejects. */
export async function askForTrial(
  { cli, adapterModel, label }: Pick<Route, 'cli' | 'adapterModel' | 'label'>,
  limitMs: number,
  clock: Clock,
): Promise<TrialAnswer> {
  const controller = new AbortController();
  const late = new RelayError('timeout', `the model took longer than ${limitMs} ms (MODEL_API_TIMEOUT)`);
  const stopTimer = clock.after(limitMs, () => controller.abort(late));
  const trial = new Trial(clock);
  const launch = plainLaunch(adapterModel);
  try {
    const lease = await cli.acquire(launch, null, controller.signal);
    const turn = { ...launch, text: trialQuestion, history: [] };
    const end = await lease.turn(turn, trial, controller.signal).finally(() => lease.release(null));
    return trial.answered(end, end.model === null ? label : cli.publicName(end.model));
  } catch (error) {
    return trial.failed(toRelayError(error));
  } finally {
    stopTimer();
  }
}

/** Owns the answer to the question while it comes, and its times. */
class Trial {
  readonly hasEnough = false;
  readonly isFull = false;
  readonly #clock: Clock;
  readonly #begunMs: number;
  readonly #deltas: string[] = [];
  #firstMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#begunMs = clock.monotonicMs();
  }

  write(text: string): void {
    this.#firstMs ??= this.#elapsedMs;
    this.#deltas.push(text);
  }

  async room(): Promise<void> {}

  answered({ text }: TurnEnd, model: string | null): TrialAnswer {
    return { ...this.#figures(), model, answer: text ?? this.#deltas.join(''), error: null };
  }

  failed({ code, reason, message, stderr }: RelayError): TrialAnswer {
    const words = [reason === undefined ? code : `${code} (${reason})`, message, ...(stderr ? [stderr] : [])];
    return { ...this.#figures(), model: null, answer: null, error: words.join(': ') };
  }

  #figures() {
    const first = { first_delta_ms: this.#firstMs, deltas: this.#deltas.length };
    return { question: trialQuestion, ...first, duration_ms: this.#elapsedMs };
  }

  get #elapsedMs(): number {
    return Math.round(this.#clock.monotonicMs() - this.#begunMs);
  }
}
