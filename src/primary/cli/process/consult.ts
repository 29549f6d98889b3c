import type { Clock } from '../../../shared/clock.js';
import { RelayError } from '../../../shared/errors.js';
import {
  type CommandLine,
  type Consultation,
  type DecoderEvent,
  type Exit,
  filePlace,
  type ProgramVersion,
  type Protocol,
  plainLaunch,
  type TurnEvent,
  unknownUsage,
} from '../contract/adapter.js';
import type { CliProcess } from './cli-process.js';

const usualLimitMs = 10_000;
/** For one that is spoken to: some take seconds to start and more to answer, on a busy host twice as many. */
const spokenLimitMs = 20_000;
/** Characters. A program may list all it knows of its models: codex prints 750,000 of them. */
const maxLength = 4 * 1024 * 1024;
/** Of one that is spoken to: all of it is looked through again with each piece that comes. */
const maxSpokenLength = 1024 * 1024;

/** A consultation as a turn: what the program prints until it exits, or until that is enough, is the answer. */
export class ConsultedProgram implements Pick<ProgramVersion, 'protocol'> {
  readonly #isEnough: ((stdout: string) => boolean | string) | undefined;
  readonly limitMs: number;
  code: number | null = null;
  stdout = '';

  /** With `isEnough`, stdin stays open until it is true. A text that it returns is written there. */
  constructor(isEnough?: (stdout: string) => boolean | string) {
    this.#isEnough = isEnough;
    this.limitMs = isEnough === undefined ? usualLimitMs : spokenLimitMs;
  }

  protocol(): Protocol {
    const stdin = this.#isEnough === undefined ? 'end' : 'keep-open';
    const exit = ({ code }: Exit): TurnEvent[] => {
      this.code = code;
      return [end];
    };
    return {
      writer: { write: ({ text }) => ({ text, stdin }) },
      decoder: { hasBegun: true, read: (chunk) => this.#read(chunk), exit },
    };
  }

  #read(chunk: string): DecoderEvent[] {
    if (this.stdout.length < maxLength) this.stdout += chunk;
    if (this.#isEnough === undefined) return [];
    if (this.stdout.length > maxSpokenLength) return [end];
    const verdict = this.#isEnough(this.stdout);
    if (typeof verdict === 'string') return verdict === '' ? [] : [{ type: 'reply', text: verdict }];
    return verdict ? [end] : [];
  }
}

/** How a program is started to be consulted. `place` is a private path. */
export function consultPlan(args: readonly string[], file: string | undefined, place: string): CommandLine {
  if (file === undefined) return { args, files: [] };
  return { args: args.map((arg) => arg.replace(filePlace, place)), files: [{ path: place, text: file }] };
}

const end: TurnEvent = { type: 'turn-end', text: null, model: null, usage: unknownUsage };
const noSink = { write: () => {}, hasEnough: false, isFull: false, room: async () => {} };

/** Lets a started program answer, within a limit of time, and ends it. Rejects with `spawn_error` where it gives no answer. */
export async function consultation(
  process: CliProcess,
  programVersion: ConsultedProgram,
  input: string,
  clock: Clock,
): Promise<Consultation> {
  const controller = new AbortController();
  const late = new RelayError('spawn_error', 'the model CLI does not answer questions about itself');
  const stopTimer = clock.after(programVersion.limitMs, () => controller.abort(late));
  try {
    await process.turn({ ...plainLaunch(null), text: input, history: [] }, noSink, controller.signal);
    return { code: programVersion.code, stdout: programVersion.stdout };
  } finally {
    stopTimer();
    await process.end('done');
  }
}
