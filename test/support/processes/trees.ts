import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { CgroupContainments } from '../../../src/features/cgroups/containment.js';
import type { EndReason, ExitClass } from '../../../src/primary/cli/contract/observer.js';
import { spawnProgram } from '../../../src/primary/cli/process/launcher.js';
import type { ContainmentFactory } from '../../../src/primary/cli/terminate/containment.js';
import { GroupContainments } from '../../../src/primary/cli/terminate/group-containment.js';
import { ProcessTree } from '../../../src/primary/cli/terminate/process-tree.js';
import { createKillTree } from '../../../src/primary/cli/terminate/termination.js';
import { type Clock, systemClock } from '../../../src/shared/clock.js';
import { Cgroup } from '../../../src/shared/process/cgroup.js';
import { cookieOf, type Instance, instanceOfProcess } from '../../../src/shared/process/proc.js';
import { silentObserver } from '../agents/scripted-cli.js';
import { LogBook } from '../basics/log-book.js';
import { until } from '../basics/until.js';
import { allPids, killIfAlive, readOfProcess } from './processes.js';

/** Real clock whose timers keep no process alive: a second look for processes may follow the last test. */
export const clock: Clock = {
  ...systemClock,
  after: (ms, action) => {
    const timer = setTimeout(action, ms).unref();
    return () => clearTimeout(timer);
  },
};

/** Cgroup of the tests if they may create cgroups in it, else null. */
const cgroupOfTests = usableCgroup();

function usableCgroup(): string | null {
  try {
    const mount = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .find((line) => / - cgroup2 /.test(line));
    const membership = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
    const path = join(mount?.split(' ')[4] ?? '', membership);
    const trial = join(path, `prompt-relay-test-${process.pid}`);
    mkdirSync(trial);
    try {
      accessSync(join(trial, 'cgroup.kill'));
    } finally {
      rmdirSync(trial);
    }
    return path;
  } catch {
    return null;
  }
}

/** Calls `describe` for tests that need cgroups; skips them with a message if none can be created. */
export function describeWithCgroups(title: string, body: () => void): void {
  if (cgroupOfTests === null) process.stderr.write(`Skipped, because no cgroup can be made here: ${title}.\n`);
  (cgroupOfTests === null ? describe.skip : describe)(title, body);
}

let cgroups = 0;

/** Creates a cgroup below the tests' cgroup, removed when its scope ends. */
export async function temporaryCgroup(): Promise<Cgroup & AsyncDisposable> {
  const cgroup = new Cgroup(join(cgroupOfTests ?? '', `prompt-relay-test-${process.pid}-${++cgroups}`));
  await cgroup.create();
  const remove = async () => {
    await cgroup.kill(clock, 5000);
    await cgroup.remove();
  };
  return Object.assign(cgroup, { [Symbol.asyncDispose]: remove });
}

/**
 * Returns a unique instance that counts as alive until its scope ends, so that other services ignore its marked
 * processes.
 */
export async function temporaryInstance(): Promise<Instance & AsyncDisposable> {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const exited = once(child, 'exit');
  const end = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { ...(await instanceOfProcess(child.pid ?? 0)), [Symbol.asyncDispose]: end };
}

const unlimited = { hasMemory: false, hasPids: false, maxMemoryBytes: null };

/** Returns trees contained by cgroups. */
export async function cgroupTrees(): Promise<Trees> {
  const home = await temporaryCgroup();
  return new Trees(new CgroupContainments(home, unlimited, clock), await temporaryInstance());
}

/** Returns trees contained by process groups and cookies. */
export async function groupTrees(): Promise<Trees> {
  const instance = await temporaryInstance();
  return new Trees(new GroupContainments(instance, null, clock), instance);
}

/** Runs the same tests for both kinds of containment. */
export function describeEachMeans(title: string, body: (open: () => Promise<Trees>) => void): void {
  describeWithCgroups(`${title}, with cgroups`, () => body(cgroupTrees));
  describe(`${title}, with process groups`, () => body(groupTrees));
}

const killTree = createKillTree(true, clock);

/** Starts real programs as process trees, and ends them all. */
export class Trees implements AsyncDisposable {
  readonly log = new LogBook();
  /** Exit classes and sent signals with their reasons, in order. */
  readonly reports: (ExitClass | `${'SIGTERM' | 'SIGKILL'} ${EndReason}`)[] = [];
  orphans = 0;
  readonly #containments: ContainmentFactory;
  readonly #instance: Instance & AsyncDisposable;
  readonly #started: ProcessTree[] = [];
  #serial = 0;

  constructor(containments: ContainmentFactory, instance: Instance & AsyncDisposable) {
    this.#containments = containments;
    this.#instance = instance;
  }

  async start(program: string, args: readonly string[], onGone: () => Promise<void> = async () => {}) {
    const cookie = cookieOf(this.#instance, ++this.#serial);
    const containment = await this.#containments.create(this.#serial, cookie);
    const env = { PATH: process.env.PATH ?? '' };
    const observer = this.#observer();
    const child = await spawnProgram({ program, args, env, workingDirectory: '/', cookie }, containment, observer);
    child.stdin.on('error', () => {});
    const tree = new ProcessTree(child, containment, onGone, { killTree, clock, log: this.log, observer });
    this.#started.push(tree);
    return tree;
  }

  /** Starts a shell with this script. */
  shell(script: string): Promise<ProcessTree> {
    return this.start('/bin/sh', ['-c', script]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#started.map((tree) => tree.end(0, 'done')));
    await this.#containments.close();
    await this.#instance[Symbol.asyncDispose]();
  }

  #observer() {
    return {
      ...silentObserver,
      exited: (kind: ExitClass) => this.reports.push(kind),
      killed: (signal: 'SIGTERM' | 'SIGKILL', reason: EndReason) => this.reports.push(`${signal} ${reason}`),
      orphansReaped: (count: number) => {
        this.orphans += count;
      },
    };
  }
}

const marks: string[] = [];

/**
 * Returns a unique word that marks command lines, so that a test finds its processes whatever they detach from. The
 * word is also an argument for `sleep` of about a minute.
 */
export function freshMark(): string {
  const mark = `60.${process.hrtime.bigint()}`;
  marks.push(mark);
  return mark;
}

afterEach(async () => {
  for (const mark of marks.splice(0)) for (const pid of await marked(mark)) killIfAlive(pid);
});

/** Returns the living processes with this word in their command line. */
export function marked(mark: string): Promise<number[]> {
  return pidsWhere((line) => line.includes(mark));
}

/** Returns the marked processes that have become `sleep`. */
export function sleeping(mark: string): Promise<number[]> {
  return pidsWhere((line) => /^[^\0]*sleep\0[^\0]*\0$/.test(line) && line.includes(mark));
}

async function pidsWhere(fits: (commandLine: string) => boolean): Promise<number[]> {
  return allPids().filter((pid) => fits(readOfProcess(pid, 'cmdline')));
}

/** Resolves when at least `count` processes have the mark. */
export function untilMarked(mark: string, count: number): Promise<number[]> {
  return untilSome(() => marked(mark), count);
}

/**
 * Resolves when several scans in a row find no process with this mark. One scan may miss processes that move from PID to
 * PID while it reads.
 */
export async function untilNoneMarked(mark: string): Promise<void> {
  let scans = 0;
  await until(async () => {
    scans = (await marked(mark)).length === 0 ? scans + 1 : 0;
    return scans === 10;
  }, 'the marked processes to be gone');
}

/** Resolves when at least `count` marked processes are `sleep`. */
export function untilSleeping(mark: string, count: number): Promise<number[]> {
  return untilSome(() => sleeping(mark), count);
}

function untilSome(find: () => Promise<number[]>, count: number): Promise<number[]> {
  return until(async () => {
    const pids = await find();
    return pids.length >= count ? pids : null;
  }, `${count} processes`);
}
