import { spawn } from 'node:child_process';
import type { Clock } from '../../shared/clock.js';
import type { Phase } from '../../shared/phase.js';
import type { WorkerState } from '../fleet/seat.js';

/** What systemd has handed over to this very process. */
export interface Handover {
  /** Where it is to be told how things go; null when nobody wants to know. */
  readonly notifySocket: string | null;
  /** It wants a sign of life within this time, milliseconds; null when it does not. */
  readonly watchdogMs: number | null;
  /** Descriptors of sockets that it listens on for us. */
  readonly passedFds: readonly number[];
}

const firstPassedFd = 3;
const variableNames = ['NOTIFY_SOCKET', 'WATCHDOG_PID', 'WATCHDOG_USEC', 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'];

/** Takes the variables out of the environment, so that no child ever sees them. */
export function takeHandover(env: Record<string, string | undefined>, pid: number): Handover {
  const [notifySocket, watchdogPid, watchdogUsec, listenPid, listenFds] = variableNames.map((name) => env[name]);
  for (const name of variableNames) delete env[name];
  const isWatched = watchdogPid === undefined || watchdogPid === String(pid);
  return {
    notifySocket: notifySocket || null,
    watchdogMs: (isWatched && Math.floor(countOf(watchdogUsec) / 1000)) || null,
    passedFds: Array.from({ length: listenPid === String(pid) ? countOf(listenFds) : 0 }, (_, i) => firstPassedFd + i),
  };
}

function countOf(value = ''): number {
  return /^\d{1,15}$/.test(value) ? Number(value) : 0;
}

/** What is told of the service from time to time. */
export interface Vitals {
  phase(): Phase;
  readonly slots: { readonly active: number; readonly waiting: number };
  readonly fleet: { counts(): Record<WorkerState, number> };
}

const statusEveryMs = 2000;
const sendLimitMs = 5000;

/** Tells systemd how the service is. Node has no Unix datagrams, so that `systemd-notify` has to carry every word. */
export class Systemd {
  readonly #handover: Handover;
  readonly #program: string | null;
  readonly #pid: number;
  readonly #clock: Clock;
  /** Words go out one after the other: READY must not overtake RELOADING. */
  #sent: Promise<void> = Promise.resolve();
  #lastStatus = '';

  /** `program` is the path of `systemd-notify`; where it is null, nobody is told anything. */
  constructor(handover: Handover, program: string | null, pid: number, clock: Clock) {
    this.#handover = handover;
    this.#program = handover.notifySocket === null ? null : program;
    this.#pid = pid;
    this.#clock = clock;
  }

  get passedFds(): readonly number[] {
    return this.#handover.passedFds;
  }

  /** Signs of life come from a timer of the main loop, and only while somebody can answer. */
  start(vitals: Vitals): void {
    if (this.#program === null) return;
    const { watchdogMs } = this.#handover;
    this.#clock.every(statusEveryMs, () => this.#tellStatus(vitals));
    if (watchdogMs !== null) this.#clock.every(watchdogMs / 2, () => this.#ping(vitals));
  }

  announce(phase: Phase): void {
    if (phase === 'ready') this.#tell('READY=1');
    if (phase === 'draining') this.#tell('STOPPING=1');
  }

  /** Tells of this reload until its end, also where it has failed: the service runs on. */
  async reloading(reload: Promise<boolean>): Promise<boolean> {
    this.#tell('RELOADING=1');
    const isComplete = await reload;
    this.#tell('READY=1');
    return isComplete;
  }

  #ping({ phase, fleet }: Vitals): void {
    if (phase() === 'draining' || fleet.counts().ready > 0) this.#tell('WATCHDOG=1');
  }

  #tellStatus(vitals: Vitals): void {
    const status = sentenceOf(vitals);
    if (status === this.#lastStatus) return;
    this.#lastStatus = status;
    this.#tell(`STATUS=${status}`);
  }

  #tell(...words: string[]): void {
    const { notifySocket } = this.#handover;
    const program = this.#program;
    if (program === null || notifySocket === null) return;
    const args = [`--pid=${this.#pid}`, ...words];
    this.#sent = this.#sent.then(() => run(program, args, notifySocket));
  }
}

function sentenceOf({ phase, slots, fleet }: Vitals): string {
  return `${phase()}: ${slots.active} running, ${slots.waiting} waiting, ${fleet.counts().ready} workers`;
}

/** Never rejects: what can't be told is told by the watchdog's silence. */
function run(program: string, args: readonly string[], notifySocket: string): Promise<void> {
  const options = { env: { NOTIFY_SOCKET: notifySocket }, stdio: 'ignore', timeout: sendLimitMs } as const;
  const done = new Promise<void>((resolve) => {
    spawn(program, args, options)
      .once('error', () => resolve())
      .once('exit', () => resolve());
  });
  return done.catch(() => {}); // want of memory is thrown
}
