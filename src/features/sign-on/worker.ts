import type { Request } from 'express';
import { setNewest } from '../../shared/bounded-map.js';
import { ssoClient } from '../../shared/client.js';
import { groupName, maxGroups, personName } from '../../shared/config/people.js';
import { invalid } from '../../shared/errors.js';
import { isTrustedProxy } from '../../worker/access/authenticate.js';
import type { Person, PersonSource } from '../../worker/access/people.js';
import type { WorkerCore, WorkerPart } from '../../worker/features/feature.js';
import type { Handler } from '../../worker/http/exchange.js';
import type { calls } from './shared.js';

/** Parts that decide whether a connection comes from the proxy, and report people. */
export type SignOnParts = Pick<WorkerCore<typeof calls>, 'users' | 'ownJobs' | 'primary' | 'clock'>;

export async function createPart(parts: SignOnParts): Promise<WorkerPart> {
  const { userHeader, groupsHeader } = await parts.primary.call('signOnHeaders', {});
  return { routes: [], ...(userHeader !== null && { people: new SignOn(userHeader, groupsHeader, parts) }) };
}

/** Limit of people whose last report this worker remembers. */
const maxReported = 1000;
/** Time after which the groups of a person are reported again, because another worker may have reported others. */
const reportMs = 60_000;

/**
 * Reads which person a trusted proxy has signed on, from the headers that the proxy adds. A request with such a header
 * from anywhere else is refused, so that nobody can pose as another person.
 */
export class SignOn implements PersonSource {
  readonly #userHeader: string;
  readonly #groupsHeader: string | null;
  readonly #headers: readonly string[];
  readonly #parts: SignOnParts;
  readonly #reported = new Map<string, { readonly groups: string; readonly atMs: number }>();

  constructor(userHeader: string, groupsHeader: string | null, parts: SignOnParts) {
    this.#userHeader = userHeader;
    this.#groupsHeader = groupsHeader;
    this.#headers = groupsHeader === null ? [userHeader] : [userHeader, groupsHeader];
    this.#parts = parts;
  }

  /** Creates the check of every request. It must run before any other part reads the person. */
  guard(): Handler {
    return (req, _res, next) => {
      this.#refuseLookAlikes(req);
      if (!this.#headers.some((header) => req.headers[header] !== undefined)) return next();
      this.#check(req).then(() => next(), next);
    };
  }

  /** Returns the person of a request that the guard has accepted; null if it names none. */
  personOf(req: Request): Person | null {
    const name = req.headers[this.#userHeader];
    if (typeof name !== 'string') return null;
    const groups = this.#groupsHeader === null ? '' : String(req.headers[this.#groupsHeader] ?? '');
    return { name, groups: groups === '' ? [] : groups.split(',') };
  }

  /** Reports the groups of a person to the primary, which owns the options of all clients. */
  async report({ name, groups }: Person): Promise<void> {
    const [client, nowMs, joined] = [ssoClient(name), this.#parts.clock.monotonicMs(), groups.join()];
    const last = this.#reported.get(client);
    if (last !== undefined && last.groups === joined && nowMs - last.atMs < reportMs) return;
    await this.#parts.primary.call('signedOn', { client, groups });
    setNewest(this.#reported, client, { groups: joined, atMs: nowMs }, maxReported);
  }

  /** Refuses `X_Forwarded_User` for `X-Forwarded-User`: a proxy or a gateway may take one for the other. */
  #refuseLookAlikes({ rawHeaders }: Request): void {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index] as string;
      if (!name.includes('_')) continue;
      const header = name.toLowerCase().replaceAll('_', '-');
      if (this.#headers.includes(header))
        throw invalid(header, `the header ${header} must be written with - instead of _`);
    }
  }

  async #check(req: Request): Promise<void> {
    const { users, ownJobs } = this.#parts;
    if (!isTrustedProxy(req)) throw invalid(this.#sentHeader(req), 'only a proxy in MODEL_API_TRUST_PROXY may send it');
    if (await ownJobs.isOf(req.socket)) throw invalid(this.#sentHeader(req), 'a job of this service must not send it');
    await users.admitProxy(req);
    for (const header of this.#headers)
      if ((req.headersDistinct[header] ?? []).length > 1) throw invalid(header, 'must not be sent twice');
    // A client can make a proxy drop a header: it names it in its header Connection.
    if (this.#groupsHeader !== null && req.headers[this.#groupsHeader] === undefined)
      throw invalid(this.#groupsHeader, missingGroups);
    if (!personName.test(String(req.headers[this.#userHeader] ?? ''))) throw invalid(this.#userHeader, wrongName);
    const { groups } = this.personOf(req) ?? { groups: [] };
    if (groups.length > maxGroups) throw invalid(this.#groupsHeader ?? '', `must name at most ${maxGroups} groups`);
    if (!groups.every((group) => groupName.test(group))) throw invalid(this.#groupsHeader ?? '', wrongGroups);
  }

  #sentHeader({ headers }: Request): string {
    return this.#headers.find((header) => headers[header] !== undefined) ?? this.#userHeader;
  }
}

const wrongName =
  'must name one person by 1 to 120 small letters, digits and . _ @ + -, so that no two names look alike';
const missingGroups = 'the proxy must send it for each person, and leave it empty for a person without groups';
const wrongGroups = 'must be names of groups in printable ASCII, separated by commas without blanks';
