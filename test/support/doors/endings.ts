import { endsFor, says, saysAndCalls, thinking, tokens } from '../agents/messages-api-stub.js';
import { type Door, type DoorAnswer, doors } from './door-answers.js';

const whole = { name: 'note', input: { who: 'Ada' } };
const cut = { ...whole, json: '{"who":"Ad' };

/** The messages of the model. */
export const contents = {
  text: () => says('Hello,', ' Ada'),
  calls: () => saysAndCalls('Well.', whole),
  'a cut call': () => saysAndCalls('Well.', cut),
  'a call and a cut call': () => saysAndCalls('Well.', whole, cut),
  'thinking alone': () => ({ ...thinking(says()), blocks: [] }),
  nothing: () => ({ ...says(), blocks: [] }),
} as const;
type Content = keyof typeof contents;

/** `again`: the CLI asks the model once more, because there is nothing to show. */
type Expected = keyof Door['finishes'] | 'again';

type Row = Readonly<Record<Content, Expected>>;

const natural: Row = {
  ...{ text: 'whole', calls: 'calls', 'a cut call': 'length', 'a call and a cut call': 'calls' },
  ...{ 'thinking alone': 'whole', nothing: 'whole' },
};
const invisible = { 'thinking alone': 'again', nothing: 'again' } as const;

/** How an answer ends, for each stop reason that the API documents, and each content. */
const table: Readonly<Record<string, Row>> = {
  end_turn: { ...natural, ...invisible },
  tool_use: { ...natural, ...invisible },
  pause_turn: natural,
  stop_sequence: { ...natural, text: 'stop', 'a cut call': 'stop', 'thinking alone': 'stop', nothing: 'stop' },
  max_tokens: all('length'),
  model_context_window_exceeded: all('length'),
  refusal: all('refusal'),
};

function all(expected: Expected): Row {
  return Object.fromEntries(Object.keys(contents).map((content) => [content, expected])) as Row;
}

/** One place in the table. */
export interface Cell {
  readonly stopReason: string;
  readonly content: Content;
  readonly expected: Expected;
}

export const cells: readonly Cell[] = cellsOf(table);
/** Of a reason that no version knows. */
export const unknownCells: readonly Cell[] = cellsOf({ 'a reason of tomorrow': natural });

function cellsOf(rows: typeof table): Cell[] {
  return Object.entries(rows).flatMap(([stopReason, row]) =>
    Object.entries(row).map(([content, expected]) => ({ stopReason, content: content as Content, expected })),
  );
}

/** How a door is asked. */
export interface Manner {
  readonly door: Door;
  readonly isStreamed: boolean;
}

/** Each door, plain and streamed. */
export const manners: readonly Manner[] = [false, true].flatMap((isStreamed) =>
  Object.values(doors).map((door) => ({ door, isStreamed })),
);

export function nameOf({ stopReason, content }: Cell, { door, isStreamed }: Manner): string {
  return `${stopReason} after ${content}, ${door.path} ${isStreamed ? 'streamed' : 'plain'}`;
}

/** The message of the model. The API names the sequence that has ended it, and the kind of a refusal. */
export function messageFor({ stopReason, content }: Cell) {
  const named = {
    ...(stopReason === 'stop_sequence' && { stopSequence: 'END' }),
    ...(stopReason === 'refusal' && { refusalCategory: 'cyber' }),
  };
  return { ...endsFor(stopReason, contents[content]()), ...named };
}

/** What the model says if the CLI asks it once more. */
export const second = says('Here.');

/** What the client gets. */
export function answerFor({ expected, content }: Cell, { door }: Manner): DoorAnswer {
  const isAgain = expected === 'again';
  const text = isAgain ? 'Here.' : content === 'text' ? 'Hello, Ada' : content.includes('call') ? 'Well.' : '';
  const calls = content === 'calls' || content === 'a call and a cut call' ? [JSON.stringify(whole.input)] : [];
  const finish = door.finishes[isAgain ? 'whole' : expected];
  const outputTokens = isAgain ? 2 * tokens.output : tokens.output;
  const isNamed = expected === 'refusal' && door === doors.messages;
  return { status: 200, text, calls, finish, outputTokens, ...(isNamed && { category: 'cyber' }) };
}
