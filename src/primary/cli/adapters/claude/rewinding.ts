import { z } from 'zod';
import { type DecoderEvent, unknownUsage } from '../../contract/adapter.js';
import { turnFailed } from '../common/failure.js';
import { isObject, jsonOf } from '../common/lines.js';
import { controlLine } from './control-line.js';

const rewound = z.object({
  rewound: z.literal(true),
  targetMessageUuid: z.string(),
  /** Message that is left before the target; null if nothing is left. */
  precedingAssistantUuid: z.null(),
});
/** The whole conversation as text. */
const exported = z.object({ text: z.literal('') });

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

/**
 * Rewinds the conversation of one claude process to its start, and proves that nothing is left: the CLI then exports an
 * empty conversation.
 */
export class Rewinding {
  /** Ids of the first and the newest user line since the start or the last rewinding; null if the CLI has received no user line. */
  #lines: { readonly first: string; readonly newest: string } | null = null;
  #step: RewindingStep = 'none';
  /** Whether the turn that is interrupted has not ended yet. */
  #isTurnOpen = false;
  /** Number of rewindings so far, which makes their request ids unique. */
  #count = 0;

  /** Registers a user line that the CLI gets. */
  noteLine(uuid: string): void {
    this.#lines = { first: this.#lines?.first ?? uuid, newest: uuid };
  }

  /** Whether the CLI has not proven yet that nothing is left. */
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

  /** Returns the requests to the CLI; null if it has received no turn. */
  begin(): string | null {
    if (this.#lines === null) return null;
    const { first, newest } = this.#lines;
    this.#count++;
    this.#step = 'rewinds';
    const target = { target_message_uuid: first, last_seen_user_message_uuid: newest };
    return (
      controlLine(this.#idOf('rewinds'), { subtype: 'rewind_conversation', ...target }) +
      controlLine(this.#idOf('exports'), { subtype: 'export_conversation' })
    );
  }

  /** Reads a line during a rewinding. Ends the turn of the rewinding with the proof, or fails it. */
  read(text: string): readonly DecoderEvent[] {
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
    if (rewound.safeParse(answer).data?.targetMessageUuid !== this.#lines?.first) return failed;
    this.#step = 'exports';
    return [];
  }

  #exported(answer: unknown): readonly DecoderEvent[] {
    if (!exported.safeParse(answer).success) return failed;
    this.#step = 'none';
    this.#lines = null;
    return ended;
  }

  #idOf(step: RewindingStep): string {
    return `${prefix}${this.#count} ${step}`;
  }
}

const ended: readonly DecoderEvent[] = [{ type: 'turn-end', text: null, model: null, usage: unknownUsage }];
const failed: readonly DecoderEvent[] = [turnFailed('other', 'the model CLI has not proven that its context is empty')];
