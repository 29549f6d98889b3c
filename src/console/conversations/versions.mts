import type { ConversationList } from '../../shared/api/conversations.js';
import type { Api } from '../base/api.mjs';
import type { ListedConversation } from './entry.mjs';

/** Fields of a conversation that decide which messages it shares with another one. */
export type Version = Pick<
  ListedConversation,
  'conversation_id' | 'origins' | 'message_count' | 'created_at' | 'last_activity_at'
>;

/** Versions of one message, each as the ID of its newest conversation: later messages may have versions, too. */
export interface Choice {
  /** Oldest version first. */
  readonly ids: readonly string[];
  /** Index of the version on the page. */
  readonly shown: number;
}

/** Reads all versions of a conversation, the most recently active first. */
export async function readVersions(api: Pick<Api, 'json'>, id: string): Promise<ListedConversation[]> {
  const found: ListedConversation[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = new URLSearchParams({ version_of: id, limit: '100', ...(cursor !== '' && { cursor }) });
    const page: ConversationList = await api.json(`/chat?${query}`, { asksForKey: false });
    found.push(...page.conversations);
    cursor = page.next_cursor;
  }
  return found;
}

/** Returns the ID of the first conversation among all versions. */
export function rootOf({ conversation_id: id, origins }: Pick<Version, 'conversation_id' | 'origins'>): string {
  return origins[0]?.conversation_id ?? id;
}

/** Returns only the first version of each conversation in the list. */
export function firstVersions<Item extends Pick<Version, 'conversation_id' | 'origins'>>(
  items: readonly Item[],
): Item[] {
  const seen = new Set<string>();
  return items.filter((item) => !seen.has(rootOf(item)) && seen.add(rootOf(item)));
}

/** Returns a new version of the first message, which the service does not store yet. */
export function unstoredVersion(of: Version): Version {
  const times = { created_at: 'later', last_activity_at: 'later' };
  return {
    conversation_id: '',
    origins: [{ conversation_id: rootOf(of), message_count: 0 }],
    message_count: 0,
    ...times,
  };
}

/**
 * Returns the choices between versions, by the index of the first turn in which they differ. The index after the last
 * turn of `current` has a choice if another version continues there. `versions` may include `current`.
 */
export function choicesOf(current: Version, versions: readonly Version[]): ReadonlyMap<number, Choice> {
  const choices = new Map<number, Choice>();
  let alike = [current, ...versions.filter((other) => other.conversation_id !== current.conversation_id)];
  for (let turn = 0; turn <= current.message_count / 2 && alike.length > 1; turn++) {
    const byWriter = new Map<string, Version[]>();
    for (const version of alike) {
      const writer = writerOf(version, turn);
      byWriter.set(writer, [...(byWriter.get(writer) ?? []), version]);
    }
    const writer = writerOf(current, turn);
    if (byWriter.size > 1) choices.set(turn, choiceOf([...byWriter], writer, current));
    alike = (byWriter.get(writer) ?? []).filter((version) => version.message_count > 2 * turn);
  }
  return choices;
}

/** Returns the ID of the conversation in which the turn with this index was asked first. */
function writerOf({ conversation_id: id, origins }: Version, turn: number): string {
  return origins.find(({ message_count: shared }) => shared > 2 * turn)?.conversation_id ?? id;
}

function choiceOf(byWriter: (readonly [string, readonly Version[]])[], writer: string, current: Version): Choice {
  const firstCreated = (versions: readonly Version[]) => versions.map((one) => one.created_at).sort()[0] ?? '';
  const sorted = byWriter.toSorted(
    ([one, ones], [other, others]) => compare(firstCreated(ones), firstCreated(others)) || compare(one, other),
  );
  const ids = sorted.map(([id, versions]) => (id === writer ? current : newestOf(versions)).conversation_id);
  return { ids, shown: sorted.findIndex(([id]) => id === writer) };
}

function newestOf(versions: readonly Version[]): Version {
  return versions.reduce((newest, other) => (other.last_activity_at > newest.last_activity_at ? other : newest));
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
