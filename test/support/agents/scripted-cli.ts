import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { LineSplitter } from '../../../src/primary/cli/adapters/common/lines.js';
import {
  type AnswerEvent,
  type Decoder,
  type DecoderEvent,
  type ProgramVersion,
  plainLaunch,
  type Turn,
  type TurnEvent,
  unknownUsage,
} from '../../../src/primary/cli/contract/adapter.js';
import type { CliObserver, EndReason } from '../../../src/primary/cli/contract/observer.js';
import {
  type CliLimits,
  CliProcess,
  type CliProcessParts,
  type OwnedTree,
} from '../../../src/primary/cli/process/cli-process.js';
import type { TurnSink, TurnUse } from '../../../src/primary/cli/process/open-turn.js';
import { Redactor } from '../../../src/primary/cli/process/redactor.js';
import type { Tenant } from '../../../src/primary/cli/process/renewal.js';
import type { Child, ExitStatus } from '../../../src/primary/cli/terminate/containment.js';
import { withResolvers } from '../../../src/shared/async.js';
import type { ClientText } from '../../../src/shared/client.js';
import type { Clock } from '../../../src/shared/clock.js';
import type { CgroupUsage } from '../../../src/shared/process/cgroup.js';
import { settled } from '../basics/settled.js';

/** Program with its process tree that acts only as the test says. */
export class ScriptedTree implements OwnedTree {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly child: Child;
  /** Reasons for which the tree was ended, in order. */
  readonly ends: EndReason[] = [];
  /** Pauses and resumes, in order. */
  readonly pauses: string[] = [];
  readonly graces: number[] = [];
  /** Resource usage so far, set by the test. */
  used: CgroupUsage | null = null;
  #receivedInput = '';
  #isDead = false;
  #isGone: Promise<void> = Promise.resolve();

  constructor() {
    const { stdin, stdout, stderr } = this;
    const emitter = new EventEmitter();
    const exited = new Promise<ExitStatus>((resolve) =>
      emitter.once('exit', (code, signal) => resolve({ code, signal })),
    );
    this.child = Object.assign(emitter, {
      stdin,
      stdout,
      stderr,
      exited,
      workingDirectory: '/private/folder',
    }) as unknown as Child;
    stdin.on('data', (bytes: Buffer) => {
      this.#receivedInput += bytes.toString();
    });
  }

  /** Text written to stdin. */
  get receivedInput(): string {
    return this.#receivedInput;
  }

  async say(text: string | Buffer): Promise<void> {
    this.stdout.write(text);
    await settled();
  }

  /** Exits; stdout closes when all output has been read. */
  async exit(code: number | null = 0, signal: NodeJS.Signals | null = null): Promise<void> {
    this.stdout.once('end', () => this.child.emit('close', code, signal));
    this.stdout.end();
    await this.exitAndLeave(code, signal);
  }

  /** Exits, while another process still has stdout open. */
  async exitAndLeave(code: number | null = 0, signal: NodeJS.Signals | null = null): Promise<void> {
    this.child.emit('exit', code, signal);
    await settled();
  }

  /** Exits without an exit event yet. */
  dieUnnoticed(): void {
    this.#isDead = true;
  }

  /** Delays the end of the tree until the returned function is called. */
  linger(): () => void {
    const { promise, resolve } = withResolvers();
    this.#isGone = promise;
    return resolve;
  }

  get hasDied(): boolean {
    return this.#isDead;
  }

  /** Memory of the program, set by the test. */
  memory: number | null = null;

  memoryBytes(): number | null {
    return this.memory;
  }

  pause(): void {
    this.pauses.push('pause');
  }

  resume(): void {
    this.pauses.push('resume');
  }

  usage(): CgroupUsage | null {
    return this.used;
  }

  async end(graceMs: number, reason: EndReason): Promise<void> {
    this.ends.push(reason);
    this.graces.push(graceMs);
    this.child.emit('exit', null, 'SIGTERM');
    await this.#isGone;
    for (const stream of [this.stdin, this.stdout, this.stderr]) stream.destroy();
    this.child.emit('close', null, 'SIGTERM');
  }
}

/** Redactor without secrets. */
export const noSecrets = new Redactor([], () => false);

/** Callback server for programs that make no calls. */
export const noCallbacks = { open: () => Promise.reject(new Error('no callback was expected')) };

/** Observer that ignores everything. */
export const silentObserver: CliObserver = {
  exited() {},
  killed() {},
  orphansReaped() {},
  output() {},
  startedUp() {},
  standbyTaken() {},
  liveSessionTaken() {},
  processTaken() {},
  toolsHeld() {},
  quotaReported() {},
  requestRefused() {},
  textIgnored() {},
  lateMessage() {},
  renewalsPaused() {},
};

/**
 * Program version of a line protocol: `+text` is a delta, `end` an end, `fail` a failure, `more` an event that the
 * process has taken its input, `stray` belongs to another turn, `: …` is not output of the model. Turns are also
 * written as lines, and a renewal as the line `renew`, which the program proves with `end`.
 */
export function lineVersion(stdin: 'keep-open' | 'end' = 'keep-open'): ProgramVersion {
  return {
    version: null,
    keptParts: ['schema'],
    plan: ({ model, system }) => ({ args: [model ?? '', system ?? ''], files: [] }),
    extras: {},
    protocol: () => ({
      writer: {
        write: ({ text, history }: Turn) => ({
          text: [...history, { text }].map((said) => `${said.text}\n`).join(''),
          stdin,
        }),
        renew: () => ({ text: 'renew\n', stdin }),
        rewind: (kept) => (kept[0]?.text === 'unprovable' ? null : { text: `rewind ${kept.length}\n`, stdin }),
        interrupt: () => ({ text: 'interrupt\n', stdin }),
      },
      decoder: lineDecoder(),
    }),
    check: async () => null,
    listModels: async () => null,
  };
}

/** Returns the line version with another decoder. */
export function withDecoder(decoder: Decoder<DecoderEvent>): ProgramVersion {
  const lines = lineVersion();
  return { ...lines, protocol: () => ({ ...lines.protocol(), decoder }) };
}

const turnEnd: TurnEvent = { type: 'turn-end', text: null, model: null, usage: unknownUsage };
const turnFailed: TurnEvent = { type: 'turn-failed', reason: 'other', message: 'it failed' };

export function lineDecoder(): Decoder {
  const splitter = new LineSplitter(100_000);
  let hasBegun = false;
  const read = (line: string): TurnEvent[] => {
    if (line === 'end' || line === 'fail') hasBegun = false;
    else if (line !== 'more' && !line.startsWith(':')) hasBegun = true;
    return eventsOf(line);
  };
  return {
    get hasBegun() {
      return hasBegun;
    },
    read: (chunk) => Array.from(splitter.split(chunk)).flatMap(read),
    exit: ({ code, stderr }) =>
      code === 0 ? [turnEnd] : [{ type: 'turn-failed', reason: 'crashed', message: `exit ${code}: ${stderr}` }],
  };
}

function eventsOf(line: string): TurnEvent[] {
  if (line.startsWith('+')) return [{ type: 'text-delta', text: line.slice(1) }];
  if (line === 'more') return [{ type: 'input-taken' }];
  if (line === 'stray') return [{ type: 'stray' }];
  if (line === 'end') return [turnEnd];
  return line === 'fail' ? [turnFailed] : [];
}

/** Sink that stores the text of an answer. A test can make its reader slow. */
export class TextBook implements TurnSink {
  readonly texts: string[] = [];
  readonly hidesThoughts = true;
  hasEnough = false;
  isFull = false;
  #caughtUp = () => {};

  get text(): string {
    return this.texts.join('');
  }

  readonly uses: TurnUse[] = [];

  used(use: TurnUse): void {
    this.uses.push(use);
  }

  write(event: AnswerEvent): void {
    if (event.type === 'text-delta') this.texts.push(event.text);
  }

  room(): Promise<void> {
    return new Promise((resolve) => {
      this.#caughtUp = resolve;
    });
  }

  async catchUp(): Promise<void> {
    this.isFull = false;
    this.#caughtUp();
    await settled();
  }
}

export const noLimits: CliLimits = { maxOutputBytes: 1_000_000, graceMs: 2000, stallMs: 0 };

export interface ScriptedCli {
  readonly tree: ScriptedTree;
  readonly process: CliProcess;
}

export interface ScriptedOptions {
  readonly next?: 'standby' | 'busy';
  readonly limits?: Partial<CliLimits>;
  readonly programVersion?: Pick<ProgramVersion, 'protocol'>;
  readonly onChange?: (process: CliProcess) => void;
  readonly callbacks?: CliProcessParts['callbacks'];
}

/** Starts a real CLI process around a scripted program. */
export async function scriptedCli(clock: Clock, options: ScriptedOptions = {}): Promise<ScriptedCli> {
  const { next = 'busy', limits, programVersion = lineVersion(), onChange, callbacks = noCallbacks } = options;
  const tree = new ScriptedTree();
  const parts = {
    programVersion,
    limits: { ...noLimits, ...limits },
    clock,
    observer: silentObserver,
    redactor: noSecrets,
    callbacks,
  };
  const process = new CliProcess(parts, next, onChange);
  await process.startProgram(Promise.resolve(tree));
  return { tree, process };
}

/** Returns the owner of a question, for whom its process may be renewed. */
export function tenantOf(client: ClientText, more: Partial<Tenant> = {}): Tenant {
  return { client, system: null, schema: null, offer: null, isQuestion: true, ...more };
}

export function turnOf(text: string): Turn {
  return { ...plainLaunch(null), text, history: [] };
}
