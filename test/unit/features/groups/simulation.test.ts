import { createBudgets } from '../../../../src/features/budgets/primary.js';
import { createGroups } from '../../../../src/features/groups/primary.js';
import { Reservations } from '../../../../src/features/reservations/reservations.js';
import { Clients, clientBounds } from '../../../../src/primary/access/clients.js';
import type { PrimaryCore, PrimaryPart } from '../../../../src/primary/features/feature.js';
import { noCharge } from '../../../../src/primary/jobs/bill.js';
import type { Ticket } from '../../../../src/primary/jobs/ticket.js';
import { WaitingRoom } from '../../../../src/primary/jobs/waiting-room.js';
import type { ClientText } from '../../../../src/shared/client.js';
import { timestamp } from '../../../../src/shared/clock.js';
import { digestOf } from '../../../../src/shared/config/api-keys.js';
import { dayText } from '../../../../src/shared/config/key-values.js';
import { readKeysFile } from '../../../../src/shared/config/keys-file.js';
import { toRelayError } from '../../../../src/shared/errors.js';
import type { JobRequest } from '../../../../src/shared/job.js';
import { loginOf } from '../../../support/agents/logins.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { keyOptions } from '../../../support/basics/key-options.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { usagePart } from '../../../support/jobs/usage-part.js';

const [day, stepMs, slots] = [86_400_000, 30_000, 4];
/** Tokens of each job, which takes one step. */
const tokens = 1000;

/** Member of a group: the client of a key, or a person with the group in the header of the proxy. */
interface Member {
  readonly client: ClientText;
  readonly group: string;
  readonly named: readonly string[];
  jobs: number;
  lastStart: number;
  longestWait: number;
  readonly refusals: Set<string>;
}

/** Slots that an administrator reserves for a group, with the begin after the start of the day. */
interface Reserved {
  readonly group: string;
  readonly slots: number;
  readonly afterMs: number;
  readonly forMs: number;
}

const sizes = { bio: 25, chem: 25, math: 25, art: 25, law: 25, physics: 25, bio101: 30, bio102: 20 };

function createMembers(start: number): Member[] {
  return Object.entries(sizes).flatMap(([group, size], index) =>
    Array.from({ length: size }, (_, number) => {
      const isPerson = index % 2 === 1;
      const client = `${isPerson ? 'sso' : 'key'} ${group}${number}` as const;
      const counts = { jobs: 0, lastStart: start, longestWait: 0, refusals: new Set<string>() };
      return { client, group, named: isPerson ? [group] : [], ...counts };
    }),
  );
}

/** A day of the service: every member always has two jobs, and 4 slots serve them. The parts that decide are the real ones. */
class SimulatedDay {
  readonly clock = new FakeClock();
  /** The day begins at noon, because groups end at midnight. */
  readonly midnight = Math.ceil(this.clock.now() / day + 1) * day;
  readonly start = this.midnight - day / 2;
  readonly members = createMembers(this.start);
  readonly #clients: Clients;
  readonly #usage = usagePart(this.clock);
  readonly #room: WaitingRoom;
  readonly #parts: readonly PrimaryPart[];
  readonly #reservations: Reservations;
  readonly #open = new Map<Ticket, { readonly member: Member; readonly request: JobRequest; hasStarted: boolean }>();
  mostRunning = 0;
  /** Running jobs of each group with an active reservation, in each step. */
  readonly runningReserved: (readonly [group: string, running: number])[] = [];
  lastStartInCourse = 0;

  constructor(groupLinesOf: (midnight: string) => readonly string[]) {
    const keyLines = this.members.flatMap(({ client, group }) => {
      const [kind, name] = client.split(' ');
      return kind === 'key' ? [`${name}:sha256:${digestOf(client)}:group=${group}`] : [];
    });
    const content = readKeysFile([...keyLines, ...groupLinesOf(dayText(this.midnight))].join('\n'), keyOptions);
    expect(content.faults).toEqual([]);
    const { keys: namedKeys, groupLines: lines, personLines } = content;
    const settings = { apiKeys: [], namedKeys, groupLines: lines, personLines, needsKey: true };
    this.#clients = new Clients({ ...settings, rateMaxRequests: 0, rateWindowMs: 1 }, this.clock);
    for (const { client, named } of this.members) if (named.length > 0) this.#clients.recordPerson(client, named);
    const boundsOf = clientBounds({ clientMaxConcurrent: 0 }, (client) => this.#clients.optionsOf(client));
    const limits = { maxActive: slots, maxWaiting: 2000, maxWaitingBytes: 1e9, cliLimits: {} };
    this.#room = new WaitingRoom(limits, this.clock, boundsOf);
    this.#reservations = new Reservations({
      ...{ clients: this.#clients, room: this.#room, clock: this.clock, beforeAct: async () => {} },
      ...{ place: { shared: null, path: null, place: 'memory' }, log: new LogBook() },
    });
    const router = { names: { resolveConfigured: (name: string) => name } };
    const core = { host: { clock: this.clock }, clients: this.#clients, earlierParts: [this.#usage], router };
    this.#parts = [createBudgets, createGroups].map((create) => create(core as unknown as PrimaryCore));
  }

  async run(reserved: readonly Reserved[]): Promise<void> {
    await this.clock.advance(this.start - this.clock.now());
    for (const { group, slots: count, afterMs, forMs } of reserved) {
      const order = { group, slots: count, begins_at: timestamp(this.start + afterMs), seconds: forMs / 1000 };
      await this.#reservations.reserve({ client: 'key root', isAdmin: true, requestId: 'r' }, order);
    }
    for (let step = 0; step < day / stepMs; step++) {
      this.#submit();
      this.#startGranted();
      await this.clock.advance(stepMs);
      this.#endRunning();
      this.#room.check();
    }
  }

  /** Lets each member that is not refused have two jobs. */
  #submit(): void {
    const counts = new Map<Member, number>();
    for (const { member } of this.#open.values()) counts.set(member, (counts.get(member) ?? 0) + 1);
    for (const member of this.members)
      for (let count = counts.get(member) ?? 0; count < 2; count++) if (!this.#admit(member)) break;
  }

  #admit(member: Member): boolean {
    const { client, named } = member;
    const request = { client, groups: this.#clients.countedGroupsOf(client, named) } as unknown as JobRequest;
    if (!this.#isAccepted(member, request)) return false;
    const gates = this.#parts.flatMap(({ job }) => job?.gatesOf?.(request) ?? []);
    gates.push(...this.#reservations.gatesOf(client, request.groups));
    const share = this.#parts.flatMap(({ job }) => job?.shareOf?.(request) ?? [])[0] ?? null;
    const fields = { client, bytes: 1, cli: loginOf('claude'), lane: client, heldBy: () => null };
    const ticket = this.#room.admit({ ...fields, gates, share });
    this.#open.set(ticket, { member, request, hasStarted: false });
    return true;
  }

  #isAccepted(member: Member, request: JobRequest): boolean {
    try {
      this.#clients.checkAccess(member.client, this.clock.now());
      for (const { job } of this.#parts) job?.start?.(request);
      return true;
    } catch (error) {
      member.refusals.add(toRelayError(error).message);
      return false;
    }
  }

  /** Starts the jobs with a slot, and ends those that are refused there, until no further job gets a slot. */
  #startGranted(): void {
    for (let isNew = true; isNew; ) {
      isNew = false;
      for (const [ticket, job] of this.#open) {
        if (ticket.isWaiting || job.hasStarted) continue;
        isNew = true;
        if (this.#isAccepted(job.member, job.request)) this.#countStart(job);
        else this.#end(ticket);
      }
    }
    const running = [...this.#open.values()].filter(({ hasStarted }) => hasStarted);
    const runningOf = (name: string) => running.filter(({ member }) => member.group === name).length;
    this.mostRunning = Math.max(this.mostRunning, runningOf('chem'));
    for (const { group, is_active } of this.#reservations.list())
      if (is_active) this.runningReserved.push([group, runningOf(group)]);
  }

  #countStart(job: { member: Member; hasStarted: boolean }): void {
    const { member } = job;
    const now = this.clock.now();
    job.hasStarted = true;
    member.longestWait = Math.max(member.longestWait, now - member.lastStart);
    member.lastStart = now;
    if (member.group === 'bio101') this.lastStartInCourse = now;
  }

  #endRunning(): void {
    for (const [ticket, { member, request, hasStarted }] of this.#open) {
      if (!hasStarted) continue;
      member.jobs++;
      this.#usage.recent.jobEnded(request, { ...noCharge, outputTokens: tokens });
      this.#end(ticket);
    }
  }

  #end(ticket: Ticket): void {
    this.#open.delete(ticket);
    ticket[Symbol.dispose]();
  }
}

describe('A day of 200 people in 6 groups and 2 courses on 4 slots', () => {
  const simulated = new SimulatedDay((midnight) => [
    '@institute tokens=20000000/day',
    '@bio in=institute each=weight:2',
    '@chem in=institute running=1',
    '@math in=institute each=concurrent:1',
    '@art tokens=100000/day',
    '@law running=4 share=10',
    '@faculty share=20',
    '@physics tokens=9000000/week in=faculty',
    `@bio101 expires=${midnight}`,
    '@bio102 each=tokens:20000/day',
  ]);
  const hour = 3_600_000;
  const reserved = [
    { group: 'bio101', slots: 3, afterMs: 4 * hour, forMs: 2 * hour },
    { group: 'art', slots: 1, afterMs: 10 * hour, forMs: hour },
  ];
  beforeAll(() => simulated.run(reserved), 300_000);

  const membersOf = (group: string) => simulated.members.filter((member) => member.group === group);
  const jobsOf = (group: string) => membersOf(group).reduce((sum, { jobs }) => sum + jobs, 0);

  it('has shares within 5 % of what the lines say', () => {
    const turns = { bio: 50, chem: 25, math: 25, law: 10, physics: 20 };
    const shares = Object.entries(turns).map(([group, count]) => jobsOf(group) / count);
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    for (const share of shares) expect(Math.abs(share / mean - 1)).toBeLessThan(0.05);
    for (const group of Object.keys(turns)) {
      const counts = membersOf(group).map(({ jobs }) => jobs);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(group === 'bio' ? 3 : 2);
    }
    expect(Object.keys(sizes).reduce((sum, group) => sum + jobsOf(group), 0)).toBe((slots * day) / stepMs);
  });

  it('ends no group or member above a budget, by more than the jobs that ran', () => {
    expect(jobsOf('art')).toBeGreaterThanOrEqual(200);
    expect(jobsOf('art')).toBeLessThan(2 * (100 + slots));
    for (const { jobs } of membersOf('bio102')) expect([40, 41, 42]).toContain(jobs);
    expect(simulated.mostRunning).toBe(1);
  });

  it('refuses the members of an ended course, whose waiting jobs do not start either', () => {
    expect(jobsOf('bio101')).toBeGreaterThan(500);
    expect(simulated.lastStartInCourse).toBeLessThan(simulated.midnight);
    for (const { refusals } of membersOf('bio101'))
      expect([...refusals]).toEqual([expect.stringContaining('the group bio101 ended at ')]);
  });

  it('lets nobody starve whom no line limits', () => {
    const free = ['bio', 'chem', 'math', 'law', 'physics'].flatMap(membersOf);
    // A round has at most 205 turns, and for two hours the others have one slot. The 25 members of law have 10 turns.
    for (const { group, longestWait } of free)
      expect(longestWait).toBeLessThan(group === 'law' || group === 'physics' ? 3 * hour : 2 * hour);
  });

  it('keeps a reservation in each step, and gives unused slots to the others', () => {
    const runningOf = (name: string) => simulated.runningReserved.filter(([group]) => group === name);
    expect(runningOf('bio101').length).toBe((2 * hour) / stepMs);
    expect(runningOf('bio101').filter(([, running]) => running < 3)).toEqual([]);
    expect(runningOf('art').length).toBe(hour / stepMs);
    expect(runningOf('art').filter(([, running]) => running > 0)).toEqual([]);
  });
});
