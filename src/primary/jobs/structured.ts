import { needsWrapper, unwrappedPiece, unwrappedText, wrappedSchema } from '../../shared/text/json-schema.js';
import type { Message, Turn } from '../cli/contract/adapter.js';
import { type AnswerTurns, isCallEvent, type RepairedEnd, type RunTurn, withRepair } from './answer-turns.js';
import type { StrategyEnd } from './answered.js';
import { answerWithText } from './plain-text.js';

/** Answers with text, or with a value if the request has a schema. `run`: runs each turn. */
export function answerWith(turns: AnswerTurns, turn: Turn, run: RunTurn): Promise<StrategyEnd> {
  const { schema } = turns.job.launch;
  return schema === null ? answerWithText(turns, turn, run) : answerWithValue(turns, turn, run, schema);
}

/** Answers with a JSON value, which is sent only after all of it has been checked against its schema. */
async function answerWithValue(turns: AnswerTurns, turn: Turn, run: RunTurn, schema: string): Promise<StrategyEnd> {
  const { end, value } = await readValue(turns, turn, run, schema);
  const isWaiting = (end.calls ?? []).length > 0;
  if (!isWaiting) turns.output.sendText(value);
  return { ...valueEnd(end), isWaiting };
}

/** Rules for the answer beyond its schema. */
interface ValueRules {
  /** Returns the fault in a value that fits the schema, or null. */
  readonly faultOf: (value: string) => Promise<string | null>;
  /** Whether prose is an answer too. */
  readonly mayBeProse?: boolean;
}

/**
 * Gets a value by the program's native schema support; otherwise by the prompt, with one more turn to repair an answer
 * that does not fit or in which `faultOf` finds a fault. The value is empty if the model called tools or wrote prose, and
 * the first piece of it if the answer was cut short. Text before a tool call is sent with the call.
 */
export async function readValue(
  turns: AnswerTurns,
  turn: Turn,
  run: RunTurn,
  schema: string,
  { faultOf, mayBeProse = false }: ValueRules = { faultOf: async () => null },
) {
  const { output } = turns;
  const { schema: programSchema, isWrapped } = programSchemaOf(schema);
  const isNative = turns.extras.schema?.(programSchema) !== undefined;
  const check = async (each: Turn) => {
    const pieces: string[] = [];
    const flush = () => output.sendText(pieces.splice(0).join(''));
    const end = await run(each, {
      write: (event) => {
        if (event.type === 'text-delta') return void pieces.push(event.text);
        if (event.type === 'passage') return; // a value cites nothing
        if (isCallEvent(event)) flush();
        output.sendEvent(event);
      },
      hasEnough: () => false,
      flush,
    });
    const text = end.text ?? pieces.join('');
    const answer = { end, text, value: '', prose: null, fault: null };
    if (end.calls !== undefined) return answer;
    if (end.isCutShort) return { ...answer, value: isNative && isWrapped ? unwrappedPiece(text) : text };
    const finding = await turns.checkSchema(schema, isNative && isWrapped ? unwrappedText(text) : text);
    if (finding.kind === 'fits') return { ...answer, value: finding.value, fault: await faultOf(finding.value) };
    if (mayBeProse && finding.prose !== undefined) return { ...answer, prose: finding.prose };
    return { ...answer, fault: finding.fault };
  };
  if (isNative) return withRepair({ ...turn, schema: programSchema }, check, null);
  const first = askingFor(turn, schema);
  return withRepair(first, check, async ({ text, fault }) => {
    await turns.processes.acquireAnother();
    return repairing(first, text, fault ?? '');
  });
}

/** Returns the end of a turn whose text was already sent. */
export function valueEnd({ model, usage, calls, isCutShort, sizes, isRepaired = false }: RepairedEnd) {
  const more = { ...(calls !== undefined && { calls }), ...(isCutShort && { isCutShort }), ...(sizes && { sizes }) };
  return { type: 'turn-end', text: null, model, usage, ...more, stopSequence: null, isCut: isRepaired } as const;
}

/** Returns the schema in the form for programs, and whether it had to be wrapped in an object. */
function programSchemaOf(schema: string): { readonly schema: string; readonly isWrapped: boolean } {
  const parsed = JSON.parse(schema);
  if (!needsWrapper(parsed)) return { schema, isWrapped: false };
  return { schema: JSON.stringify(wrappedSchema(parsed)), isWrapped: true };
}

/** Returns the turn for a program without schema support: the schema is part of its text. */
export function askingFor<T extends Turn>(turn: T, schema: string): T {
  const request = `Answer with one JSON value alone, without any other text, that fits this JSON Schema:\n${schema}`;
  return { ...turn, text: `${turn.text}\n\n${request}`, schema: null };
}

/** Returns the turn that asks the model to repair an answer that did not fit the schema. */
export function repairing<T extends Turn>(turn: T, answer: string, fault: string): T {
  const messages: readonly Message[] = [
    { role: 'user', text: turn.text, images: turn.images },
    { role: 'assistant', text: answer },
  ];
  const text = `That does not fit the schema: ${fault}. Answer again, with the whole JSON value alone.`;
  return { ...turn, text, images: [], history: [...turn.history, ...messages] };
}
