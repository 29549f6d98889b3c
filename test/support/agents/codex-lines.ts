import { CodexDecoder } from '../../../src/features/codex/decoder.js';
import { CodexThread } from '../../../src/features/codex/thread.js';
import type { DecoderEvent, Turn } from '../../../src/primary/cli/contract/adapter.js';

/** Lines that codex 0.169.0 writes. */

const threadIds = { threadId: 'thread-1' };
const turnIds = { ...threadIds, turnId: 'turn-1' };

export function notifies(method: string, params: unknown): string {
  return `${JSON.stringify({ method, params })}\n`;
}

export function answers(id: string, answer: { readonly result: unknown } | { readonly error: unknown }): string {
  return `${JSON.stringify({ id, ...answer })}\n`;
}

export const threadResult = {
  thread: { id: threadIds.threadId },
  model: 'gpt-5.5',
  instructionSources: [],
  sandbox: { type: 'readOnly', networkAccess: false },
};

export const codexLines = {
  started: notifies('turn/started', { ...threadIds, turn: { id: turnIds.turnId } }),
  delta: (delta: string, itemId = 'msg_1') => notifies('item/agentMessage/delta', { ...turnIds, itemId, delta }),
  deltaOf: (turnId: string) => notifies('item/agentMessage/delta', { ...threadIds, turnId, itemId: 'm', delta: 'x' }),
  begun: (type: string) => notifies('item/started', { ...turnIds, item: { type, id: 'item-1' } }),
  /** `clientId`: id of a message to the running turn; null for the question. */
  input: (clientId: string | null) => {
    const item = { type: 'userMessage', id: 'u', clientId, content: [{ type: 'text', text: 'Hello' }] };
    return notifies('item/started', { item, ...turnIds }) + notifies('item/completed', { item, ...turnIds });
  },
  message: (text: string) => notifies('item/completed', { ...turnIds, item: { type: 'agentMessage', id: 'm', text } }),
  tokens: (inputTokens: number, outputTokens: number) => {
    const total = { inputTokens, cachedInputTokens: 1, cacheWriteInputTokens: 0, outputTokens };
    return notifies('thread/tokenUsage/updated', { ...turnIds, tokenUsage: { total, last: total } });
  },
  limits: (usedPercent: number, resetsAt: number | null) => {
    const primary = { usedPercent, windowDurationMins: 300, resetsAt };
    return notifies('account/rateLimits/updated', { rateLimits: { primary, secondary: null, credits: null } });
  },
  retries: (error: unknown) => notifies('error', { ...turnIds, error, willRetry: true }),
  completed: notifies('turn/completed', {
    ...threadIds,
    turn: { id: turnIds.turnId, status: 'completed', error: null },
  }),
  failed: (error: unknown) =>
    notifies('turn/completed', { ...threadIds, turn: { id: turnIds.turnId, status: 'failed', error } }),
  asks: (method: string) => `${JSON.stringify({ method, id: 7, params: {} })}\n`,
} as const;

export const plainTurn: Turn = { model: null, system: null, schema: null, effort: null, text: 'Hello', history: [] };

/** Returns a process with an open thread, in the middle of a turn. */
export function midTurn(turn: Turn = plainTurn): { readonly thread: CodexThread; readonly decoder: CodexDecoder } {
  const thread = new CodexThread(new Map([['gpt-5.5', 'medium']]));
  const decoder = new CodexDecoder(thread);
  thread.write(turn);
  decoder.begin();
  decoder.read(answers('thread 1', { result: threadResult }) + codexLines.started);
  return { thread, decoder };
}

/** Returns the events of a whole turn with these lines. */
export function eventsOf(...lines: readonly string[]): readonly DecoderEvent[] {
  return midTurn().decoder.read(lines.join(''));
}
