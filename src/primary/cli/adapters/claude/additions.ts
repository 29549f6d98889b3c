import { z } from 'zod';
import type { MessageAdded } from '../../contract/awaited-step.js';
import { jsonOf } from '../common/lines.js';
import { additionIdOf } from './line-ids.js';

const lifecycle = z.object({ type: z.literal('command_lifecycle'), command_uuid: z.string(), state: z.string() });

/**
 * Messages that the user adds while the model answers. Measured on 2.1.332: the CLI queues such a line, and gives it to
 * the model with the result of the next tool call. Without a call, it would answer the line in a further turn, so that
 * each line is written only before the permission for a call.
 */
export class ClaudeAdditions {
  /** Lines for the next tool call. */
  readonly #waiting: string[] = [];
  /** Ids of lines that the CLI has received, and not given to the model. */
  readonly #queued = new Set<string>();
  #count = 0;
  /** Whether this version reports when it gives a line to the model. */
  #isReported = false;

  /** Adds a message, whose line `lineOf` makes. Returns its id; null if the version could not report that the model gets it. */
  addMessage(lineOf: (uuid: string) => string): string | null {
    if (!this.#isReported) return null;
    const uuid = additionIdOf(++this.#count);
    this.#queued.add(uuid);
    this.#waiting.push(lineOf(uuid));
    return uuid;
  }

  /** Returns the lines to write before the permission for a call. */
  takeLines(): string {
    return this.#waiting.splice(0).join('');
  }

  /** Begins a turn. Lines that were not written belong to no later turn. */
  beginTurn(): void {
    this.#waiting.splice(0);
    this.#queued.clear();
  }

  /** Whether the CLI has a line that the model may still get. */
  get isOpen(): boolean {
    return this.#queued.size > this.#waiting.length;
  }

  /** Returns the event of a line that says that the model gets a message; null for any other line. */
  readLine(text: string): MessageAdded | null {
    if (!text.startsWith('{"type":"command_lifecycle"')) return null;
    this.#isReported = true;
    const { command_uuid: uuid = '', state } = lifecycle.safeParse(jsonOf(text)).data ?? {};
    return state === 'started' && this.#queued.delete(uuid) ? { type: 'message-added', id: uuid } : null;
  }
}
