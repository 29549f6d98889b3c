import { orAborted } from '../../shared/async.js';
import { cliError, type RelayError } from '../../shared/errors.js';
import {
  type AnswerEvent,
  addedUsage,
  type CallDelta,
  type CallStart,
  type Capabilities,
  type ToolOffer,
  type Turn,
  type TurnEnd,
  type Waiting,
} from '../cli/contract/adapter.js';
import type { TurnSink } from '../cli/process/open-turn.js';
import type { SchemaChecker } from '../threads/schema-checker.js';
import type { SchemaFinding } from '../threads/schema-thread.js';
import type { AnswerOutput } from './answer-output.js';
import type { Charges } from './charges.js';
import type { Job } from './job.js';
import type { JobCli } from './job-cli.js';
import type { JobProcesses } from './job-processes.js';

/** Receiver of the answer of one turn. */
export interface AnswerTarget extends Pick<TurnSink, 'write'> {
  hasEnough(): boolean;
  /** Sends buffered text, because the answer ends. */
  flush(): void;
}

/** `isRepaired`: whether the process has had a turn that the client does not know. */
export type RepairedEnd = TurnEnd & { readonly isRepaired?: boolean };

/** Runs a turn of the model. */
export type RunTurn = (turn: Turn, target: AnswerTarget) => Promise<RepairedEnd>;

/** Whether the event is part of a tool call. */
export function isCallEvent(event: AnswerEvent): event is CallStart | CallDelta {
  return event.type === 'call-start' || event.type === 'call-delta';
}

/** Translates the tools and calls of one turn between the client's form and the form for programs. */
export interface TurnTranslation {
  toProgram(turn: Turn): Turn;
  /** Receives an event in the program's form. */
  write(event: AnswerEvent): void;
  /** Ends the turn, and returns its end in the client's form. */
  endTurn(end: TurnEnd): TurnEnd;
}

/** Returns the translation of a turn with these tools; `pass` gets all events. Returns null if no feature translates. */
export type TranslateTurn = (offer: ToolOffer | undefined, pass: AnswerTarget['write']) => TurnTranslation | null;

/** Parts that run the turns of an answer. */
export interface TurnParts {
  readonly features: { readonly translateTurn: TranslateTurn };
  readonly processes: JobProcesses;
  readonly schemas: Pick<SchemaChecker, 'readValue'>;
  readonly memory: { readonly charges: Charges };
  /** Whether another model can answer if the model of the job fails with this error. */
  hasOtherRoute(failure: RelayError): boolean;
  onFirstOutput(): void;
}

/** Longest wait of a model CLI for its API, in milliseconds, if another model can answer: CLIs retry after a second. */
const maxWaitMs = 5000;

/** Owns the turns of one answer, which run one after another in the processes of its job. */
export class AnswerTurns {
  readonly job: Job;
  readonly output: AnswerOutput;
  readonly processes: JobProcesses;
  readonly #parts: TurnParts;
  /** Whether the model has begun to answer. */
  hasOutput = false;
  /** End of the turn in which the model refused; null if it did not refuse. */
  refused: TurnEnd | null = null;

  constructor(job: Job, output: AnswerOutput, parts: TurnParts) {
    this.job = job;
    this.output = output;
    this.processes = parts.processes;
    this.#parts = parts;
  }

  /** Capabilities of the program that runs the current turn. */
  get extras(): Capabilities {
    return this.processes.current.extras;
  }

  /** Checks a text. A cancelled job stops waiting for the check, so that it releases its slot. */
  checkSchema(schema: string, text: string): Promise<SchemaFinding> {
    const { request, signal } = this.job;
    return orAborted(this.#parts.schemas.readValue(schema, text, request.client), signal);
  }

  readonly run: RunTurn = async (turn, target) => {
    const end = await this.#run(this.processes.current, turn, target);
    if (end.refusal === undefined) return end;
    target.flush();
    this.refused = end;
    const { category } = end.refusal;
    throw cliError('refused', `the model declines to answer${category === null ? '' : `: ${category}`}`);
  };

  #run(cli: JobCli, turn: Turn, target: AnswerTarget): Promise<TurnEnd> {
    const translation = this.#parts.features.translateTurn(turn.offer, target.write);
    const write = (event: AnswerEvent) => (translation ?? target).write(event);
    const ended = cli
      .turn(translation?.toProgram(turn) ?? turn, this.#sink(cli, turn, target, write), this.job.signal)
      .then((end) => translation?.endTurn(end) ?? end)
      .finally(() => this.job.addUsage(cli.usage()));
    this.#controlTurn(cli, ended);
    const trace = this.job.trace?.turn?.(turn, cli);
    if (trace !== undefined) ended.then(trace.ended, trace.failed);
    return ended;
  }

  /** Lets the client of the job influence the turn until it has ended. */
  #controlTurn({ process }: JobCli, ended: Promise<unknown>): void {
    const openTurn = () => (process.state.name === 'busy' ? process.state.turn : null);
    const interrupt = () => openTurn()?.interrupt() === true;
    this.job.turnControl = { interrupt, addMessage: async (text) => openTurn()?.addMessage(text) ?? false };
    if (this.job.isInterrupted) interrupt();
    const end = (control: 'none' | 'answered') => () => {
      this.job.turnControl = control;
    };
    ended.then(end('answered'), end('none'));
  }

  /** Whether the client wants only words about progress. */
  get #wantsProgress(): boolean {
    return this.job.request.thinking === 'progress';
  }

  /** Whether the client gets the thoughts of the turn. Words about progress come only from models that hide no others. */
  #showsThoughts({ model }: Turn): boolean {
    return this.output.wantsThoughts && (!this.#wantsProgress || this.extras.rulesOf?.(model).thinksProgress === true);
  }

  /** Whether another model is asked instead of waiting this long for the API. */
  #canMove({ ms, failure: { reason, message, quota } }: Waiting): boolean {
    return ms > maxWaitMs && this.#parts.hasOtherRoute(cliError(reason, message, { quota }));
  }

  #sink({ process }: JobCli, turn: Turn, target: AnswerTarget, write: AnswerTarget['write']): TurnSink {
    const { events, route } = this.job;
    return {
      write: (event) => {
        const isHidden = this.#wantsProgress && event.type === 'thought-end'; // it shows nothing of the thought
        if (!isHidden && !this.hasOutput) this.#parts.onFirstOutput();
        this.hasOutput ||= !isHidden;
        write(event);
      },
      hidesThoughts: !this.#showsThoughts(turn),
      added: (text) => {
        target.flush();
        this.job.hasAdditions = true;
        this.output.addMessage(text);
      },
      model: (name) => this.job.noteModel(route.cli.publicName(name) ?? name),
      get hasEnough() {
        return target.hasEnough();
      },
      get isFull() {
        return events.isFull === true;
      },
      room: async () => events.room?.(),
      used: (use) => this.job.addCharge(this.#parts.memory.charges.chargeTurn({ process, cli: route.cli, turn, use })),
      waits: (waiting) => {
        route.cli.health.recordApiWait(this.job, waiting);
        return waiting.ms < this.job.leftMs && !this.#canMove(waiting);
      },
    };
  }
}

/** End of a turn, and the reason why its answer is invalid; null if it is valid. */
interface CheckedTurn {
  readonly end: RepairedEnd;
  readonly fault: string | null;
}

/**
 * Runs a turn and checks its answer. If the answer is invalid, runs the turn of `repair`, in which the model may answer
 * once more. Throws the error of `errorFor` if the last answer is invalid. With `repair` null, the first answer is the
 * last.
 */
export async function withRepair<T extends CheckedTurn>(
  turn: Turn,
  run: (turn: Turn) => Promise<T>,
  repair: ((invalid: T) => Turn | Promise<Turn>) | null,
  errorFor: (fault: string) => Error = mismatch,
): Promise<T> {
  const first = await run(turn);
  if (first.fault === null) return first;
  if (repair === null) throw errorFor(first.fault);
  const second = await run(await repair(first));
  if (second.fault !== null) throw errorFor(second.fault);
  return { ...second, end: { ...second.end, usage: addedUsage(first.end.usage, second.end.usage), isRepaired: true } };
}

function mismatch(fault: string): Error {
  return cliError('schema_mismatch', `the answer of the model does not fit the schema: ${fault}`);
}
