import { z } from 'zod';
import { yieldToEventLoop } from '../clock.js';
import { contained } from '../contained.js';
import { wireError } from '../errors.js';
import { jsonUnits } from '../text/json-pieces.js';

const id = z.int().nonnegative();

/** Path of a long text in its message. The text itself was sent before, in pieces. */
type TextPath = readonly (string | number)[];
/** Schema of the path of a text in a message. A function checks it quickly: a message may have thousands of paths. */
const textPath = z.custom<TextPath>(
  (value) => Array.isArray(value) && value.every((key) => typeof key === 'string' || Number.isInteger(key)),
);
const textPaths = z.array(textPath).readonly().optional();

/**
 * Envelope of every message. A call is answered once, or by a stream of items with one end; either may fail instead. A
 * stream can be cancelled, and `credit` reports that the caller has taken items. The caller assigns the ids. A `piece`
 * belongs to the next message with its id from the same side: it continues the text at this index of the message's
 * `texts`.
 */
const messageSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id, name: z.string(), request: z.unknown(), texts: textPaths }),
  z.object({ kind: z.literal('cancel'), id }),
  z.object({ kind: z.literal('credit'), id, count: z.int().positive() }),
  z.object({ kind: z.literal('answer'), id, answer: z.unknown(), texts: textPaths }),
  z.object({ kind: z.literal('item'), id, item: z.unknown(), texts: textPaths }),
  z.object({ kind: z.literal('end'), id }),
  z.object({ kind: z.literal('fail'), id, failure: wireError }),
  z.object({ kind: z.literal('piece'), id, isCall: z.boolean(), index: z.int().nonnegative(), text: z.string() }),
]);

type Sent = z.infer<typeof messageSchema>;
type LongTextPiece = Extract<Sent, { kind: 'piece' }>;
export type PeerMessage = Exclude<Sent, LongTextPiece>;
export type CallMessage = Extract<PeerMessage, { kind: 'call' }>;

/** Messages that one side sends in one write. */
const packetSchema = z.array(messageSchema);

/** Maximum size of a packet, in UTF-16 units. The other side parses it within one or two milliseconds. */
const packetUnits = 256 * 1024;
/** Length above which a text of a long message is sent in pieces, and the same for a message with thousands of texts. */
const longTextUnits = 1024;
const shortTextUnits = 64;
/** Maximum size of a message without its long texts. V8 limits a JSON text to 512 Mi units. */
const maxUnits = 32 * 1024 * 1024;

/** Waiting message with its size. */
interface WaitingMessage {
  readonly message: PeerMessage;
  readonly units: number;
}

/** Message sent in pieces, and later messages of the same call, which must be sent after it. */
interface LongMessage {
  readonly packets: Sent[][];
  readonly behind: PeerMessage[];
}

type Transmit = (packet: readonly Sent[], done: (error: Error | null) => void) => void;

/**
 * Owns the messages that wait for one channel. Messages of one turn of the event loop are sent together, because each
 * write costs a system call and wakes the other side. Pieces of long messages are sent between other messages.
 */
export class Outbox {
  readonly #transmit: Transmit;
  readonly #onLost: (message: PeerMessage, cause: unknown) => void;
  readonly #flushing: () => void;
  #waiting: WaitingMessage[] = [];
  /** Long messages by call. */
  readonly #long = new Map<string, LongMessage>();
  #isScheduled = false;

  /** `transmit` may throw. `onLost` is called for each message that cannot be sent. */
  constructor(
    transmit: Transmit,
    onLost: (message: PeerMessage, cause: unknown) => void,
    onFault: (fault: unknown) => void,
  ) {
    this.#transmit = transmit;
    this.#onLost = onLost;
    this.#flushing = contained(() => this.#flush(), onFault);
  }

  send(message: PeerMessage): void {
    const before = this.#long.get(callOf(message));
    if (before !== undefined) return void before.behind.push(message);
    try {
      this.#add(message);
    } catch (error) {
      return this.#onLost(message, error);
    }
    if (!this.#isScheduled) process.nextTick(this.#flushing);
    this.#isScheduled = true;
  }

  #add(message: PeerMessage): void {
    const units = jsonUnits(message);
    if (units <= packetUnits) this.#waiting.push({ message, units });
    else this.#long.set(callOf(message), { packets: packetsOf(message), behind: [] });
  }

  /** Sends one packet, and schedules the next one after it was written. */
  #flush(): void {
    const packet = this.#nextPacket();
    this.#isScheduled = this.#waiting.length > 0 || this.#long.size > 0;
    this.#sendPacket(packet, this.#isScheduled ? () => void yieldToEventLoop().then(this.#flushing) : () => {});
  }

  /** Returns the next packet. Short messages come first, and long messages take turns. */
  #nextPacket(): readonly Sent[] {
    if (this.#waiting.length > 0) return this.#shortMessages();
    const [next] = this.#long;
    if (next === undefined) return [];
    const [call, { packets, behind }] = next;
    const packet = packets.shift() ?? [];
    this.#long.delete(call);
    if (packets.length > 0) this.#long.set(call, next[1]);
    else for (const message of behind) this.send(message);
    return packet;
  }

  #shortMessages(): readonly Sent[] {
    let room = packetUnits;
    let count = 0;
    for (const { units } of this.#waiting) {
      if (units > room) break; // the first message always fits
      room -= units;
      count++;
    }
    return this.#waiting.splice(0, count).map(({ message }) => message);
  }

  /**
   * Sends a packet. If the write throws, single messages are retried and fail separately. A write that fails later
   * means that the channel closes.
   */
  #sendPacket(packet: readonly Sent[], done: () => void): void {
    try {
      this.#transmit(packet, done);
    } catch (error) {
      const [first] = packet;
      if (packet.length > 1) for (const message of packet) this.#sendPacket([message], () => {});
      else if (first !== undefined && first.kind !== 'piece') this.#onLost(first, error);
      done();
    }
  }
}

/** Owns the received pieces of long texts until their messages arrive. */
export class Inbox {
  readonly #texts = new Map<string, string[]>();

  /** Returns the complete messages in a packet. Throws if the packet does not fit the schema. */
  read(packet: unknown): PeerMessage[] {
    const { data: messages, error } = packetSchema.safeParse(packet);
    if (error !== undefined) throw new Error(`a message fits no schema: ${error.message}`);
    return messages.flatMap((message) => {
      if (message.kind !== 'piece') return [this.#whole(message)];
      this.#store(message);
      return [];
    });
  }

  #store(piece: LongTextPiece): void {
    const texts = this.#texts.get(callOf(piece)) ?? [];
    texts[piece.index] = (texts[piece.index] ?? '') + piece.text;
    this.#texts.set(callOf(piece), texts);
  }

  #whole(message: PeerMessage): PeerMessage {
    if (!('texts' in message) || message.texts === undefined) return message;
    const texts = this.#texts.get(callOf(message)) ?? [];
    this.#texts.delete(callOf(message));
    for (const [index, path] of message.texts.entries()) putText(message, path, texts[index] ?? '');
    return message;
  }
}

/** Returns a key for a call on its channel. Both sides count their calls from 1, so the key includes the side. */
function callOf(message: Sent): string {
  const isOfCaller = ['call', 'cancel', 'credit'].includes(message.kind);
  return `${message.kind === 'piece' ? message.isCall : isOfCaller} ${message.id}`;
}

/** Returns the packets of a long message: its long texts in pieces, then the message without these texts. */
function packetsOf(message: PeerMessage): Sent[][] {
  const byLongTexts = shortenedMessage(message, longTextUnits);
  const { texts, shortened, units } =
    byLongTexts.units > packetUnits ? shortenedMessage(message, shortTextUnits) : byLongTexts;
  if (units > maxUnits) throw new Error(`a message of ${units} characters is too large for the channel`);
  const isCall = message.kind === 'call';
  const packets: Sent[][] = [];
  let room = 0;
  for (const [index, { text }] of texts.entries()) {
    for (let at = 0; at < text.length; ) {
      if (room <= 0) packets.push([]);
      if (room <= 0) room = packetUnits;
      const piece = text.slice(at, at + room);
      packets.at(-1)?.push({ kind: 'piece', id: message.id, isCall, index, text: piece });
      room -= piece.length;
      at += piece.length;
    }
  }
  packets.push([{ ...shortened, texts: texts.map(({ path }) => path) } as PeerMessage]);
  return packets;
}

interface LongText {
  readonly path: TextPath;
  readonly text: string;
}

/** Returns a message with empty texts in place of those that are longer than `maxUnits`, and these texts. */
function shortenedMessage(message: PeerMessage, maxUnits: number) {
  const texts: LongText[] = [];
  const shortened = withoutLongTexts(message, maxUnits, (path, text) => texts.push({ path, text })) as PeerMessage;
  return { texts, shortened, units: jsonUnits(shortened) };
}

/**
 * Returns a copy with empty long texts, or the value itself if it has no long text. `path`: path of the value in its
 * message.
 */
function withoutLongTexts(
  value: unknown,
  maxUnits: number,
  onText: (path: TextPath, text: string) => void,
  path: (string | number)[] = [],
) {
  if (typeof value === 'string' && value.length > maxUnits) {
    onText([...path], value);
    return '';
  }
  if (typeof value !== 'object' || value === null) return value;
  let copy: Record<string | number, unknown> | null = null;
  for (const key of Object.keys(value)) {
    const each: unknown = value[key as keyof object];
    path.push(Array.isArray(value) ? Number(key) : key);
    const short: unknown = withoutLongTexts(each, maxUnits, onText, path);
    path.pop();
    if (short === each) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as Record<string | number, unknown>;
    copy[key] = short;
  }
  return copy ?? value;
}

function putText(message: object, path: TextPath, text: string): void {
  const parent = path.slice(0, -1).reduce((value: unknown, key) => (value as Record<string, unknown>)[key], message);
  (parent as Record<string, unknown>)[path.at(-1) ?? ''] = text;
}
