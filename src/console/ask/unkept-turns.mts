import type { TabMemory } from '../base/tab-memory.mjs';
import { ChatTurn, type UserMessage } from './turn.mjs';

/** A turn that the service does not keep, because it did not end well. */
interface UnkeptTurn {
  readonly asked: UserMessage;
  readonly answer: string;
  /** It had no end yet when the page was left: the service may have kept it after all. */
  readonly wasOpen: boolean;
  /** How many turns that the service keeps stand before it. */
  readonly keptBefore: number;
}

interface RememberedTurns {
  /** Null before the first answer. */
  readonly conversationId: string | null;
  readonly turns: readonly UnkeptTurn[];
}

/** Remembers which turns on the page the service does not keep; without their images where these take too much room. */
export function rememberTurns(memory: TabMemory, conversationId: string | null, turns: readonly ChatTurn[]): void {
  const unkept = turns.flatMap((turn, index) => (turn.isKept ? [] : [unkeptTurn(turn, turns.slice(0, index))]));
  const bare = unkept.map((turn) => ({ ...turn, asked: { ...turn.asked, images: [] } }));
  const forms = unkept.length === 0 ? [] : [unkept, bare];
  memory.remember('turns-1', ...forms.map((form): RememberedTurns => ({ conversationId, turns: form })));
}

function unkeptTurn({ asked, text, isOpen }: ChatTurn, before: readonly ChatTurn[]): UnkeptTurn {
  const keptBefore = before.filter(({ isKept }) => isKept).length;
  return { asked, answer: text.value, wasOpen: isOpen, keptBefore };
}

/** The turns of a conversation that the service keeps, with those that this tab remembers in their places. */
export function withRemembered(
  memory: TabMemory,
  conversationId: string | null,
  kept: readonly ChatTurn[],
  nextId: () => number,
): readonly ChatTurn[] {
  const remembered = memory.recall<RememberedTurns>('turns-1');
  if (remembered === null || remembered.conversationId !== conversationId) return kept;
  const isKept = ({ asked, wasOpen, keptBefore }: UnkeptTurn) => wasOpen && kept[keptBefore]?.asked.text === asked.text;
  const missing = remembered.turns.filter((turn) => !isKept(turn));
  const before = (index: number) =>
    missing
      .filter(({ keptBefore }) => Math.min(keptBefore, kept.length) === index)
      .map(({ asked, answer }) => new ChatTurn(nextId(), asked, { kind: 'unfinished' }, answer));
  return [...kept.flatMap((turn, index) => [...before(index), turn]), ...before(kept.length)];
}
