import type { Clock } from '../../../shared/clock.js';
import { RelayError } from '../../../shared/errors.js';
import { type Consultation, type Dialect, type Exit, plainLaunch, type TurnEvent, unknownUsage } from '../adapter.js';
import type { CliProcess } from './cli-process.js';

const limitMs = 10_000;
const maxLength = 1024 * 1024;

/** A consultation as a turn: `input` is the whole stdin, and what the program prints until it exits is the answer. */
export class ConsultDialect implements Pick<Dialect, 'writer' | 'decoder'> {
  code: number | null = null;
  stdout = '';

  writer() {
    return { write: ({ text }: { readonly text: string }) => ({ text, stdin: 'end' }) as const };
  }

  decoder() {
    return {
      hasBegun: true,
      read: (chunk: string): TurnEvent[] => {
        if (this.stdout.length < maxLength) this.stdout += chunk;
        return [];
      },
      exit: ({ code }: Exit): TurnEvent[] => {
        this.code = code;
        return [{ type: 'turn-end', text: null, model: null, usage: unknownUsage }];
      },
    };
  }
}

const noSink = { write: () => {}, hasEnough: false, isFull: false, room: async () => {} };

/** Lets a started program answer, for 10 s at most, and ends it. Rejects with `spawn_error` where it gives no answer. */
export async function consultation(
  process: CliProcess,
  dialect: ConsultDialect,
  input: string,
  clock: Clock,
): Promise<Consultation> {
  const controller = new AbortController();
  const late = new RelayError('spawn_error', 'the model CLI does not answer questions about itself');
  const stopTimer = clock.after(limitMs, () => controller.abort(late));
  try {
    await process.turn({ ...plainLaunch(null), text: input, history: [] }, noSink, controller.signal);
    return { code: dialect.code, stdout: dialect.stdout };
  } finally {
    stopTimer();
    await process.end('done');
  }
}
