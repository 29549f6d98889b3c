import { type ClientText, encodeClient, type Identity, subClient } from '../../../src/shared/client.js';

/** Identity under test, with the clients for which its usage counts: its holder first, then a key of its own. */
export interface KnownIdentity {
  readonly client: ClientText;
  readonly spenders: readonly ClientText[];
}

function known(identity: Identity, ...spenders: readonly Identity[]): KnownIdentity {
  return { client: encodeClient(identity), spenders: (spenders.length > 0 ? spenders : [identity]).map(encodeClient) };
}

const key: Identity = { kind: 'key', name: 'ada' };
const oddKey: Identity = { kind: 'key', name: 'ada~1' };
const person: Identity = { kind: 'sso', name: 'ada' };
const other: Identity = { kind: 'sso', name: 'eve' };
const made = (id: string): Identity => ({ kind: 'made', name: 'ada', id });
const keyOf = (name: string, id: string): Identity => ({ kind: 'sso', name, key: { name: 'ada', id } });
const userOf = (identity: Identity): Identity => ({ ...identity, user: 'ada' }) as Identity;

const longName = 'Ada Lovelace, whose name is longer than the sixty-four characters of a plain name';
const longUser = { ...key, user: longName };

/**
 * Identities of every kind that all have the name `ada`, or a name that looks like a part of another one. Keys with the
 * ids 1 and 2 are a deleted key and one that was made again.
 */
export const sameNames: readonly KnownIdentity[] = [
  known(key),
  known(oddKey),
  known(made('1')),
  known(made('2')),
  known(person),
  known(other),
  ...['1', '2'].map((id) => known(keyOf('ada', id), person, keyOf('ada', id))),
  known(keyOf('eve', '1'), other, keyOf('eve', '1')),
  known(userOf(key), key),
  known(userOf(oddKey), oddKey),
  known(userOf(made('1')), made('1')),
  known(userOf(keyOf('ada', '1')), person, keyOf('ada', '1')),
  known(longUser, key),
  // a sub-client with the digest of another one as its name
  known({ ...key, user: subClient('key x', longName).slice(6) }, key),
  ...['ada', 'ada~1', 'ada/ada', 'ada/ada~1', 'key ada'].flatMap((name) => [
    known({ kind: 'user', name }),
    known({ kind: 'address', name }),
  ]),
];

/** All pairs of different identities. */
export function pairs(): [one: KnownIdentity, other: KnownIdentity][] {
  return sameNames.flatMap((one) => sameNames.flatMap((each) => (one === each ? [] : [[one, each] as const]))) as [
    KnownIdentity,
    KnownIdentity,
  ][];
}

/** Whether what one identity uses also counts for a limit of the other. */
export function shareSpender(one: KnownIdentity, each: KnownIdentity): boolean {
  return one.spenders.some((spender) => each.spenders.includes(spender));
}

export function shareHolder(one: KnownIdentity, each: KnownIdentity): boolean {
  return one.spenders[0] === each.spenders[0];
}
