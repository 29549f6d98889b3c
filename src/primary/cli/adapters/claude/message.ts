import type { ModelRefusal, ToolCall, TurnEnd, TurnEvent } from '../../contract/adapter.js';
import { jsonOf } from '../common/lines.js';
import type { MessageDelta } from './lines.js';

/** Call of a client's tool while it streams. */
interface StreamedCall {
  readonly id: string;
  readonly name: string;
  readonly input: string[];
}

/** Message of the model while it streams. A call is complete when its block has ended and its input is JSON. */
export class StreamedMessage {
  hasText = false;
  /** Whether the message calls a native tool, which the CLI itself answers. */
  hasOwnCall = false;
  readonly calls: ToolCall[] = [];
  #open: StreamedCall | 'own' | null = null;
  /** Input of the last call of a native tool. */
  #ownInput: string[] = [];
  #isValue = false;
  #cutCalls = 0;
  #stop: MessageDelta['delta'] | null = null;

  /** Stop reason and details; null until the `message_delta` has arrived. */
  get stop(): MessageDelta['delta'] | null {
    return this.#stop;
  }

  get hasClientCall(): boolean {
    return this.calls.length > 0 || this.hasCutCall;
  }

  get hasCutCall(): boolean {
    return this.#cutCalls > 0 || (this.#open !== null && this.#open !== 'own');
  }

  /** Whether a call of a native tool is unfinished. */
  get hasOpenOwnCall(): boolean {
    return this.#open === 'own';
  }

  startCall(id: string, name: string): void {
    this.#open = { id, name, input: [] };
  }

  /** `isValue`: whether the input is the answer to a turn with a schema. */
  startOwnCall(isValue: boolean): void {
    this.#isValue = isValue;
    this.hasOwnCall = true;
    this.#open = 'own';
    this.#ownInput = [];
  }

  /** Whether the last call of a native tool is not whole. */
  get hasCutOwnCall(): boolean {
    return this.hasOwnCall && jsonOf(this.#ownInput.join('')) === null;
  }

  /** First piece of the answer to a turn with a schema; null if the answer is whole. */
  get cutValue(): string | null {
    return this.#isValue && this.hasCutOwnCall ? this.#ownInput.join('') : null;
  }

  addInput(json: string): void {
    if (this.#open === 'own') this.#ownInput.push(json);
    else this.#open?.input.push(json);
  }

  /** Ends the open block. Returns the call that the block completes, or null. */
  endBlock(): ToolCall | null {
    const open = this.#open;
    this.#open = null;
    if (open === null || open === 'own') return null;
    const call = { id: open.id, name: open.name, input: open.input.join('') || '{}' };
    const isComplete = jsonOf(call.input) !== null;
    if (isComplete) this.calls.push(call);
    else this.#cutCalls++;
    return isComplete ? call : null;
  }

  endMessage(stop: MessageDelta['delta']): void {
    this.#stop = stop;
  }
}

/** Returns the events of a complete call. */
export function callEvents({ id, name, input }: ToolCall): readonly TurnEvent[] {
  return [
    { type: 'call-start', id, name },
    { type: 'call-delta', text: input },
  ];
}

/**
 * Way in which a turn continues after a message. `cli`: the CLI decides, and ends its turn or lets the model continue.
 * Any other value ends the turn at once, and also the process, because the CLI would call the model again; only after
 * `calls` the process waits for the results.
 */
type TurnEnding = 'cli' | 'whole' | 'stop' | 'length' | 'refusal' | 'calls' | 'calls, ended';

type BlockMix = 'text' | 'calls' | 'cut call' | 'calls and cut call' | 'nothing visible';

type Ended = Record<BlockMix, TurnEnding>;

const natural: Ended = {
  text: 'cli',
  calls: 'calls',
  'cut call': 'length',
  'calls and cut call': 'calls, ended',
  'nothing visible': 'whole', // otherwise the CLI would report a failure of the turn
};

/** Endings by stop reason and content. An unlisted reason is a natural end. */
const endings: Readonly<Record<string, Ended>> = {
  end_turn: { ...natural, 'nothing visible': 'cli' }, // the CLI requests a visible answer, once
  pause_turn: natural,
  tool_use: { ...natural, text: 'whole', 'nothing visible': 'cli' }, // the CLI requests the missing call, twice
  stop_sequence: { ...natural, 'cut call': 'stop', 'nothing visible': 'stop' },
  max_tokens: all('length'),
  model_context_window_exceeded: all('length'),
  refusal: all('refusal'),
};

function all(ending: TurnEnding): Ended {
  return { text: ending, calls: ending, 'cut call': ending, 'calls and cut call': ending, 'nothing visible': ending };
}

function contentOf({ hasText, calls, hasCutCall }: StreamedMessage): BlockMix {
  if (calls.length > 0) return hasCutCall ? 'calls and cut call' : 'calls';
  if (hasCutCall) return 'cut call';
  return hasText ? 'text' : 'nothing visible';
}

/** End of a turn, without its text, model and usage. */
export interface MessageEnd {
  readonly details: Pick<TurnEnd, 'calls' | 'isCutShort' | 'stopSequence' | 'refusal'>;
  /** Whether the process waits for the results of the calls. */
  readonly isLive: boolean;
}

/** Returns how the turn ends with this message; null if the CLI decides. */
export function endOf(message: StreamedMessage): MessageEnd | null {
  const { stop, calls } = message;
  const ending = endingOf(message);
  const made = calls.length > 0 && { calls };
  switch (ending) {
    case 'cli':
      return null;
    case 'whole':
      return { details: {}, isLive: false };
    case 'stop':
      return { details: { stopSequence: stop?.stop_sequence ?? null }, isLive: false };
    case 'length':
      return { details: { ...made, isCutShort: true }, isLive: false };
    case 'refusal':
      return { details: { ...made, refusal: refusalOf(stop) }, isLive: false };
    case 'calls':
    case 'calls, ended':
      return { details: { calls }, isLive: ending === 'calls' };
  }
}

/** Whether the message is a text that ends the answer, after which the CLI has nothing more to request. */
export function isLastText(message: StreamedMessage): boolean {
  const reason = message.stop?.stop_reason;
  const isEnd = reason === 'end_turn' || reason === 'stop_sequence';
  return isEnd && !message.hasOwnCall && contentOf(message) === 'text';
}

/** Returns the stop sequence that has ended the message, if one has. */
export function stopSequenceOf({ stop }: StreamedMessage): Pick<TurnEnd, 'stopSequence'> {
  return stop?.stop_reason === 'stop_sequence' ? { stopSequence: stop.stop_sequence ?? null } : {};
}

function endingOf(message: StreamedMessage): TurnEnding {
  const ending = (endings[message.stop?.stop_reason ?? ''] ?? natural)[contentOf(message)];
  const isOwn = message.hasOwnCall && !message.hasClientCall && !message.hasOpenOwnCall;
  if (ending === 'length' && message.hasCutOwnCall) return ending; // the CLI would call the model again
  return isOwn && ending !== 'refusal' ? 'cli' : ending;
}

function refusalOf(stop: MessageDelta['delta'] | null): ModelRefusal {
  const { category, explanation } = stop?.stop_details ?? {};
  return { category: category ?? null, explanation: explanation ?? null };
}
