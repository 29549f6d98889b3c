import { consolePart } from '../../support/clients/console-parts.js';

interface Version {
  readonly conversation_id: string;
  readonly origins: readonly { readonly conversation_id: string; readonly message_count: number }[];
  readonly message_count: number;
  readonly created_at: string;
  readonly last_activity_at: string;
}

interface Versions {
  choicesOf(current: Version, versions: readonly Version[]): Map<number, { ids: string[]; shown: number }>;
  firstVersions(items: readonly Version[]): Version[];
  unstoredVersion(of: Version): Version;
  readVersions(api: object, id: string): Promise<Version[]>;
}

const versions = () => consolePart<Versions>('conversations/versions.mjs');
type Origin = readonly [string, number];

/** Builds a version. `origins`: IDs with the number of turns that they share; `created` and `active`: hours. */
function version(id: string, turns: number, origins: readonly Origin[], created: number, active = created) {
  return {
    conversation_id: id,
    origins: origins.map(([origin, shared]) => ({ conversation_id: origin, message_count: 2 * shared })),
    message_count: 2 * turns,
    created_at: `2026-01-01T0${created}:00:00.000Z`,
    last_activity_at: `2026-01-01T0${active}:00:00.000Z`,
  };
}

/** Returns each choice as the index of its turn, the IDs, and the ID on the page. */
async function choices(id: string, all: readonly Version[]) {
  const { choicesOf } = await versions();
  const current = all.find((one) => one.conversation_id === id) as Version;
  return [...choicesOf(current, all)].map(([turn, { ids, shown }]) => [turn, ids.join(' '), ids[shown]]);
}

const root = version('root', 3, [], 1, 9);
const second = version('second', 3, [['root', 1]], 2);
const third = version('third', 2, [['root', 1]], 3);
const ofRoot: Origin = ['root', 1];
const ofSecond = version('of-second', 4, [ofRoot, ['second', 2]], 4, 8);
const ofFirst = version('of-first', 1, [['root', 0]], 5);
const all = [root, second, third, ofSecond, ofFirst];

describe('The versions of a conversation', () => {
  it('are chosen at the messages where they differ, oldest first, the newest conversation for each', async () => {
    expect(await choices('root', all)).toEqual([
      [0, 'root of-first', 'root'],
      [1, 'root of-second third', 'root'],
    ]);
    expect(await choices('second', all)).toEqual([
      [0, 'second of-first', 'second'],
      [1, 'root second third', 'second'],
      [2, 'second of-second', 'second'],
    ]);
    expect(await choices('of-first', all)).toEqual([[0, 'root of-first', 'of-first']]);
  });

  it('remain choices if the conversation that they came from was deleted', async () => {
    expect(await choices('third', all.slice(1))).toEqual([
      [0, 'third of-first', 'third'],
      [1, 'of-second third', 'third'],
    ]);
    expect(await choices('second', [second])).toEqual([]);
  });

  it('have a choice after their last message if another version continues there', async () => {
    const short = version('short', 2, [['root', 2]], 2);
    expect(await choices('short', [root, short])).toEqual([[2, 'root short', 'short']]);
    expect(await choices('root', [root, short])).toEqual([[2, 'root short', 'root']]);
    const copy = version('copy', 3, [['root', 3]], 2);
    expect(await choices('root', [root, copy])).toEqual([[3, 'root copy', 'root']]);
  });

  it('include a new version of the first message before it is stored', async () => {
    const { choicesOf, unstoredVersion } = await versions();
    expect([...choicesOf(unstoredVersion(ofSecond), all)]).toEqual([[0, { ids: ['root', 'of-first', ''], shown: 2 }]]);
  });

  it('are one entry of the list: the first one', async () => {
    const { firstVersions } = await versions();
    const other = version('other', 1, [], 6);
    const ofGone: Origin = ['gone', 1];
    const late = version('late', 2, [ofGone], 7);
    const later = version('later', 2, [ofGone, ['x', 2]], 7);
    const listed = firstVersions([ofSecond, other, root, late, third, later]);
    expect(listed.map((one) => one.conversation_id)).toEqual(['of-second', 'other', 'late']);
  });

  it('are read page by page', async () => {
    const { readVersions } = await versions();
    const asked: string[] = [];
    const pages = [
      { conversations: [root], next_cursor: '7' },
      { conversations: [], next_cursor: '5' },
      { conversations: [third], next_cursor: null },
    ];
    const api = { json: async (path: string) => asked.push(path) && pages[asked.length - 1] };
    expect(await readVersions(api, 'a b')).toEqual([root, third]);
    const first = '/chat?version_of=a+b&limit=100';
    expect(asked).toEqual([first, `${first}&cursor=7`, `${first}&cursor=5`]);
  });
});
