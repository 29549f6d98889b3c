import { z } from 'zod';
import { endOfLoopTurn } from '../clock.js';
import { contained } from '../contained.js';
import { wireError } from '../errors.js';

const id = z.int().nonnegative();

/** The path of a long text in its message. The text itself has been sent before, in pieces. */
const textPath = z.array(z.union([z.string(), z.int()])).readonly();
type TextPath = z.infer<typeof textPath>;
const textPaths = z.array(textPath).readonly().optional();

/**
 * The envelope of every message. A call is answered once, or by a stream of items with one end; either may fail instead.
 * A stream can be cancelled, and `credit` says that the caller has taken items. Ids belong to the caller. A `piece` belongs
 * to the next message with its id from the same side: it continues the text at this index of its `texts`.
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

/** The messages that one side sends in one write. */
const packetSchema = z.array(messageSchema);

/** The size of a packet, in UTF-16 units. The other side parses it within a millisecond or two. */
const packetUnits = 256 * 1024;
/** A longer text of a long message is sent in pieces. */
const longTextUnits = 1024;
/** The bound of a message without its long texts. V8 can make no JSON text of more than 512 Mi units. */
const maxUnits = 32 * 1024 * 1024;

/** A message that waits, with its size. */
interface WaitingMessage {
  readonly message: PeerMessage;
  readonly units: number;
}

/** A message that is sent in pieces, and the messages of its call that must come behind it. */
interface LongMessage {
  readonly packets: Sent[][];
  readonly behind: PeerMessage[];
}

type Transmit = (packet: readonly Sent[], done: (error: Error | null) => void) => void;

/**
 * Owns the messages that wait for one channel. Messages of one turn of the event loop leave together, because each write
 * costs a system call and wakes the other side. Long messages leave in pieces between the others.
 */
export class Outbox {
  readonly #transmit: Transmit;
  readonly #onLost: (message: PeerMessage, cause: unknown) => void;
  readonly #flushing: () => void;
  #waiting: WaitingMessage[] = [];
  /** By call. */
  readonly #long = new Map<string, LongMessage>();
  #isScheduled = false;

  /** `transmit` may throw. `onLost` gets each message that cannot be sent, alone. */
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
    const units = unitsOf(message);
    if (units <= packetUnits) this.#waiting.push({ message, units });
    else this.#long.set(callOf(message), { packets: packetsOf(message), behind: [] });
  }

  /** A packet that is not the last one is followed by the next when it has left. */
  #flush(): void {
    const packet = this.#nextPacket();
    this.#isScheduled = this.#waiting.length > 0 || this.#long.size > 0;
    this.#sendPacket(packet, this.#isScheduled ? () => void endOfLoopTurn().then(this.#flushing) : () => {});
  }

  /** Short messages come first. Long messages take turns. */
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
      if (units > room) break; // the first one always has room
      room -= units;
      count++;
    }
    return this.#waiting.splice(0, count).map(({ message }) => message);
  }

  /** What a write throws is the failure of single messages. A write that fails later is a channel that closes. */
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

/** Owns the pieces of long texts that have come over one channel, until the messages of these texts have come. */
export class Inbox {
  readonly #texts = new Map<string, string[]>();

  /** Reads the whole messages in a packet. Throws if the packet fits no schema. */
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

/** The name of a call on its channel: both sides count their calls from 1. */
function callOf(message: Sent): string {
  const isOfCaller = ['call', 'cancel', 'credit'].includes(message.kind);
  return `${message.kind === 'piece' ? message.isCall : isOfCaller} ${message.id}`;
}

/** The size of a value as JSON, about. Throws for a value that holds itself. */
function unitsOf(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 8;
  let units = 2;
  if (Array.isArray(value)) for (const each of value) units += unitsOf(each);
  else for (const key of Object.keys(value)) units += key.length + 4 + unitsOf(value[key as keyof object]);
  return units;
}

/** The packets of a long message: its long texts in pieces, then the message without them. */
function packetsOf(message: PeerMessage): Sent[][] {
  const texts: { readonly path: TextPath; readonly text: string }[] = [];
  const rest = withoutLongTexts(message, (path, text) => texts.push({ path, text })) as PeerMessage;
  const units = unitsOf(rest);
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
  packets.push([{ ...rest, texts: texts.map(({ path }) => path) } as PeerMessage]);
  return packets;
}

/** A copy in which each long text is empty, or the value itself if it has none. `path` is where the value lies in its message. */
function withoutLongTexts(
  value: unknown,
  take: (path: TextPath, text: string) => void,
  path: (string | number)[] = [],
) {
  if (typeof value === 'string' && value.length > longTextUnits) {
    take([...path], value);
    return '';
  }
  if (typeof value !== 'object' || value === null) return value;
  let copy: Record<string | number, unknown> | null = null;
  for (const key of Object.keys(value)) {
    const each: unknown = value[key as keyof object];
    path.push(Array.isArray(value) ? Number(key) : key);
    const short: unknown = withoutLongTexts(each, take, path);
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
