import { z } from 'zod';
import { type DecoderEvent, type Message, unknownUsage } from '../../contract/adapter.js';
import { turnFailed } from '../common/failure.js';
import { isObject, jsonOf } from '../common/lines.js';
import { controlLine } from './control-line.js';
import { expectedExport, isExportOf } from './exported-text.js';

const rewound = z.object({
  rewound: z.literal(true),
  targetMessageUuid: z.string(),
  /** Message that is left before the target; null if nothing is left. */
  precedingAssistantUuid: z.string().nullable(),
});
/** The whole conversation as text. */
const exported = z.object({ text: z.string() });

const success = z.object({
  response: z.object({ subtype: z.literal('success'), request_id: z.string(), response: z.unknown() }),
});

/** Types of lines that belong to a turn, so that a program which is at rest does not write them. */
const typesOfTurns: ReadonlySet<unknown> = new Set([
  ...['stream_event', 'assistant', 'user', 'result', 'control_request'],
]);

type RewindingStep = 'none' | 'interrupts' | 'rewinds' | 'exports';

const prefix = 'rewinding ';

/** Whether a request id belongs to a rewinding. */
export function isOfRewinding(requestId: string | null | undefined): boolean {
  return requestId?.startsWith(prefix) === true;
}

/** User line in the context of the CLI. */
interface RewindableLine {
  readonly uuid: string;
  /** Number of messages before it. */
  readonly at: number;
}

/**
 * Rewinds the conversation of one claude process to its start or to an earlier message, and proves what is left: the CLI
 * then exports exactly the messages before.
 */
export class Rewinding {
  /** User lines in the context, oldest first. */
  readonly #lines: RewindableLine[] = [];
  /** First line that the present rewinding removes; null outside of a rewinding. */
  #target: RewindableLine | null = null;
  /** Letters and digits that the CLI must export after the present rewinding. */
  #expected = '';
  #step: RewindingStep = 'none';
  /** Whether the turn that is interrupted has not ended yet. */
  #isTurnOpen = false;
  /** Number of rewindings so far, which makes their request ids unique. */
  #count = 0;

  /** Registers a user line that the CLI gets. `at`: the number of messages before it. */
  noteLine(uuid: string, at: number): void {
    this.#lines.push({ uuid, at });
  }

  /** Whether the CLI has not proven yet what is left. */
  get isOpen(): boolean {
    return this.#step !== 'none';
  }

  /**
   * Returns the request that ends the turn of the CLI. If the turn has ended, the CLI answers another request instead, so
   * that both cases end with a line of the CLI.
   */
  interrupt(isTurnOpen: boolean): string {
    this.#count++;
    this.#step = 'interrupts';
    this.#isTurnOpen = isTurnOpen;
    return controlLine(this.#idOf('interrupts'), { subtype: isTurnOpen ? 'interrupt' : 'get_settings' });
  }

  /**
   * Returns the requests to the CLI that leave only these first messages; null if it has received no turn after them, or
   * if its export could not prove that they are left.
   */
  beginRewinding(kept: readonly Message[] = []): string | null {
    const target = kept.length === 0 ? this.#lines[0] : this.#lines.find(({ at }) => at === kept.length);
    const expected = expectedExport(kept);
    const newest = this.#lines.at(-1);
    if (target === undefined || newest === undefined || expected === null) return null;
    this.#count++;
    this.#step = 'rewinds';
    this.#target = target;
    this.#expected = expected;
    const range = { target_message_uuid: target.uuid, last_seen_user_message_uuid: newest.uuid };
    return (
      controlLine(this.#idOf('rewinds'), { subtype: 'rewind_conversation', ...range }) +
      controlLine(this.#idOf('exports'), { subtype: 'export_conversation' })
    );
  }

  /** Reads a line during a rewinding. Ends the turn of the rewinding with the proof, or fails it. */
  readLine(text: string): readonly DecoderEvent[] {
    const line = jsonOf(text);
    if (!isObject(line)) return [];
    if (this.#step === 'interrupts') return this.#interrupted(line);
    if (typesOfTurns.has(line.type)) return failed;
    if (line.type !== 'control_response') return [];
    const { response } = success.safeParse(line).data ?? {};
    if (response?.request_id !== this.#idOf(this.#step)) return failed;
    return this.#step === 'rewinds' ? this.#rewound(response.response) : this.#exported(response.response);
  }

  /** Ends the interruption with the end of the turn; lines before it belong to the turn. */
  #interrupted(line: Readonly<Record<string, unknown>>): readonly DecoderEvent[] {
    const { response } = success.safeParse(line).data ?? {};
    const isEnd = this.#isTurnOpen ? line.type === 'result' : response?.request_id === this.#idOf('interrupts');
    if (!isEnd) return [];
    this.#step = 'none';
    return ended;
  }

  #rewound(answer: unknown): readonly DecoderEvent[] {
    const { targetMessageUuid, precedingAssistantUuid } = rewound.safeParse(answer).data ?? {};
    const isEmpty = precedingAssistantUuid === null;
    if (targetMessageUuid !== this.#target?.uuid || isEmpty !== (this.#expected === '')) return failed;
    this.#step = 'exports';
    return [];
  }

  #exported(answer: unknown): readonly DecoderEvent[] {
    const { data } = exported.safeParse(answer);
    if (data === undefined || !isExportOf(data.text, this.#expected)) return failed;
    const first = this.#target === null ? -1 : this.#lines.indexOf(this.#target);
    this.#lines.splice(Math.max(0, first));
    this.#target = null;
    this.#step = 'none';
    return ended;
  }

  #idOf(step: RewindingStep): string {
    return `${prefix}${this.#count} ${step}`;
  }
}

const ended: readonly DecoderEvent[] = [{ type: 'turn-end', text: null, model: null, usage: unknownUsage }];
const failed: readonly DecoderEvent[] = [
  turnFailed('other', 'the model CLI has not proven what is left in its context'),
];
