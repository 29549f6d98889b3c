import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Clock } from '../../shared/clock.js';
import { closingFailed } from '../../shared/node-internals/spawned-children.js';
import type { Phase } from '../../shared/phase.js';
import { formatCount } from '../../shared/text/format.js';
import type { WorkerState } from '../workers/worker-handle.js';

/** Data that systemd passed to this process. */
export interface Handover {
  /** Socket for notifications; null if systemd expects none. */
  readonly notifySocket: string | null;
  /** Interval within which systemd expects a watchdog notification, in milliseconds; null if it expects none. */
  readonly watchdogMs: number | null;
  /** Descriptors of sockets that systemd has opened for this process. */
  readonly passedFds: readonly number[];
}

const firstPassedFd = 3;
const variableNames = ['NOTIFY_SOCKET', 'WATCHDOG_PID', 'WATCHDOG_USEC', 'LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES'];

/** Reads the variables and removes them from the environment, so that no child inherits them. */
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

/** State of the service that systemd is notified of. */
export interface Vitals {
  phase(): Phase;
  readonly slots: { readonly active: number; readonly waiting: number };
  readonly workers: { counts(): Record<WorkerState, number> };
}

const statusEveryMs = 2000;
const sendLimitMs = 5000;

/**
 * Notifies systemd of the state of the service with `systemd-notify`, because Node has no Unix datagram sockets.
 */
export class Systemd {
  readonly #handover: Handover;
  readonly #program: string | null;
  readonly #pid: number;
  readonly #clock: Clock;
  /** Last notification. Notifications are sent one at a time, because READY must not overtake RELOADING. */
  #sent: Promise<void> = Promise.resolve();
  #lastStatus = '';

  /** `program`: path of `systemd-notify`; null disables notifications. */
  constructor(handover: Handover, program: string | null, pid: number, clock: Clock) {
    this.#handover = handover;
    this.#program = handover.notifySocket === null ? null : program;
    this.#pid = pid;
    this.#clock = clock;
  }

  /** Whether systemd started this process and restarts it after a failure. */
  get isThere(): boolean {
    return this.#handover.notifySocket !== null;
  }

  /**
   * Warnings for the log. If systemd expects a notification and gets none, it treats the service as not started and
   * ends it.
   */
  get warnings(): readonly string[] {
    if (this.#handover.notifySocket === null || this.#program !== null) return [];
    return [
      'NOTIFY_SOCKET is set, but there is no systemd-notify on PATH: systemd does not learn that the service is ready. ' +
        'Install it, or set Type=exec and WatchdogSec=0.',
    ];
  }

  get passedFds(): readonly number[] {
    return this.#handover.passedFds;
  }

  /**
   * Starts periodic notifications. Watchdog notifications come from a timer of the main event loop, and only while a
   * worker listens or finishes requests, or during a drain.
   */
  startNotifications(vitals: Vitals): void {
    if (this.#program === null) return;
    const { watchdogMs } = this.#handover;
    this.#clock.every(statusEveryMs, () => this.#notifyStatus(vitals));
    if (watchdogMs !== null) this.#clock.every(watchdogMs / 2, () => this.#ping(vitals));
  }

  announce(phase: Phase): void {
    if (phase === 'ready') this.#notify('READY=1');
    if (phase === 'draining') this.#notify('STOPPING=1');
  }

  /** Notifies systemd of a reload and its end. The service continues even if the reload failed. */
  async reloading(reload: Promise<boolean>): Promise<boolean> {
    this.#notify('RELOADING=1');
    const isComplete = await reload;
    this.#notify('READY=1');
    return isComplete;
  }

  #ping({ phase, workers }: Vitals): void {
    const { ready, stopping } = workers.counts();
    if (phase() === 'draining' || ready + stopping > 0) this.#notify('WATCHDOG=1');
  }

  #notifyStatus(vitals: Vitals): void {
    const status = sentenceOf(vitals);
    if (status === this.#lastStatus) return;
    this.#lastStatus = status;
    this.#notify(`STATUS=${status}`);
  }

  #notify(...assignments: string[]): void {
    const { notifySocket } = this.#handover;
    const program = this.#program;
    if (program === null || notifySocket === null) return;
    const args = [`--pid=${this.#pid}`, ...assignments];
    this.#sent = this.#sent.then(() => run(program, args, notifySocket));
  }
}

function sentenceOf({ phase, slots, workers }: Vitals): string {
  return `${phase()}: ${slots.active} running, ${slots.waiting} waiting, ${formatCount(workers.counts().ready, 'worker')}`;
}

/** Runs `systemd-notify`. Never rejects: if notifications fail, the watchdog acts. */
async function run(program: string, args: readonly string[], notifySocket: string): Promise<void> {
  const options = { env: { NOTIFY_SOCKET: notifySocket }, timeout: sendLimitMs };
  try {
    // execFile throws synchronously if memory is short.
    await closingFailed(() => promisify(execFile)(program, args, options));
  } catch {}
}
