import { randomUUID } from 'node:crypto';
import type { ToolCall, ToolOffer, Turn } from '../../primary/cli/contract/adapter.js';
import type { AnswerTurns, RunTurn } from '../../primary/jobs/answer-turns.js';
import type { StrategyEnd } from '../../primary/jobs/answered.js';
import { readValue, valueEnd } from '../../primary/jobs/structured.js';
import { parseExactly, stringifyExactly } from '../../shared/text/exact-json.js';
import { movedTo } from '../../shared/text/json-schema.js';
import { withoutTools } from './calls-as-text.js';

/**
 * Tools for a program without tool support. The system text describes them, and the model answers with a value of a
 * schema: a text or one call. In the history, earlier calls and results become text.
 */

/** Answers with a text or with one call, which the model writes as a value. */
export async function answerWithEmulatedTools(turns: AnswerTurns, turn: Turn, offer: ToolOffer): Promise<StrategyEnd> {
  const { output } = turns;
  const { end, answer } = await readEmulatedTurn(turns, turn, offer);
  const ended = { ...valueEnd(end), isWaiting: false };
  if (answer?.kind === 'text') output.sendText(answer.text);
  if (answer?.kind !== 'call') return ended;
  const call = callOf(answer);
  output.sendWholeCall(call);
  return { ...ended, calls: [call] };
}

/** Runs turns with emulated tools. The text of an answer arrives at its end. */
export function emulatedTurns(turns: AnswerTurns): RunTurn {
  return async (turn, target) => {
    if (turn.offer === undefined) return turns.run(turn, target);
    const { end, answer } = await readEmulatedTurn(turns, turn, turn.offer);
    const ended = { ...valueEnd(end), isRepaired: end.isRepaired === true };
    if (answer?.kind === 'text') target.write({ type: 'text-delta', text: answer.text });
    if (answer?.kind !== 'call') return ended;
    return { ...ended, calls: [callOf(answer)] };
  };
}

/** Runs a turn, and reads its answer; null if a call was cut short. */
async function readEmulatedTurn(turns: AnswerTurns, turn: Turn, offer: ToolOffer) {
  const { schema: answerSchema } = turns.job.launch;
  const hasSchema = answerSchema !== null;
  const { turn: plain, schema } = emulated(turn, offer, answerSchema);
  const faultOf = async (text: string) => {
    const answer = readAnswer(text, offer, hasSchema);
    if (answer.kind !== 'call') return answer.kind === 'fault' ? answer.fault : null;
    const finding = await turns.checkSchema(schemaOfCall(offer, answer.name), answer.input);
    return finding.kind === 'fits' ? null : finding.fault;
  };
  const mayBeProse = !hasSchema && (offer.choice === 'auto' || offer.choice === 'none');
  const { end, value, prose } = await readValue(turns, plain, turns.run, schema, { faultOf, mayBeProse });
  if (prose !== null) return { end, answer: { kind: 'text', text: prose } as const };
  return { end, answer: end.isCutShort ? cutAnswer(value, offer) : readAnswer(value, offer, hasSchema) };
}

function callOf({ name, input }: Extract<EmulatedAnswer, { readonly kind: 'call' }>): ToolCall {
  return { id: `call_${randomUUID()}`, name, input };
}

/**
 * Returns the turn without tools, and the JSON schema of its answer. `schema`: schema of the answer text if the client
 * requests a value; otherwise null.
 */
export function emulated(turn: Turn, { tools, choice }: ToolOffer, schema: string | null) {
  const { stop: _, ...plain } = { ...withoutTools(turn), schema: null }; // a stop sequence would cut the value
  const forced = typeof choice === 'string' ? undefined : tools.find(({ name }) => name === choice.name);
  if (forced !== undefined) {
    const input = { title: forced.name, description: forced.description, ...JSON.parse(forced.schema) };
    return { turn: plain, schema: JSON.stringify(input) };
  }
  const list = tools.map(
    ({ name, description, schema: input }) => `- ${name}: ${description}\n  Its arguments: ${input}`,
  );
  const system = [turn.system, [howTo[choice === 'required' ? 'call' : 'either'], ...list].join('\n')];
  const text = schema === null ? { type: 'string' } : movedTo('#/properties/text', JSON.parse(schema));
  const kinds = choice === 'required' ? ['call'] : ['text', 'call'];
  const envelope = {
    type: 'object',
    properties: {
      kind: { enum: kinds },
      ...(choice !== 'required' && { text }),
      name: { enum: tools.map(({ name }) => name) },
      arguments: { type: 'object' },
    },
    required: choice === 'required' ? ['kind', 'name', 'arguments'] : ['kind'],
    additionalProperties: false,
  };
  return {
    turn: { ...plain, system: system.filter((part) => part !== null).join('\n\n') },
    schema: JSON.stringify(envelope),
  };
}

const form = '{"kind": "call", "name": …, "arguments": {…}}';
const howTo = {
  either: `You can call the tools below, one at a time: to call one, answer with ${form}. You get its result with the next message. To answer the user, answer with {"kind": "text", "text": …}. The tools:`,
  call: `You must call one of the tools below: answer with ${form}. You get its result with the next message. The tools:`,
};

/** Answer of the model to an emulated turn. */
export type EmulatedAnswer =
  | { readonly kind: 'text'; readonly text: string }
  /** `input` is JSON. */
  | { readonly kind: 'call'; readonly name: string; readonly input: string }
  | { readonly kind: 'fault'; readonly fault: string };

/** Value of an emulated turn with a free choice of tools. */
interface Envelope {
  readonly kind: 'text' | 'call';
  readonly text?: unknown;
  readonly name?: string;
  readonly arguments?: object;
}

/**
 * Decodes an answer. `value`: JSON that fits the schema of the emulated turn. `hasSchema`: whether the client requests
 * a value instead of text.
 */
export function readAnswer(value: string, { choice }: ToolOffer, hasSchema: boolean): EmulatedAnswer {
  if (typeof choice !== 'string') return { kind: 'call', name: choice.name, input: value };
  const { kind, text, name, arguments: input } = parseExactly(value) as Envelope;
  if (kind === 'call') {
    if (name === undefined || input === undefined)
      return { kind: 'fault', fault: 'an object of the kind call must have the fields name and arguments' };
    return { kind, name, input: stringifyExactly(input) };
  }
  if (text === undefined) return { kind: 'fault', fault: 'an object of the kind text must have the field text' };
  return { kind, text: hasSchema ? stringifyExactly(text) : String(text) };
}

/** Decodes the first piece of an answer. Returns null for the piece of a call, which is never sent. */
function cutAnswer(piece: string, { choice }: ToolOffer): EmulatedAnswer | null {
  if (choice !== 'auto' && choice !== 'none') return null;
  const begin = /^\s*\{\s*"kind"\s*:\s*"text"\s*,\s*"text"\s*:\s*/.exec(piece.slice(0, 200))?.[0];
  if (begin === undefined) return /^\s*[{[]/.test(piece) ? null : { kind: 'text', text: piece };
  const text = piece.slice(begin.length);
  return { kind: 'text', text: text.startsWith('"') ? cutString(text.slice(1)) : text };
}

/** Returns the text of a JSON string whose end may be missing. */
function cutString(json: string): string {
  const [inside = ''] = /^[^"\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\]*)*/.exec(json) ?? [];
  try {
    return JSON.parse(`"${inside}"`);
  } catch {
    return inside; // with line breaks, which JSON does not allow
  }
}

/** Returns the schema of a tool's input, as JSON. */
export function schemaOfCall({ tools }: ToolOffer, name: string): string {
  return tools.find((tool) => tool.name === name)?.schema ?? '{}';
}
