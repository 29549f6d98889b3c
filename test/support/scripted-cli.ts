import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Decoder, Dialect, Turn, TurnEvent } from '../../src/primary/cli/adapter.js';
import { unknownUsage } from '../../src/primary/cli/adapter.js';
import type { CliObserver, EndReason } from '../../src/primary/cli/cli-observer.js';
import { type CliLimits, CliProcess, type OwnedTree } from '../../src/primary/cli/cli-process.js';
import { LineSplitter } from '../../src/primary/cli/lines.js';
import type { ExitStatus } from '../../src/primary/cli/process-tree.js';
import type { Clock } from '../../src/shared/clock.js';
import { settled } from './settled.js';

/** A program and its tree that do what the test says, and nothing by themselves. */
export class ScriptedTree implements OwnedTree {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly child: ChildProcessWithoutNullStreams;
  readonly exited: Promise<ExitStatus>;
  /** Why it was ended, each time it was. */
  readonly ends: EndReason[] = [];
  readonly graces: number[] = [];
  #heard = '';
  #isDead = false;
  #isGone: Promise<void> = Promise.resolve();

  constructor() {
    const { stdin, stdout, stderr } = this;
    const child = Object.assign(new EventEmitter(), { stdin, stdout, stderr });
    this.child = child as unknown as ChildProcessWithoutNullStreams;
    this.exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
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

  /** Its end is told only when the returned function is called. */
  linger(): () => void {
    let release = () => {};
    this.#isGone = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  async hasDied(): Promise<boolean> {
    return this.#isDead;
  }

  async end(graceMs: number, reason: EndReason): Promise<void> {
    this.ends.push(reason);
    this.graces.push(graceMs);
    this.child.emit('exit', null, 'SIGTERM');
    await this.#isGone;
  }
}

/** Hears everything, minds nothing. */
export const silentObserver: CliObserver = {
  exited() {},
  killed() {},
  orphansReaped() {},
  output() {},
};

/** Lines: `+text` is a delta, `end` an end, `fail` a failure, `more` asks for more, `: …` is not the model's. Turns are written as lines, too. */
export function lineDialect(stdin: 'keep-open' | 'end' = 'keep-open'): Dialect {
  return {
    version: null,
    plan: ({ model, system }) => ({ args: [model ?? '', system ?? ''], files: [] }),
    write: ({ text, history }: Turn) => ({
      text: [...history, { text }].map((said) => `${said.text}\n`).join(''),
      stdin,
    }),
    decoder: lineDecoder,
    check: async () => null,
    listModels: async () => null,
  };
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
  if (line === 'end') return [turnEnd];
  return line === 'fail' ? [turnFailed] : [];
}

export const noLimits: CliLimits = { maxOutputBytes: 1_000_000, graceMs: 2000, firstOutputMs: 0, stallMs: 0 };

export interface ScriptedCli {
  readonly tree: ScriptedTree;
  readonly process: CliProcess;
}

/** A real CLI process around a scripted program. */
export function scriptedCli(clock: Clock, limits: Partial<CliLimits> = {}, dialect = lineDialect()): ScriptedCli {
  const tree = new ScriptedTree();
  const parts = { dialect, limits: { ...noLimits, ...limits }, clock, observer: silentObserver };
  return { tree, process: new CliProcess(tree, { ...parts, onEnded: async () => {} }) };
}

export function turnOf(text: string): Turn {
  return { text, system: null, history: [] };
}
