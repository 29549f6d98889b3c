import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { LineSplitter } from '../../src/primary/cli/adapters/common/lines.js';
import {
  type CallDelta,
  type CallStart,
  type Decoder,
  type DecoderEvent,
  type ProgramVersion,
  plainLaunch,
  type Turn,
  type TurnEvent,
  unknownUsage,
} from '../../src/primary/cli/contract/adapter.js';
import type { CliObserver, EndReason } from '../../src/primary/cli/contract/observer.js';
import {
  type CliLimits,
  CliProcess,
  type CliProcessParts,
  type OwnedTree,
} from '../../src/primary/cli/process/cli-process.js';
import type { TextSink, TurnUse } from '../../src/primary/cli/process/open-turn.js';
import { Redactor } from '../../src/primary/cli/process/redactor.js';
import type { Child, ExitStatus } from '../../src/primary/cli/terminate/containment.js';
import type { Clock } from '../../src/shared/clock.js';
import type { CgroupUsage } from '../../src/shared/process/cgroup.js';
import { settled } from './settled.js';

/** A program and its tree that do what the test says, and nothing by themselves. */
export class ScriptedTree implements OwnedTree {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly child: Child;
  /** Why it was ended, each time it was. */
  readonly ends: EndReason[] = [];
  /** Each pause and each resume, in order. */
  readonly pauses: string[] = [];
  readonly graces: number[] = [];
  /** What it has used so far, as the test says. */
  used: CgroupUsage | null = null;
  #heard = '';
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
      this.#heard += bytes.toString();
    });
  }

  /** What was written to its stdin. */
  get heard(): string {
    return this.#heard;
  }

  async say(text: string | Buffer): Promise<void> {
    this.stdout.write(text);
    await settled();
  }

  /** Exits; its stdout closes when all of it has been read. */
  async exit(code: number | null = 0, signal: NodeJS.Signals | null = null): Promise<void> {
    this.stdout.once('end', () => this.child.emit('close', code, signal));
    this.stdout.end();
    await this.exitAndLeave(code, signal);
  }

  /** Exits, and somebody else holds its stdout. */
  async exitAndLeave(code: number | null = 0, signal: NodeJS.Signals | null = null): Promise<void> {
    this.child.emit('exit', code, signal);
    await settled();
  }

  /** Dies, and nobody is told yet. */
  dieUnnoticed(): void {
    this.#isDead = true;
  }

  /** It is gone only when the returned function is called. */
  linger(): () => void {
    let release = () => {};
    this.#isGone = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  get hasDied(): boolean {
    return this.#isDead;
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

/** Hears everything, counts nothing. */
/** For where no secret is known. */
export const noSecrets = new Redactor([], () => false);

/** For programs that ask for nothing by HTTP. */
export const noCallbacks = {
  open: () => Promise.reject(new Error('no callback was expected')),
};

export const silentObserver: CliObserver = {
  exited() {},
  killed() {},
  orphansReaped() {},
  output() {},
  startedUp() {},
  standbyTaken() {},
  liveSessionTaken() {},
  toolsHeld() {},
  quotaReported() {},
  requestRefused() {},
  textIgnored() {},
};

/** Lines: `+text` is a delta, `end` an end, `fail` a failure, `more` asks for more, `stray` is of another turn, `: …` is not the model's. Turns are written as lines, too. */
export function lineVersion(stdin: 'keep-open' | 'end' = 'keep-open'): ProgramVersion {
  return {
    version: null,
    plan: ({ model, system }) => ({ args: [model ?? '', system ?? ''], files: [] }),
    extras: {},
    protocol: () => ({
      writer: {
        write: ({ text, history }: Turn) => ({
          text: [...history, { text }].map((said) => `${said.text}\n`).join(''),
          stdin,
        }),
      },
      decoder: lineDecoder(),
    }),
    check: async () => null,
    listModels: async () => null,
  };
}

/** The same, read by another decoder. */
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

/** Keeps the text of an answer. Its reader may fall behind, and catch up. */
export class TextBook implements TextSink {
  readonly texts: string[] = [];
  hasEnough = false;
  isFull = false;
  #caughtUp = () => {};

  get text(): string {
    return this.texts.join('');
  }

  readonly calls: (CallStart | CallDelta)[] = [];
  readonly uses: TurnUse[] = [];

  used(use: TurnUse): void {
    this.uses.push(use);
  }

  write(text: string): void {
    this.texts.push(text);
  }

  call(event: CallStart | CallDelta): void {
    this.calls.push(event);
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

export const noLimits: CliLimits = { maxOutputBytes: 1_000_000, graceMs: 2000, firstOutputMs: 0, stallMs: 0 };

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

/** A real CLI process around a scripted program, started. */
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
  await process.start(Promise.resolve(tree));
  return { tree, process };
}

export function turnOf(text: string): Turn {
  return { ...plainLaunch(null), text, history: [] };
}
