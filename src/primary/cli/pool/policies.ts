import type { SessionGuess } from '../process/cli-state.js';
import type { LaunchKey } from '../process/program.js';
import type { LaunchRecord } from './launch-history.js';

/** A process that was started in advance, as the policy sees it. */
export interface StandbyProcess {
  readonly key: LaunchKey;
  readonly startedMs: number;
  readonly isStarting: boolean;
}

export interface StandbySituation<P extends StandbyProcess> {
  readonly nowMs: number;
  /** Processes kept waiting for each launch in use; 0: none at all. */
  readonly perLaunch: number;
  readonly processes: readonly P[];
  readonly launches: readonly LaunchRecord[];
  readonly isUsual: (record: LaunchRecord) => boolean;
  /** Launches of the jobs that are next to get a slot and will need a new process. */
  readonly demand: readonly LaunchKey[];
  /** A job waits for its program to get going: another start would slow it down. */
  readonly isJobStarting: boolean;
  /** Processors that do nothing; null where that is not known (yet). */
  readonly idleProcessors: number | null;
}

export interface StandbyPlan<P extends StandbyProcess> {
  readonly start: LaunchRecord | null;
  readonly retire: readonly P[];
  /** When to look again if nothing else happens, monotonic; infinite where there is no need. */
  readonly nextMs: number;
}

/** An older process may hold what is out of date: a credential, or what a model's alias stands for. */
const maxAgeMs = 15 * 60_000;
/** A launch that was not used for this long needs no process any more. */
const coolsAfterMs = 10 * 60_000;
/** Beside the usual launch, only one that is used again is worth a waiting process. */
const minUses = 2;
/** What was started for a queue that has gone is kept for this long: the next jobs may come soon. */
const surplusMs = 10_000;
/** A start keeps about one processor busy. */
const processorsPerStart = 0.8;
/** How often to look again while a process is missing. */
const sampleMs = 100;
const ageCheckMs = 60_000;

/**
 * What to start in advance, one process at a time, and which of the waiting ones to end. When nobody waits, a few are
 * kept for the launches in use. While jobs wait, processes are started for them as far as processors are idle, so that a
 * slot that becomes free finds one ready.
 */
export function planStandby<P extends StandbyProcess>(situation: StandbySituation<P>): StandbyPlan<P> {
  const { nowMs, perLaunch, launches } = situation;
  if (perLaunch === 0) return { start: null, retire: situation.processes, nextMs: Number.POSITIVE_INFINITY };
  const retire = situation.processes.filter((process) => isSpent(process, situation));
  const left = situation.processes.filter((process) => !retire.includes(process));
  const needy = launches.filter((record) => wantedOf(record, situation) > ofLaunch(left, record).length);
  const due = needy.filter(({ notBeforeMs }) => notBeforeMs <= nowMs);
  const isBlocked = left.some(({ isStarting }) => isStarting) || !isAffordable(situation);
  return { start: isBlocked ? null : (due[0] ?? null), retire, nextMs: nextLook(situation, left, needy) };
}

/** While jobs wait, idle processors decide; when nobody waits, only a job that has just begun is in the way. */
function isAffordable<P extends StandbyProcess>({
  demand,
  isJobStarting,
  idleProcessors,
}: StandbySituation<P>): boolean {
  return demand.length > 0 ? (idleProcessors ?? 0) >= processorsPerStart : !isJobStarting;
}

function wantedOf<P extends StandbyProcess>(record: LaunchRecord, situation: StandbySituation<P>): number {
  const { nowMs, perLaunch, isUsual, demand } = situation;
  const isInUse = isUsual(record) || (record.uses >= minUses && nowMs - record.usedMs <= coolsAfterMs);
  const asked = demand.filter((key) => key === record.key).length;
  return Math.max(isInUse ? perLaunch : 0, asked);
}

/** Too old, for a launch that is no longer known, or more than is wanted. */
function isSpent<P extends StandbyProcess>(process: P, situation: StandbySituation<P>): boolean {
  const { nowMs, launches, processes } = situation;
  const ageMs = nowMs - process.startedMs;
  const record = launches.find(({ key }) => key === process.key);
  if (record === undefined || ageMs > maxAgeMs) return true;
  const younger = ofLaunch(processes, record).filter(({ startedMs }) => startedMs > process.startedMs);
  const wanted = wantedOf(record, situation);
  return wanted === 0 || (younger.length >= wanted && ageMs > surplusMs && nowMs - record.usedMs > surplusMs);
}

function ofLaunch<P extends StandbyProcess>(processes: readonly P[], { key }: LaunchRecord): readonly P[] {
  return processes.filter((process) => process.key === key);
}

function nextLook<P extends StandbyProcess>(
  { nowMs, perLaunch }: StandbySituation<P>,
  left: readonly P[],
  needy: readonly LaunchRecord[],
): number {
  const missing = needy.map(({ notBeforeMs }) => Math.max(notBeforeMs, nowMs + sampleMs));
  const waiting = left.length === 0 ? [] : [nowMs + (left.length > perLaunch ? surplusMs : ageCheckMs)];
  return Math.min(Number.POSITIVE_INFINITY, ...missing, ...waiting);
}

/** A process that waits for its conversation's next turn, as the policy sees it. */
export interface IdleSession {
  /** Since when it waits, monotonic. */
  readonly sinceMs: number;
  /** What it most likely is; null for a conversation that goes on. */
  readonly guess: SessionGuess | null;
}

export interface SessionSettings {
  readonly maxSessions: number;
  /** Time without a turn after which a session ends, milliseconds. */
  readonly idleMs: number;
}

export interface SessionPlan<S extends IdleSession> {
  readonly end: readonly S[];
  /** When the next one will have been idle for too long, monotonic; infinite where there is none. */
  readonly nextMs: number;
}

/** Which sessions to end: those idle for too long, and of the others those beyond the maximum. */
export function planSessions<S extends IdleSession>(
  sessions: readonly S[],
  { maxSessions, idleMs }: SessionSettings,
  nowMs: number,
): SessionPlan<S> {
  const recent = sessions.filter(({ sinceMs }) => nowMs - sinceMs < idleMs);
  const kept = mostWanted(recent).slice(0, maxSessions);
  return {
    end: sessions.filter((session) => !kept.includes(session)),
    nextMs: Math.min(...kept.map(({ sinceMs }) => sinceMs + idleMs)),
  };
}

/**
 * Conversations first: no single request ends one, however new it is. Then questions, one of each client before the second
 * of any, so that a client with many of them ends its own. Side requests come last: hardly any of them is ever continued.
 */
function mostWanted<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const newestFirst = sessions.toSorted((a, b) => b.sinceMs - a.sinceMs);
  const of = (kind: string) => newestFirst.filter(({ guess }) => (guess?.kind ?? 'conversation') === kind);
  return [...of('conversation'), ...inTurnOfClients(of('question')), ...of('side')];
}

/** The first of each client, then the second of each, and so on. */
function inTurnOfClients<S extends IdleSession>(sessions: readonly S[]): readonly S[] {
  const counts = new Map<string, number>();
  const ranked = sessions.map((session) => {
    const client = session.guess?.client ?? '';
    const rank = counts.get(client) ?? 0;
    counts.set(client, rank + 1);
    return { session, rank };
  });
  return ranked.toSorted((a, b) => a.rank - b.rank).map(({ session }) => session);
}
