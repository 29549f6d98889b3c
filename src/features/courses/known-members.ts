import { z } from 'zod';
import { type ClientText, clientText } from '../../shared/client.js';
import { type RecordsPlace, StoredRecords } from '../stores/stored-records.js';

const record = z.strictObject({ course: z.string(), name: z.string(), client: clientText });
export type KnownMember = z.infer<typeof record>;

/** Largest number of records. The oldest are removed first. */
const maxKnown = 20_000;

/** Owns who is or was a member of each course, because reports and budgets count members who have left. */
export class KnownMembers {
  readonly #records: StoredRecords<KnownMember>;

  constructor({ shared, path }: RecordsPlace) {
    this.#records = new StoredRecords({
      ...{ shared, path },
      clientOf: ({ client }) => client,
      readRecord: (stored) => record.safeParse(stored).data ?? null,
      activate: () => {},
      onDamaged: () => {}, // the present members are remembered again
    });
  }

  membersOf(name: string): readonly KnownMember[] {
    return this.#records.all.filter(({ course }) => course === name);
  }

  /** Reads what other hosts have remembered. Rejects only with a defect. */
  refresh(): Promise<void> {
    return this.#records.readRecords();
  }

  /** Remembers members, and forgets all courses that are not among these. Never rejects: it is repeated after a failure. */
  async remember(members: readonly KnownMember[], courses: ReadonlySet<string>): Promise<boolean> {
    const change = (all: readonly KnownMember[]) => {
      const known = new Set(all.map(keyOf));
      const added = members.filter((member) => !known.has(keyOf(member)));
      const remaining = all.filter(({ course }) => courses.has(course));
      const isSame = added.length === 0 && remaining.length === all.length;
      return { records: isSame ? all : [...remaining, ...added].slice(-maxKnown), answer: true };
    };
    return this.#records.update(change).catch(() => false);
  }

  /** Returns the records of a client, for its export. */
  findRecords(client: ClientText): readonly KnownMember[] {
    return this.#records.findRecords(client);
  }

  /** Forgets clients. Resolves with the number of records. */
  removeOf(isAmong: (client: ClientText) => boolean): Promise<number> {
    return this.#records.removeOf(isAmong);
  }
}

function keyOf({ course, name, client }: KnownMember): string {
  return JSON.stringify([course, name, client]);
}
